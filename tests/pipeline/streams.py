"""Queries on a topic, what they wrote, and what the group says of them."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient, ConsumerGroupDescription
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import kohort.pipeline
from kohort.pipeline.columns import SPARK_SCHEMA
from kohort.types import Topic
from tests.client.clusters import Cluster, Written
from tests.waiting import wait_until

PATIENCE_S = 90.0
"""Spark's first batch takes seconds, on a busy machine many."""

QUICK = {
    "kafka.session.timeout.ms": "6000",
    "kafka.heartbeat.interval.ms": "200",
    "auto.offset.reset": "earliest",
}


class Table:
    """One query's topic, group, checkpoint and table; the query may come and go."""

    def __init__(
        self, spark: SparkSession, cluster: Cluster, directory: Path, topic: Topic, **options: str
    ) -> None:
        kohort.pipeline.register(spark)
        self._spark = spark
        self._cluster = cluster
        self._directory = directory
        self._options: dict[str, str] = {
            "kafka.bootstrap.servers": cluster.bootstrap_servers,
            "subscribe": topic,
            **QUICK,
            **{name.replace("__", "."): text for name, text in options.items()},
        }

    @property
    def checkpoint(self) -> Path:
        return self._directory / "checkpoint"

    def start(self, **options: str) -> StreamingQuery:
        return self._start(options, {"processingTime": "200 milliseconds"})

    def _start(self, options: Mapping[str, str], trigger: dict[str, Any]) -> StreamingQuery:
        given = {name.replace("__", "."): text for name, text in options.items()}
        frame = self._spark.readStream.format("kohort").options(**{**self._options, **given}).load()
        writer = (
            frame.writeStream.format("parquet")
            .option("path", f"{self._directory / 'table'}")
            .option("checkpointLocation", f"{self.checkpoint}")
        )
        return writer.trigger(**trigger).start()

    @contextmanager
    def running(self, **options: str) -> Iterator[StreamingQuery]:
        query = self.start(**options)
        try:
            yield query
        finally:
            query.stop()

    def run(self, **options: str) -> StreamingQuery:
        """Until all that is there now is read."""
        query = self._start(options, {"availableNow": True})
        assert query.awaitTermination(int(PATIENCE_S)), query.status
        return query

    def values(self) -> Counter[str]:
        """How often each value is in the table."""
        if not (self._directory / "table" / "_spark_metadata").exists():
            return Counter()
        table = self._spark.read.schema(SPARK_SCHEMA).parquet(f"{self._directory / 'table'}")
        rows = table.select("value").collect()
        return Counter(bytes(row.value).decode() for row in rows)

    def wait_for(self, values: Mapping[str, int] | Counter[str]) -> None:
        wait_until(lambda: self.values() == values, PATIENCE_S, f"{len(values)} values")


def numbered(count: int, partitions: int, start: int = 0) -> list[Written]:
    return [
        Written(value=b"%d" % number, partition=number % partitions)
        for number in range(start, start + count)
    ]


def once_each(count: int, start: int = 0) -> Counter[str]:
    return Counter(str(number) for number in range(start, start + count))


class Group:
    """What an administrator sees of a group."""

    def __init__(self, cluster: Cluster, group_id: str) -> None:
        self.group_id = group_id
        self._admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})

    def describe(self) -> ConsumerGroupDescription:
        described = self._admin.describe_consumer_groups([self.group_id])
        return described[self.group_id].result(10)

    @property
    def state(self) -> str:
        return str(self.describe().state.name)

    @property
    def held(self) -> dict[str, int]:
        """How many partitions each member has."""
        return {
            member.member_id: len(member.assignment.topic_partitions)
            for member in self.describe().members
        }

    def committed(self) -> dict[int, int]:
        asked = [ConsumerGroupTopicPartitions(self.group_id)]
        told = self._admin.list_consumer_group_offsets(asked)[self.group_id].result(10)
        found: list[TopicPartition] = told.topic_partitions
        return {each.partition: each.offset for each in found}


def source_of(query: StreamingQuery) -> dict[str, Any]:
    """The newest progress of its source."""
    progress = query.lastProgress
    assert progress is not None
    sources: list[dict[str, Any]] = json.loads(progress.json)["sources"]
    return sources[0]


def offsets_in(directory: Path) -> dict[int, dict[str, Any]]:
    """What a checkpoint has, by batch: the last line of each is our offset."""
    return {
        int(each.name): json.loads(each.read_text("utf-8").splitlines()[-1])
        for each in (directory / "offsets").iterdir()
        if each.name.isdecimal()
    }
