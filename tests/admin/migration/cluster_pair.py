"""A source and a target cluster, with helpers to fill and compare them."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kohort.admin import offsets, topics
from kohort.admin.cluster_connection import open_cluster
from kohort.admin.migration.migration_types import (
    MigrationOptions,
    MigrationPlan,
    MigrationSummary,
    OnProgress,
)
from kohort.admin.migration.run import migrate, plan_migration
from kohort.client.fetch.consumer_records import ConsumerRecord
from kohort.types import GroupId, Offset, Partition, Topic, TopicPartition
from tests.client.node_cluster import QUICK, SETTINGS, Cluster, ProducedRecord
from tests.wait import wait_until

NODE = {**SETTINGS, "log.retention.check.interval.ms": 100}
"""The log cleaner runs ten times a second."""

COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "0",
}

_AN_HOUR_AGO = time.time_ns() // 1_000_000 - 3_600_000
"""Retention might delete older records during a test."""

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPair:
    source: Cluster
    target: Cluster
    state: Path

    def migrate(self, on_progress: OnProgress = lambda _: None, **options: Any) -> MigrationSummary:
        with (
            open_cluster(self.source.bootstrap_servers) as source,
            open_cluster(self.target.bootstrap_servers) as target,
        ):
            return migrate(
                source, target, MigrationOptions(state=self.state, **options), on_progress
            )

    def plan(self, **options: Any) -> MigrationPlan:
        with (
            open_cluster(self.source.bootstrap_servers) as source,
            open_cluster(self.target.bootstrap_servers) as target,
        ):
            return plan_migration(source, target, MigrationOptions(state=self.state, **options))


def create(
    cluster: Cluster, partitions: int = 1, settings: Mapping[str, str] | None = None
) -> Topic:
    """A new topic with a unique name."""
    topic = cluster.create_topic(partitions)
    if settings:
        alter(cluster, topic, settings)
    return topic


def alter(cluster: Cluster, topic: Topic, settings: Mapping[str, str]) -> None:
    with open_cluster(cluster.bootstrap_servers) as admin:
        topics.alter_config(admin, topic, dict(settings))


def own_settings(cluster: Cluster, topic: Topic) -> dict[str, str | None]:
    with open_cluster(cluster.bootstrap_servers) as admin:
        found = topics.describe_config(admin, topic)
    return {each.name: each.content for each in found if not each.is_default}


def count_partitions(cluster: Cluster, topic: Topic) -> int:
    with open_cluster(cluster.bootstrap_servers) as admin:
        return len(topics.get_topics(admin, [topic])[topic].partitions)


def commit(cluster: Cluster, group: str, places: Mapping[TopicPartition, int]) -> None:
    with open_cluster(cluster.bootstrap_servers) as admin:
        offsets.alter_offsets(
            admin, GroupId(group), {each: Offset(offset) for each, offset in places.items()}
        )


def committed(cluster: Cluster, group: str) -> dict[TopicPartition, int]:
    with open_cluster(cluster.bootstrap_servers) as admin:
        found = offsets.list_group_offsets(admin, [GroupId(group)])[GroupId(group)]
    return {each: committed_offset.offset for each, committed_offset in found.items()}


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

        wait_until(is_read, 60, "all records")
    return [found[each] for each in wanted]


def contents(records: Sequence[ConsumerRecord]) -> list[tuple[Any, ...]]:
    return [(each.key, each.value, each.headers, each.timestamp) for each in records]


def assert_same(pair: ClusterPair, topic: Topic, partitions: int = 1) -> None:
    source_records = read_all(pair.source, topic, partitions)
    target_records = read_all(pair.target, topic, partitions)
    assert [contents(each) for each in target_records] == [
        contents(each) for each in source_records
    ]


def various(count: int, partitions: int) -> list[ProducedRecord]:
    """Records with and without keys, values and headers."""
    return [
        ProducedRecord(
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
    """Write many records with few keys and wait until the log is compacted."""
    for round_ in range(6):
        values = [
            ProducedRecord(key=b"key %d" % (number % 7), value=b"%d %d" % (round_, number))
            for number in range(40)
        ]
        cluster.produce(topic, values)

    def is_compacted() -> bool:
        # The active segment is never compacted; a new record rolls it.
        cluster.produce(topic, [ProducedRecord(key=b"last", value=b"last")])
        (records,) = read_all(cluster, topic, 1)
        return records[-1].offset + 1 - len(records) > 120

    wait_until(is_compacted, 60, "compaction")


def read_next(cluster: Cluster, topic: Topic, group: str) -> list[ConsumerRecord]:
    """The records that the only member of a group reads."""
    options = {**QUICK, "auto_offset_reset": "none", "consumer_timeout_ms": 3_000}
    with cluster.consumer(**{**options, "group_id": group}) as consumer:
        consumer.subscribe([topic])
        return list(consumer)
