"""Several queries and plain consumers in one group: every record is read, by one of them."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from kohort.client.errors import ConsumerError
from kohort.types import Topic
from tests.client.clusters import Cluster, flat
from tests.pipeline.streams import PATIENCE_S, Group, Table, numbered, once_each, source_of
from tests.waiting import wait_until

PARTITIONS = 6


class Plain:
    """A consumer on a thread of its own, which commits what it has counted."""

    def __init__(self, cluster: Cluster, topic: Topic, group: str) -> None:
        self.seen: Counter[str] = Counter()
        self._ending = threading.Event()
        # Beside a Spark on a busy machine, a second without a heartbeat is no sign of death.
        self._consumer = cluster.open_consumer(
            group_id=group, enable_auto_commit=False, session_timeout_ms=10_000
        )
        self._consumer.subscribe([topic])
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._ending.is_set():
            records = list(flat(self._consumer.poll(100)))
            if not records:
                continue
            try:
                self._consumer.commit()
            except ConsumerError:
                continue  # whoever has the partitions now reads these again
            self.seen.update(record.value.decode() for record in records)
        self._consumer.close()

    def stop(self) -> None:
        self._ending.set()
        self._thread.join()


@contextmanager
def plain_consumer(cluster: Cluster, topic: Topic, group: str) -> Iterator[Plain]:
    plain = Plain(cluster, topic, group)
    try:
        yield plain
    finally:
        plain.stop()


def total(*counters: Counter[str]) -> Counter[str]:
    return sum(counters, Counter())


def has_read(query: StreamingQuery, topic: Topic, count: int) -> bool:
    """Whether the newest progress tells so; it comes a little later than the rows."""
    if query.lastProgress is None or source_of(query)["endOffset"] is None:
        return False
    reached: dict[str, int] = source_of(query)["endOffset"].get(topic, {})
    return sum(reached.values()) == count


def wait_for_all(seen: Callable[[], Counter[str]], count: int) -> None:
    wait_until(lambda: len(seen()) >= count, PATIENCE_S, f"all {count} are read")


def test_two_queries_and_a_plain_consumer_share_a_group_under_churn(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    topic, group = cluster.create_topic(PARTITIONS), Group(cluster, cluster.name_group())
    first, second = (
        Table(spark, cluster, tmp_path / name, topic, group__id=group.group_id)
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
                lambda: sorted(group.held.values()) == [3, 3], PATIENCE_S, "both have their share"
            )
            write(60)
            wait_for_all(lambda: total(first.values(), second.values()), 120)
            with plain_consumer(cluster, topic, group.group_id) as plain:
                wait_until(
                    lambda: sorted(group.held.values()) == [2, 2, 2], PATIENCE_S, "all three"
                )
                write(60)
                wait_for_all(lambda: total(first.values(), second.values(), plain.seen), 180)
        wait_until(lambda: list(group.held.values()) == [PARTITIONS], PATIENCE_S, "one is left")
        write(60)
        wait_for_all(lambda: total(first.values(), second.values(), plain.seen), 240)

    assert total(first.values(), second.values(), plain.seen) == once_each(240)
    assert first.values()
    assert second.values()
    assert plain.seen


def test_a_rebalance_waits_for_the_running_batch_to_be_durable_and_committed(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    topic, group = cluster.create_topic(2), Group(cluster, cluster.name_group())
    cluster.produce(topic, numbered(10, 2))
    table = Table(spark, cluster, tmp_path, topic, group__id=group.group_id)

    with table.running():
        table.wait_for(once_each(10))
        with plain_consumer(cluster, topic, group.group_id) as plain:
            wait_until(lambda: sorted(group.held.values()) == [1, 1], PATIENCE_S, "shared")
            cluster.produce(topic, numbered(10, 2, start=10))
            wait_for_all(lambda: total(table.values(), plain.seen), 20)

    assert total(table.values(), plain.seen) == once_each(20)
    assert sum(plain.seen.values()) == 5


def test_a_static_query_restarts_without_a_rebalance(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    topic, group = cluster.create_topic(4), Group(cluster, cluster.name_group())
    table = Table(
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
            wait_until(lambda: sorted(group.held.values()) == [2, 2], PATIENCE_S, "shared")
            before = set(group.held)
            cluster.produce(topic, numbered(8, 4))
            wait_until(lambda: has_read(query, topic, 4), PATIENCE_S, "its half is read")
            generation = source_of(query)["latestOffset"]["$group"]["generation"]

        with table.running() as query:
            cluster.produce(topic, numbered(8, 4, start=8))
            wait_until(lambda: has_read(query, topic, 8), PATIENCE_S, "its half is read")
            standing = source_of(query)["latestOffset"]["$group"]

    assert standing["generation"] == generation
    assert len(before & set(group.held)) <= 1
