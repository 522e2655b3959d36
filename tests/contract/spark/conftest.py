"""Spark with its Kafka connector, and a Kohort broker."""

import importlib.util
import itertools
import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import ParamSpec, TypeVar

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

import kohort
from tests.apache import java
from tests.apache.jars import fetch, read_list
from tests.apache.unavailable import Unavailable, skip

LIST = Path(__file__).with_name("jars.txt")

DEADLINE_S = 300
"""The first job of a Spark session takes seconds, on a busy machine much longer."""

_NUMBERS = itertools.count(1)

P = ParamSpec("P")
T = TypeVar("T")


class Spark:
    """Runs jobs one after another in its own process."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool

    def run(self, job: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return self._pool.submit(job, *args, **kwargs).result(DEADLINE_S)


class Node:
    """A broker, and what tests do to it without Spark."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        self._admin = AdminClient({"bootstrap.servers": bootstrap_servers})

    def options(self, **given: str) -> dict[str, str]:
        """Options of the connector: the bootstrap servers and these."""
        return {"kafka.bootstrap.servers": self.bootstrap_servers, **given}

    def unique_name(self, word: str) -> str:
        return f"{word}-{next(_NUMBERS)}"

    def create_topic(self, partitions: int = 1, name: str | None = None) -> str:
        topic = name or self.unique_name("topic")
        self._admin.create_topics([NewTopic(topic, partitions)])[topic].result()
        return topic

    def grow_topic(self, topic: str, partitions: int) -> None:
        self._admin.create_partitions([NewPartitions(topic, partitions)])[topic].result()

    def write(self, topic: str, count: int, *, partition: int = 0, time_ms: int = 0) -> None:
        """Produce this many records, one per millisecond from this time on if it is given."""
        failures: list[object] = []
        # Closed at once: a producer that lives on reconnects to a port that is used again later.
        producer = Producer({"bootstrap.servers": self.bootstrap_servers})
        try:
            for number in range(count):
                producer.produce(
                    topic,
                    key=f"key {number}",
                    value=f"value {number}",
                    partition=partition,
                    timestamp=time_ms + number if time_ms else 0,
                    on_delivery=lambda error, _: failures.append(error) if error else None,
                )
            assert producer.flush(30) == 0, "records were not acknowledged"
        finally:
            producer.close()
        assert not failures, failures

    def delete_before(self, topic: str, offset: int) -> None:
        tp = TopicPartition(topic, 0, offset)
        for deleted in self._admin.delete_records([tp]).values():
            deleted.result()


@pytest.fixture(scope="package")
def spark() -> Iterator[Spark]:
    try:
        jars = _find_jars()
    except Unavailable as reason:
        skip(reason)
    from tests.contract.spark import jobs  # noqa: PLC0415  # only where there is a Spark

    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, initializer=jobs.start, initargs=(jars,)) as pool:
        yield Spark(pool)


def _find_jars() -> list[Path]:
    if importlib.util.find_spec("pyspark") is None:
        raise Unavailable("PySpark is not installed: it comes with the extra named spark")
    java.find_java()
    wanted = read_list(LIST.read_text("utf-8"))
    home = fetch("spark-kafka", wanted)
    return [home / jar.path for jar in wanted]


@pytest.fixture(scope="package")
def node() -> Iterator[Node]:
    # Some records are years old; a long run would reach the retention check.
    with kohort.Node(settings={"log.retention.ms": -1}, like_kafka=True) as node:
        yield Node(node.bootstrap_servers)
