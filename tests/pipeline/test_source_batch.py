"""Batch queries: what lies between two places of a topic, once."""

import json
import time

import pytest
from confluent_kafka import Producer
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import kohort.pipeline
from kohort.types import Topic
from tests.apache.cluster import Kafka
from tests.client.clusters import Cluster, Written, at

START_MS = int(time.time()) * 1000 - 60_000
"""Not long ago, or retention would have its way."""


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
    """Ten records in each of two partitions, a thousandth of a second apart."""
    topic = cluster.create_topic(2)
    records = [
        Written(partition=partition, value=b"%d" % number, timestamp_ms=START_MS + number)
        for partition in range(2)
        for number in range(10)
    ]
    cluster.produce(topic, records)
    return topic


def test_records_become_rows_with_the_columns_of_spark_s_own_source(
    spark: SparkSession, cluster: Cluster
) -> None:
    topic = cluster.create_topic()
    cluster.produce(
        topic,
        [
            Written(key=b"k", value=b"v", headers=[("h", b"1")], timestamp_ms=START_MS),
            Written(key=None, value=None, timestamp_ms=START_MS + 1),
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
def test_compressed_records_are_read(spark: SparkSession, cluster: Cluster, codec: str) -> None:
    topic = cluster.create_topic()
    cluster.produce(
        topic, [Written(value=b"%d" % number * 50) for number in range(300)], codec=codec
    )

    rows = read(spark, cluster, subscribe=topic).orderBy("offset").collect()

    assert [bytes(row.value) for row in rows] == [b"%d" % number * 50 for number in range(300)]


def test_reading_begins_and_ends_at_offsets(
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


def test_reading_begins_and_ends_at_moments(
    spark: SparkSession, cluster: Cluster, topic: Topic
) -> None:
    apart = read(
        spark,
        cluster,
        subscribe=topic,
        startingOffsetsByTimestamp=json.dumps({topic: {"0": START_MS + 8, "1": START_MS}}),
        endingOffsetsByTimestamp=json.dumps({topic: {"0": START_MS + 99, "1": START_MS + 2}}),
    )
    together = read(spark, cluster, subscribe=topic, startingTimestamp=str(START_MS + 9))

    assert offsets_of(apart) == {0: [8, 9], 1: [0, 1]}
    assert offsets_of(together) == {0: [9], 1: [9]}


def test_ranges_are_split_for_more_tasks(
    spark: SparkSession, cluster: Cluster, topic: Topic
) -> None:
    frame = read(spark, cluster, subscribe=topic, minPartitions="6")

    assert frame.rdd.getNumPartitions() >= 6
    assert offsets_of(frame) == {0: list(range(10)), 1: list(range(10))}


def test_partitions_and_patterns_choose_what_is_read(spark: SparkSession, cluster: Cluster) -> None:
    first = cluster.create_topic(2, name=f"{cluster.create_topic()}-shop-a")
    cluster.produce(first, [Written(partition=1, value=b"x")])
    prefix = first.removesuffix("a")

    by_pattern = read(spark, cluster, subscribePattern=f"{prefix}.")
    by_part = read(spark, cluster, assign=json.dumps({first: [1]}))
    elsewhere = read(spark, cluster, assign=json.dumps({first: [0]}))

    assert (by_pattern.count(), by_part.count(), elsewhere.count()) == (1, 1, 0)


def test_a_group_says_where_to_begin_and_hears_of_nothing(
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
    ("options", "complaint"),
    [
        ({"subscribe": "nowhere"}, "topic 'nowhere' does not exist"),
        ({"assign": '{"nowhere": [0]}'}, "nowhere-0 does not exist"),
        ({"subscribe": "t", "startingOffset": "earliest"}, "did you mean startingOffsets"),
        ({}, "subscribe, subscribePattern or assign"),
    ],
)
def test_a_query_that_cannot_be_read_says_why(
    spark: SparkSession, cluster: Cluster, options: dict[str, str], complaint: str
) -> None:
    with pytest.raises(PySparkException, match=complaint):
        read(spark, cluster, **options).count()


def test_a_broker_that_is_not_there_is_named(spark: SparkSession, cluster: Cluster) -> None:
    options = {"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.default.api.timeout.ms": "1000"}

    with pytest.raises(PySparkException, match=r"127\.0\.0\.1:1|no broker"):
        read(spark, cluster, subscribe="t", **options).count()


def test_records_that_are_gone_fail_the_query_unless_it_is_told_otherwise(
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


def test_aborted_transactions_are_left_out_where_that_is_asked_for(
    spark: SparkSession, apache_kafka: Kafka
) -> None:
    cluster = Cluster(bootstrap_servers=apache_kafka.bootstrap_servers)
    topic = cluster.create_topic()
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": f"{topic}-writer"}
    )
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
