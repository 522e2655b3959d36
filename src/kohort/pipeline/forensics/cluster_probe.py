"""Requests to a cluster without Spark: which group topics exist, and the end offsets of all others.

Also used before Spark starts, so that an unreachable broker is reported at once.
"""

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final, TypeAlias

from kohort.client.consumer import Consumer
from kohort.client.errors import ConsumerError
from kohort.events.internal_topics import CONSUMER_OFFSETS, KOHORT_EVENTS
from kohort.pipeline.errors import BrokerUnavailable, TopicNotFound
from kohort.pipeline.forensics.options import ForensicsOptions
from kohort.pipeline.source.options import SourceOptions, consumer_config, read_source_options
from kohort.types import TopicPartition

_PARTITIONS_PER_REQUEST: Final = 2_000

EndOffsetRow: TypeAlias = tuple[datetime, str, int, int, int]
"""A row of the table bronze/ends."""


def source_options(options: ForensicsOptions, topics: str = CONSUMER_OFFSETS) -> dict[str, str]:
    """The options of the Spark source: from the beginning, committed records only."""
    assert options.bootstrap_servers is not None, "the options are validated"
    return {
        "kafka.bootstrap.servers": options.bootstrap_servers,
        "subscribe": topics,
        "group.id": options.group_id,
        "auto.offset.reset": "earliest",
        "maxOffsetsPerTrigger": str(options.rows_max),
        # Compaction may remove records before they are read; that is expected for this topic.
        "failOnDataLoss": "false",
        "kafka.isolation.level": "read_committed",
        **{f"kafka.{name}": text for name, text in options.kafka.items()},
    }


def check_options(options: ForensicsOptions) -> SourceOptions:
    """Raises BadSourceOption if the source would reject a consumer option."""
    return read_source_options(source_options(options), is_streaming=True)


def find_topics(options: ForensicsOptions) -> str:
    """The group topics as the source option `subscribe`.

    Raises BrokerUnavailable or TopicNotFound.
    """
    with _consumer(options) as consumer:
        topics = consumer.topics()
    if CONSUMER_OFFSETS not in topics:
        raise TopicNotFound(
            f"{options.bootstrap_servers} has no topic {CONSUMER_OFFSETS}: no group has committed "
            "there, or this user is not authorised to read it"
        )
    return f"{CONSUMER_OFFSETS},{KOHORT_EVENTS}" if KOHORT_EVENTS in topics else CONSUMER_OFFSETS


def read_end_offsets(options: ForensicsOptions) -> list[EndOffsetRow]:
    """Of all partitions that groups may consume."""
    rows: list[EndOffsetRow] = []
    with _consumer(options) as consumer:
        partitions = [
            TopicPartition(topic, number)
            for topic in sorted(consumer.topics() - {CONSUMER_OFFSETS, KOHORT_EVENTS})
            for number in sorted(consumer.partitions_for_topic(topic))
        ]
        for at in range(0, len(partitions), _PARTITIONS_PER_REQUEST):
            some = partitions[at : at + _PARTITIONS_PER_REQUEST]
            starts, ends = consumer.beginning_offsets(some), consumer.end_offsets(some)
            now = datetime.now(UTC)
            rows += [
                (now, each.topic, each.partition, starts[each], ends[each])
                for each in some
                if each in starts and each in ends
            ]
    return rows


@contextlib.contextmanager
def _consumer(options: ForensicsOptions) -> Iterator[Consumer]:
    config = {**consumer_config(check_options(options)), "exclude.internal.topics": False}
    try:
        with contextlib.closing(Consumer(config)) as consumer:
            yield consumer
    except ConsumerError as error:
        raise BrokerUnavailable(f"{options.bootstrap_servers}: {error}") from error
