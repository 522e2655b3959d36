"""What a cluster is asked outside of Spark: which topics tell of its groups, where all others end.

Asked before a Spark is started as well, so that nobody waits for one in vain. Knows no Spark.
"""

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final, TypeAlias

from kohort.client.consumer import Consumer
from kohort.client.errors import ConsumerError
from kohort.client.topic_partition import TopicPartition
from kohort.pipeline.errors import NoSuchTopic
from kohort.pipeline.forensics.decoding.files import EVENTS, OFFSETS
from kohort.pipeline.forensics.wish import ForensicsWish
from kohort.pipeline.ingest.asking import NoBroker
from kohort.pipeline.source.options import SourceOptions, consumer_config, read_source_options

_ASKED_AT_ONCE: Final = 2_000
"""Partitions whose ends are looked at with one question."""

End: TypeAlias = tuple[datetime, str, int, int, int]
"""A row of bronze's ends."""


def options_for(wish: ForensicsWish, topics: str = OFFSETS) -> dict[str, str]:
    """Of the source: from the beginning, and only what was not aborted."""
    assert wish.bootstrap_servers is not None, "a wish is checked"
    return {
        "kafka.bootstrap.servers": wish.bootstrap_servers,
        "subscribe": topics,
        "group.id": wish.group_id,
        "auto.offset.reset": "earliest",
        "maxOffsetsPerTrigger": str(wish.rows_max),
        # What compaction takes before it is read is no error here: it is what the topic is for.
        "failOnDataLoss": "false",
        "kafka.isolation.level": "read_committed",
        **{f"kafka.{name}": text for name, text in wish.kafka.items()},
    }


def check_options(wish: ForensicsWish) -> SourceOptions:
    """BadSourceOption where the source would refuse what the wish says of consumers."""
    return read_source_options(options_for(wish), is_streaming=True)


def find_topics(wish: ForensicsWish) -> str:
    """Those that tell of groups, as the source wants them; NoBroker or NoSuchTopic."""
    with _asking(wish) as consumer:
        topics = consumer.topics()
    if OFFSETS not in topics:
        raise NoSuchTopic(
            f"there is no {OFFSETS} at {wish.bootstrap_servers}: no group has ever "
            "committed there, or this user may not read it"
        )
    return f"{OFFSETS},{EVENTS}" if EVENTS in topics else OFFSETS


def look_at_ends(wish: ForensicsWish) -> list[End]:
    """Of everything that groups may read."""
    rows: list[End] = []
    with _asking(wish) as consumer:
        partitions = [
            TopicPartition(topic, number)
            for topic in sorted(consumer.topics() - {OFFSETS, EVENTS})
            for number in sorted(consumer.partitions_for(topic))
        ]
        for at in range(0, len(partitions), _ASKED_AT_ONCE):
            some = partitions[at : at + _ASKED_AT_ONCE]
            starts, ends = consumer.beginning_offsets(some), consumer.end_offsets(some)
            now = datetime.now(UTC)
            rows += [
                (now, each.topic, each.partition, starts[each], ends[each])
                for each in some
                if each in starts and each in ends
            ]
    return rows


@contextlib.contextmanager
def _asking(wish: ForensicsWish) -> Iterator[Consumer]:
    config = {**consumer_config(check_options(wish)), "exclude.internal.topics": False}
    try:
        with contextlib.closing(Consumer(config)) as consumer:
            yield consumer
    except ConsumerError as error:
        raise NoBroker(f"{wish.bootstrap_servers}: {error}") from error
