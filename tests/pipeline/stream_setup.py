"""Streaming queries on a topic, the tables they write, and the state of their group."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import ConsumerGroupDescription
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import kohort.pipeline
from kohort.pipeline.spark_schema import SPARK_SCHEMA
from kohort.types import Topic
from tests.client.node_cluster import Cluster, ProducedRecord
from tests.pipeline.admin_client import admin_client
from tests.wait import wait_until

TIMEOUT_S = 90.0
"""Spark's first batch takes seconds, more on a busy machine."""

FAST_OPTIONS = {
    "kafka.session.timeout.ms": "6000",
    "kafka.heartbeat.interval.ms": "200",
    "auto.offset.reset": "earliest",
}


class QueryTable:
    """The topic, checkpoint and table of a query that may be started and stopped several times."""

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
            **FAST_OPTIONS,
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
        """Run until all records that are there now are read."""
        query = self._start(options, {"availableNow": True})
        assert query.awaitTermination(int(TIMEOUT_S)), query.status
        return query

    def values(self) -> Counter[str]:
        """How many times each value is in the table."""
        if not (self._directory / "table" / "_spark_metadata").exists():
            return Counter()
        table = self._spark.read.schema(SPARK_SCHEMA).parquet(f"{self._directory / 'table'}")
        rows = table.select("value").collect()
        return Counter(bytes(row.value).decode() for row in rows)

    def wait_for(self, values: Mapping[str, int] | Counter[str]) -> None:
        wait_until(lambda: self.values() == values, TIMEOUT_S, f"{len(values)} values")


def numbered(count: int, partitions: int, start: int = 0) -> list[ProducedRecord]:
    return [
        ProducedRecord(value=b"%d" % number, partition=number % partitions)
        for number in range(start, start + count)
    ]


def once_each(count: int, start: int = 0) -> Counter[str]:
    return Counter(str(number) for number in range(start, start + count))


class Group:
    """The group as the admin API shows it."""

    def __init__(self, cluster: Cluster, group_id: str) -> None:
        self.group_id = group_id
        self._bootstrap_servers = cluster.bootstrap_servers

    def describe(self) -> ConsumerGroupDescription:
        with admin_client(self._bootstrap_servers) as admin:
            return admin.describe_consumer_groups([self.group_id])[self.group_id].result(10)

    @property
    def state(self) -> str:
        return str(self.describe().state.name)

    @property
    def partition_counts(self) -> dict[str, int]:
        """The number of partitions of each member."""
        return {
            member.member_id: len(member.assignment.topic_partitions)
            for member in self.describe().members
        }

    def committed(self) -> dict[int, int]:
        wanted = [ConsumerGroupTopicPartitions(self.group_id)]
        with admin_client(self._bootstrap_servers) as admin:
            listed = admin.list_consumer_group_offsets(wanted)[self.group_id].result(10)
        found: list[TopicPartition] = listed.topic_partitions
        return {each.partition: each.offset for each in found}


def source_progress(query: StreamingQuery) -> dict[str, Any]:
    """The source's part of the last progress."""
    progress = query.lastProgress
    assert progress is not None
    sources: list[dict[str, Any]] = json.loads(progress.json)["sources"]
    return sources[0]


def offsets_in(directory: Path) -> dict[int, dict[str, Any]]:
    """The offsets of a checkpoint by batch; our offset is the last line of each file."""
    return {
        int(each.name): json.loads(each.read_text("utf-8").splitlines()[-1])
        for each in (directory / "offsets").iterdir()
        if each.name.isdecimal()
    }
