"""What brokers are asked outside of Spark: before it starts, and when it has ended."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Final

from kohort.client.consumer import Consumer
from kohort.client.errors import ConsumerError
from kohort.client.topic_partition import TopicPartition
from kohort.pipeline.errors import NoSuchTopic, PipelineError
from kohort.pipeline.source.options import SourceOptions, consumer_config
from kohort.types import Offset

_PATIENCE_MS: Final = 15_000


class NoBroker(PipelineError):
    """No broker answers, or it answers with an error."""


def look_ahead(options: SourceOptions) -> None:
    """NoBroker within a bounded time, or NoSuchTopic, before a Spark is started for nothing."""
    with _asking(options) as consumer:
        missing = sorted(set(options.topics) - consumer.topics())
    if missing:
        names = ", ".join(missing)
        raise NoSuchTopic(f"topic {names} does not exist: create it, or mend its name")


def is_group_told(options: SourceOptions, ends: Mapping[TopicPartition, Offset]) -> bool:
    """Whether the group is known to have committed as far as that, or farther."""
    try:
        with _asking(options) as consumer:
            committed = consumer.committed(list(ends))
    except NoBroker:
        return False
    return all(
        (told := committed[each]) is not None and told.offset >= end for each, end in ends.items()
    )


@contextlib.contextmanager
def _asking(options: SourceOptions) -> Iterator[Consumer]:
    """A consumer that is no member of the group."""
    config = {
        "default.api.timeout.ms": _PATIENCE_MS,
        **consumer_config(options),
        "group.id": options.group_id,
        "enable.auto.commit": False,
    }
    try:
        with contextlib.closing(Consumer(config)) as consumer:
            yield consumer
    except ConsumerError as error:
        raise NoBroker(f"{options.bootstrap_servers}: {error}") from error
