"""Two clusters with something to move, and what there is to compare afterwards."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kohort.admin import offsets, topics
from kohort.admin.cluster import open_cluster
from kohort.admin.migrating.run import migrate, plan_migration
from kohort.admin.migrating.wish import MigrationPlan, MigrationSummary, MigrationWish, Watch
from kohort.client.fetching.records import ConsumerRecord
from kohort.client.topic_partition import TopicPartition
from kohort.types import GroupId, Offset, Partition, Topic
from tests.client.clusters import QUICK, SETTINGS, Cluster, Written
from tests.waiting import wait_until

NODE = {**SETTINGS, "log.retention.check.interval.ms": 100}
"""Compaction is looked for ten times a second."""

COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "0",
}

_AN_HOUR_AGO = time.time_ns() // 1_000_000 - 3_600_000
"""Older records might be let go of in the middle of a test."""

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    a: Cluster
    b: Cluster
    state: Path

    def migrate(self, watch: Watch = lambda _: None, **wish: Any) -> MigrationSummary:
        with (
            open_cluster(self.a.bootstrap_servers) as source,
            open_cluster(self.b.bootstrap_servers) as target,
        ):
            return migrate(source, target, MigrationWish(state=self.state, **wish), watch)

    def plan(self, **wish: Any) -> MigrationPlan:
        with (
            open_cluster(self.a.bootstrap_servers) as source,
            open_cluster(self.b.bootstrap_servers) as target,
        ):
            return plan_migration(source, target, MigrationWish(state=self.state, **wish))


def create(
    cluster: Cluster, partitions: int = 1, settings: Mapping[str, str] | None = None
) -> Topic:
    """A new topic under a name of its own."""
    topic = cluster.create_topic(partitions)
    if settings:
        alter(cluster, topic, settings)
    return topic


def alter(cluster: Cluster, topic: Topic, settings: Mapping[str, str]) -> None:
    with open_cluster(cluster.bootstrap_servers) as asked:
        topics.alter_settings(asked, topic, dict(settings))


def own_settings(cluster: Cluster, topic: Topic) -> dict[str, str | None]:
    with open_cluster(cluster.bootstrap_servers) as asked:
        found = topics.settings(asked, topic)
    return {each.name: each.content for each in found if not each.is_default}


def count_partitions(cluster: Cluster, topic: Topic) -> int:
    with open_cluster(cluster.bootstrap_servers) as asked:
        return len(topics.get_topics(asked, [topic])[topic].partitions)


def commit(cluster: Cluster, group: str, places: Mapping[TopicPartition, int]) -> None:
    with open_cluster(cluster.bootstrap_servers) as asked:
        offsets.alter_offsets(
            asked, GroupId(group), {each: Offset(offset) for each, offset in places.items()}
        )


def committed(cluster: Cluster, group: str) -> dict[TopicPartition, int]:
    with open_cluster(cluster.bootstrap_servers) as asked:
        found = offsets.committed(asked, [GroupId(group)])[GroupId(group)]
    return {each: told.offset for each, told in found.items()}


def read_all(cluster: Cluster, topic: Topic, partitions: int) -> list[list[ConsumerRecord]]:
    """Every record of each partition, in order."""
    wanted = [TopicPartition(topic, Partition(number)) for number in range(partitions)]
    found: dict[TopicPartition, list[ConsumerRecord]] = {each: [] for each in wanted}
    with cluster.consumer(group_id=None) as consumer:
        ends = consumer.end_offsets(wanted)
        consumer.assign(wanted)

        def is_read() -> bool:
            for partition, records in consumer.poll(50).items():
                found[partition] += records
            return all(consumer.position(each) >= end for each, end in ends.items())

        wait_until(is_read, 60, "all to be read")
    return [found[each] for each in wanted]


def contents(records: Sequence[ConsumerRecord]) -> list[tuple[Any, ...]]:
    return [(each.key, each.value, each.headers, each.timestamp) for each in records]


def assert_same(pair: Pair, topic: Topic, partitions: int = 1) -> None:
    ours = read_all(pair.a, topic, partitions)
    theirs = read_all(pair.b, topic, partitions)
    assert [contents(each) for each in theirs] == [contents(each) for each in ours]


def various(count: int, partitions: int) -> list[Written]:
    """Records with and without keys, values and headers."""
    return [
        Written(
            partition=number % partitions,
            key=None if number % 5 == 0 else b"key %d" % number,
            value=None if number % 7 == 0 else b"value %d " % number * (number % 11),
            headers=[("number", b"%d" % number), ("number", b""), ("empty", b"")][: number % 4],
            timestamp_ms=_AN_HOUR_AGO + number,
        )
        for number in range(count)
    ]


def produce_all_codecs(cluster: Cluster, topic: Topic, partitions: int, count: int = 60) -> None:
    for codec in CODECS:
        cluster.produce(topic, various(count, partitions), codec=codec)


def compact(cluster: Cluster, topic: Topic) -> None:
    """Few keys, many records; then what is old is gone from the log."""
    for round_ in range(6):
        values = [
            Written(key=b"key %d" % (number % 7), value=b"%d %d" % (round_, number))
            for number in range(40)
        ]
        cluster.produce(topic, values)

    def is_compacted() -> bool:
        # The active segment is never compacted, and only a new record ends it.
        cluster.produce(topic, [Written(key=b"last", value=b"last")])
        (records,) = read_all(cluster, topic, 1)
        return records[-1].offset + 1 - len(records) > 120

    wait_until(is_compacted, 60, "compaction")


def read_next(cluster: Cluster, topic: Topic, group: str) -> list[ConsumerRecord]:
    """What a group's only member gets first, of all partitions, until nothing more comes."""
    options = {**QUICK, "auto_offset_reset": "none", "consumer_timeout_ms": 3_000}
    with cluster.consumer(**{**options, "group_id": group}) as consumer:
        consumer.subscribe([topic])
        return list(consumer)
