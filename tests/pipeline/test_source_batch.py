"""Batch queries: they read the records between two offsets of each partition."""

import json
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import kohort.pipeline
from kohort.types import Topic
from tests.apache.shared import SharedKafka
from tests.client.malformed_topic import READABLE, malformed_topic
from tests.client.node_cluster import Cluster, ProducedRecord, at

START_MS = int(time.time()) * 1000 - 60_000
"""Recent, so that retention does not delete the records."""


def read(spark: SparkSession, cluster: Cluster, **options: str) -> DataFrame:
    kohort.pipeline.register(spark)
    given = {name.replace("__", "."): text for name, text in options.items()}
    servers = {"kafka.bootstrap.servers": cluster.bootstrap_servers}
    return spark.read.format("kohort").options(**{**servers, **given}).load()


def offsets_of(frame: DataFrame) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for row in frame.select("partition", "offset").collect():
        found.setdefault(row.partition, []).append(row.offset)
    return {number: sorted(offsets) for number, offsets in sorted(found.items())}


@pytest.fixture(scope="module")
def topic(cluster: Cluster) -> Topic:
    """Ten records in each of two partitions, one millisecond apart."""
    topic = cluster.create_topic(2)
    records = [
        ProducedRecord(partition=partition, value=b"%d" % number, timestamp_ms=START_MS + number)
        for partition in range(2)
        for number in range(10)
    ]
    cluster.produce(topic, records)
    return topic


def test_rows_have_the_columns_of_spark_s_own_source(spark: SparkSession, cluster: Cluster) -> None:
    topic = cluster.create_topic()
    cluster.produce(
        topic,
        [
            ProducedRecord(key=b"k", value=b"v", headers=[("h", b"1")], timestamp_ms=START_MS),
            ProducedRecord(key=None, value=None, timestamp_ms=START_MS + 1),
        ],
    )

    rows = read(spark, cluster, subscribe=topic, includeHeaders="true").orderBy("offset").collect()

    first, second = (row.asDict(recursive=True) for row in rows)
    assert (first["key"], first["value"], first["topic"]) == (b"k", b"v", topic)
    assert (first["partition"], first["offset"], first["timestampType"]) == (0, 0, 0)
    assert first["timestamp"].timestamp() * 1000 == START_MS
    assert first["headers"] == [{"key": "h", "value": b"1"}]
    assert (second["key"], second["value"], second["headers"]) == (None, None, None)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_all_compression_types_are_read(spark: SparkSession, cluster: Cluster, codec: str) -> None:
    topic = cluster.create_topic()
    cluster.produce(
        topic, [ProducedRecord(value=b"%d" % number * 50) for number in range(300)], codec=codec
    )

    rows = read(spark, cluster, subscribe=topic).orderBy("offset").collect()

    assert [bytes(row.value) for row in rows] == [b"%d" % number * 50 for number in range(300)]


def test_a_query_starts_and_ends_at_offsets(
    spark: SparkSession, cluster: Cluster, topic: Topic
) -> None:
    frame = read(
        spark,
        cluster,
        subscribe=topic,
        startingOffsets=json.dumps({topic: {"0": 3, "1": -2}}),
        endingOffsets=json.dumps({topic: {"0": 5, "1": -1}}),
    )

    assert offsets_of(frame) == {0: [3, 4], 1: list(range(10))}


def test_a_query_starts_and_ends_at_timestamps(
    spark: SparkSession, cluster: Cluster, topic: Topic
) -> None:
    by_partition = read(
        spark,
        cluster,
        subscribe=topic,
        startingOffsetsByTimestamp=json.dumps({topic: {"0": START_MS + 8, "1": START_MS}}),
        endingOffsetsByTimestamp=json.dumps({topic: {"0": START_MS + 99, "1": START_MS + 2}}),
    )
    for_all = read(spark, cluster, subscribe=topic, startingTimestamp=str(START_MS + 9))

    assert offsets_of(by_partition) == {0: [8, 9], 1: [0, 1]}
    assert offsets_of(for_all) == {0: [9], 1: [9]}


def test_ranges_are_split_for_more_tasks(
    spark: SparkSession, cluster: Cluster, topic: Topic
) -> None:
    frame = read(spark, cluster, subscribe=topic, minPartitions="6")

    assert frame.rdd.getNumPartitions() >= 6
    assert offsets_of(frame) == {0: list(range(10)), 1: list(range(10))}


