"""Queries and plain consumers in one group: exactly one of them reads each record."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from kohort.client.errors import ConsumerError
from kohort.types import Topic
from tests.client.node_cluster import Cluster, flatten
from tests.pipeline.stream_setup import (
    TIMEOUT_S,
    Group,
    QueryTable,
    numbered,
    once_each,
    source_progress,
)
from tests.wait import wait_until

PARTITIONS = 6


class PlainConsumer:
    """A consumer in its own thread, which commits the records that it has counted."""

    def __init__(self, cluster: Cluster, topic: Topic, group: str) -> None:
        self.seen: Counter[str] = Counter()
        self._stopping = threading.Event()
        # On a busy machine heartbeats may be late by a second.
        self._consumer = cluster.open_consumer(
            group_id=group, enable_auto_commit=False, session_timeout_ms=10_000
        )
        self._consumer.subscribe([topic])
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            records = list(flatten(self._consumer.poll(100)))
            if not records:
                continue
            try:
                self._consumer.commit()
            except ConsumerError:
                continue  # the new owner of the partitions reads these again
            self.seen.update(record.value.decode() for record in records)
        self._consumer.close()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()


@contextmanager
def plain_consumer(cluster: Cluster, topic: Topic, group: str) -> Iterator[PlainConsumer]:
    plain = PlainConsumer(cluster, topic, group)
    try:
        yield plain
    finally:
        plain.stop()


def total(*counters: Counter[str]) -> Counter[str]:
    return sum(counters, Counter())


def has_read(query: StreamingQuery, topic: Topic, count: int) -> bool:
    """Whether the last progress has the count; it comes a little after the rows."""
    if query.lastProgress is None or source_progress(query)["endOffset"] is None:
        return False
    reached: dict[str, int] = source_progress(query)["endOffset"].get(topic, {})
    return sum(reached.values()) == count


def wait_for_all(seen: Callable[[], Counter[str]], count: int) -> None:
    wait_until(lambda: len(seen()) >= count, TIMEOUT_S, f"all {count} are read")


def test_two_queries_and_a_plain_consumer_share_a_group_through_rebalances(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    topic, group = cluster.create_topic(PARTITIONS), Group(cluster, cluster.name_group())
    first, second = (
        QueryTable(spark, cluster, tmp_path / name, topic, group__id=group.group_id)
        for name in ("first", "second")
    )
    written = 0

    def write(count: int) -> None:
        nonlocal written
        cluster.produce(topic, numbered(count, PARTITIONS, start=written))
        written += count

    write(60)
    with first.running():
        wait_for_all(first.values, 60)
        with second.running():
            wait_until(
                lambda: sorted(group.partition_counts.values()) == [3, 3],
                TIMEOUT_S,
                "two members",
            )
            write(60)
            wait_for_all(lambda: total(first.values(), second.values()), 120)
            with plain_consumer(cluster, topic, group.group_id) as plain:
                wait_until(
                    lambda: sorted(group.partition_counts.values()) == [2, 2, 2],
                    TIMEOUT_S,
                    "three members",
                )
                write(60)
                wait_for_all(lambda: total(first.values(), second.values(), plain.seen), 180)
        wait_until(
            lambda: list(group.partition_counts.values()) == [PARTITIONS],
            TIMEOUT_S,
            "one member is left",
        )
        write(60)
        wait_for_all(lambda: total(first.values(), second.values(), plain.seen), 240)

    assert total(first.values(), second.values(), plain.seen) == once_each(240)
    assert first.values()
    assert second.values()
    assert plain.seen


def test_a_rebalance_waits_until_the_running_batch_is_committed(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    topic, group = cluster.create_topic(2), Group(cluster, cluster.name_group())
    cluster.produce(topic, numbered(10, 2))
    table = QueryTable(spark, cluster, tmp_path, topic, group__id=group.group_id)

    with table.running():
        table.wait_for(once_each(10))
        with plain_consumer(cluster, topic, group.group_id) as plain:
            wait_until(
                lambda: sorted(group.partition_counts.values()) == [1, 1], TIMEOUT_S, "two members"
            )
            cluster.produce(topic, numbered(10, 2, start=10))
            wait_for_all(lambda: total(table.values(), plain.seen), 20)

    assert total(table.values(), plain.seen) == once_each(20)
    assert sum(plain.seen.values()) == 5


def test_a_static_query_restarts_without_a_rebalance(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    topic, group = cluster.create_topic(4), Group(cluster, cluster.name_group())
    table = QueryTable(
        spark,
        cluster,
        tmp_path,
        topic,
        group__id=group.group_id,
        group__instance__id="spark-1",
        kafka__session__timeout__ms="30000",
    )
    with plain_consumer(cluster, topic, group.group_id):
        with table.running() as query:
            wait_until(
                lambda: sorted(group.partition_counts.values()) == [2, 2], TIMEOUT_S, "two members"
            )
            before = set(group.partition_counts)
            cluster.produce(topic, numbered(8, 4))
            wait_until(lambda: has_read(query, topic, 4), TIMEOUT_S, "the query has read its half")
            generation = source_progress(query)["latestOffset"]["$group"]["generation"]

        with table.running() as query:
            cluster.produce(topic, numbered(8, 4, start=8))
            wait_until(lambda: has_read(query, topic, 8), TIMEOUT_S, "the query has read its half")
            group_state = source_progress(query)["latestOffset"]["$group"]

    assert group_state["generation"] == generation
    assert len(before & set(group.partition_counts)) <= 1
