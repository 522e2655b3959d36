"""Check an ingest before Spark starts, and its committed offsets after it has ended.

To start Spark takes ten seconds or more; a mistake that needs no Spark is found in one.
"""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from kohort.client.consumer import Consumer
from kohort.client.errors import ConsumerError
from kohort.pipeline.errors import BrokerUnavailable, TopicNotFound
from kohort.pipeline.ingest.options import IngestOptions, check_options
from kohort.pipeline.source.broker_check import check_reachable
from kohort.pipeline.source.options import SourceOptions, consumer_config
from kohort.types import Offset, Partition, Topic, TopicPartition

_API_TIMEOUT_MS: Final = 15_000


def check_before_start(options: IngestOptions) -> None:
    """Check options, schema and columns, then the brokers, the topics and the group's coordinator.

    The target directory is checked later: only Spark knows its file system.
    """
    from kohort.pipeline.ingest.transform import choose_transform  # noqa: PLC0415  # needs PySpark

    source = check_options(options)
    choose_transform(options)
    check_cluster(source)


def check_cluster(options: SourceOptions) -> None:
    """Raise BrokerUnavailable or TopicNotFound within a bounded time."""
    options = _with_api_timeout(options)
    check_reachable(options)
    with _open_consumer(options) as consumer:
        missing = sorted(set(options.topics) - consumer.topics())
        if missing:
            names = ", ".join(missing)
            raise TopicNotFound(f"topic {names} does not exist: create it, or correct its name")
        consumer.committed([TopicPartition(Topic(each), Partition(0)) for each in options.topics])


def has_group_committed(options: SourceOptions, ends: Mapping[TopicPartition, Offset]) -> bool:
    """Whether the group's committed offsets are known to be at these ends or after them."""
    try:
        with _open_consumer(_with_api_timeout(options)) as consumer:
            committed = consumer.committed(list(ends))
    except BrokerUnavailable:
        return False
    return all(
        (found := committed[each]) is not None and found.offset >= end for each, end in ends.items()
    )


def _with_api_timeout(options: SourceOptions) -> SourceOptions:
    name = "default.api.timeout.ms"
    return replace(options, kafka={name: str(_API_TIMEOUT_MS), **options.kafka})


@contextlib.contextmanager
def _open_consumer(options: SourceOptions) -> Iterator[Consumer]:
    """A consumer that reads the group's offsets and does not join the group."""
    config = {
        **consumer_config(options),
        "group.id": options.group_id,
        "enable.auto.commit": False,
    }
    try:
        with contextlib.closing(Consumer(config)) as consumer:
            yield consumer
    except ConsumerError as error:
        raise BrokerUnavailable(f"{options.bootstrap_servers}: {error}") from error