def test_assign_and_subscribe_pattern_select_partitions(
    spark: SparkSession, cluster: Cluster
) -> None:
    first = cluster.create_topic(2, name=f"{cluster.create_topic()}-shop-a")
    cluster.produce(first, [ProducedRecord(partition=1, value=b"x")])
    prefix = first.removesuffix("a")

    by_pattern = read(spark, cluster, subscribePattern=f"{prefix}.")
    by_part = read(spark, cluster, assign=json.dumps({first: [1]}))
    other_part = read(spark, cluster, assign=json.dumps({first: [0]}))

    assert (by_pattern.count(), by_part.count(), other_part.count()) == (1, 1, 0)


def test_a_batch_query_starts_at_the_committed_offsets_and_commits_nothing(
    spark: SparkSession, cluster: Cluster, topic: Topic
) -> None:
    group = cluster.name_group()
    with cluster.consumer(group_id=group) as consumer:
        consumer.commit({at(topic, 0): 7})

    frame = read(spark, cluster, subscribe=topic, group__id=group)

    assert offsets_of(frame) == {0: [7, 8, 9], 1: list(range(10))}
    with cluster.consumer(group_id=group) as consumer:
        found = consumer.committed([at(topic, 0), at(topic, 1)])
    assert [each.offset if each else None for each in found.values()] == [7, None]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"subscribe": "nowhere"}, "topic 'nowhere' does not exist"),
        ({"assign": '{"nowhere": [0]}'}, "nowhere-0 does not exist"),
        ({"subscribe": "t", "startingOffset": "earliest"}, "did you mean startingOffsets"),
        ({}, "subscribe, subscribePattern or assign"),
    ],
)
def test_a_wrong_query_fails_with_the_reason(
    spark: SparkSession, cluster: Cluster, options: dict[str, str], reason: str
) -> None:
    with pytest.raises(PySparkException, match=reason):
        read(spark, cluster, **options).count()


def test_lost_records_fail_the_query_unless_fail_on_data_loss_is_false(
    spark: SparkSession, cluster: Cluster
) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 10)
    cluster.delete_before(at(topic), 4)
    options = {"subscribe": topic, "startingOffsets": json.dumps({topic: {"0": 2}})}

    with pytest.raises(PySparkException, match="offsets 2 to 3"):
        read(spark, cluster, **options).count()

    assert offsets_of(read(spark, cluster, failOnDataLoss="false", **options)) == {
        0: [4, 5, 6, 7, 8, 9]
    }


def test_a_malformed_batch_fails_the_query_unless_it_is_skipped(
    spark: SparkSession, tmp_path: Path
) -> None:
    with malformed_topic(tmp_path) as (cluster, topic):
        with pytest.raises(PySparkException, match=f"{topic}-0 is corrupt at offset 1: "):
            read(spark, cluster, subscribe=topic).count()

        frame = read(spark, cluster, subscribe=topic, skipMalformedBatches="true")
        assert offsets_of(frame) == {0: READABLE}


def test_read_committed_skips_aborted_transactions(
    spark: SparkSession, apache_kafka: SharedKafka
) -> None:
    cluster = Cluster(bootstrap_servers=apache_kafka.bootstrap_servers)
    topic = cluster.create_topic()
    settings = {"bootstrap.servers": cluster.bootstrap_servers}
    with Producer({**settings, "transactional.id": f"{topic}-writer"}) as producer:
        producer.init_transactions()
        for value, end in (
            ("kept", producer.commit_transaction),
            ("aborted", producer.abort_transaction),
            ("kept too", producer.commit_transaction),
        ):
            producer.begin_transaction()
            producer.produce(topic, value=value)
            producer.flush()
            end()

    committed = {"kafka.isolation.level": "read_committed"}
    kept = read(spark, cluster, subscribe=topic, **committed).orderBy("offset").collect()

    assert [bytes(row.value) for row in kept] == [b"kept", b"kept too"]
    assert read(spark, cluster, subscribe=topic).count() == 3


def test_spark_finds_the_format_in_a_session_without_register(
    spark: SparkSession, cluster: Cluster, topic: Topic
) -> None:
    session = spark.newSession()
    options = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribe": topic}

    frame = session.read.format("kohort").options(**options).load()
    assert frame.count() == 20

    kohort.pipeline.register(session)
    assert session.read.format("kohort").options(**options).load().count() == 20
