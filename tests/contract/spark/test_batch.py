"""Spark batch queries on Kohort, by offsets and by timestamps."""

import json

import pytest

from tests.contract.spark import jobs
from tests.contract.spark.conftest import Node, Spark

START_MS = 1_700_000_000_000


def offsets_of(rows: list[jobs.Row]) -> dict[tuple[str, int | None], list[int]]:
    found: dict[tuple[str, int | None], list[int]] = {}
    for row in rows:
        found.setdefault((row.topic, row.partition), []).append(row.offset)
    return found


def test_written_rows_are_read_again(spark: Spark, node: Node) -> None:
    first, second = node.create_topic(2), node.create_topic()
    rows = [
        jobs.Row(topic=first, partition=0, key="a", value="1", headers=(("h", b"x"), ("h", b"y"))),
        jobs.Row(topic=first, partition=1, key=None, value="2"),
        jobs.Row(topic=second, partition=0, key="c", value=None),
    ]

    spark.run(jobs.write, node.options(), rows)
    found = spark.run(jobs.read, node.options(subscribe=f"{first},{second}"))

    expected = [(row.topic, row.partition, row.key, row.value, row.headers) for row in rows]
    assert [
        (row.topic, row.partition, row.key, row.value, row.headers) for row in found
    ] == expected
    assert [row.offset for row in found] == [0, 0, 0]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_writes_are_read(spark: Spark, node: Node, codec: str) -> None:
    topic = node.create_topic()
    rows = [jobs.Row(topic=topic, value=f"{codec} {number}" * 20) for number in range(50)]

    spark.run(jobs.write, node.options(**{"kafka.compression.type": codec}), rows)
    found = spark.run(jobs.read, node.options(subscribe=topic))

    assert {row.value for row in found} == {row.value for row in rows}


def test_a_write_creates_the_topic(spark: Spark, node: Node) -> None:
    topic = node.unique_name("made")

    spark.run(jobs.write, node.options(topic=topic), [jobs.Row(topic=topic, value="v")])
    found = spark.run(jobs.read, node.options(subscribe=topic))

    assert [row.value for row in found] == ["v"]


def test_a_query_starts_and_ends_at_offsets(spark: Spark, node: Node) -> None:
    topic = node.create_topic(3)
    for partition in range(3):
        node.write(topic, 10, partition=partition)
    begin = json.dumps({topic: {"0": 4, "1": -2, "2": 9}})
    end = json.dumps({topic: {"0": 7, "1": 3, "2": -1}})

    found = spark.run(
        jobs.read, node.options(subscribe=topic, startingOffsets=begin, endingOffsets=end)
    )

    assert offsets_of(found) == {(topic, 0): [4, 5, 6], (topic, 1): [0, 1, 2], (topic, 2): [9]}


def test_a_query_starts_and_ends_at_timestamps(spark: Spark, node: Node) -> None:
    topic = node.create_topic(2)
    node.write(topic, 10, partition=0, time_ms=START_MS)
    node.write(topic, 10, partition=1, time_ms=START_MS + 5)
    begin = json.dumps({topic: {"0": START_MS + 3, "1": START_MS + 6}})
    end = json.dumps({topic: {"0": START_MS + 6, "1": START_MS + 8}})

    apart = node.options(startingOffsetsByTimestamp=begin, endingOffsetsByTimestamp=end)
    together = node.options(startingTimestamp=f"{START_MS + 7}", endingTimestamp=f"{START_MS + 9}")

    assert offsets_of(spark.run(jobs.read, {**apart, "subscribe": topic})) == {
        (topic, 0): [3, 4, 5],
        (topic, 1): [1, 2],
    }
    assert offsets_of(spark.run(jobs.read, {**together, "subscribe": topic})) == {
        (topic, 0): [7, 8],
        (topic, 1): [2, 3],
    }


def test_topics_are_selected_by_pattern_or_partition(spark: Spark, node: Node) -> None:
    word = node.unique_name("pattern")
    topics = [node.create_topic(2, f"{word}.{ending}") for ending in "ab"]
    for topic in topics:
        node.write(topic, 2, partition=1)
    places = json.dumps({topics[0]: [0, 1]})

    by_pattern = spark.run(jobs.read, node.options(subscribePattern=f"{word}\\..*"))
    by_place = spark.run(jobs.read, node.options(assign=places))

    assert offsets_of(by_pattern) == {(topic, 1): [0, 1] for topic in topics}
    assert offsets_of(by_place) == {(topics[0], 1): [0, 1]}


def test_one_partition_is_read_by_many_tasks(spark: Spark, node: Node) -> None:
    topic = node.create_topic()
    node.write(topic, 100)

    found, tasks = spark.run(jobs.count, node.options(subscribe=topic, minPartitions="4"))

    assert found == 100
    assert tasks >= 4


def test_deleted_records_are_not_read(spark: Spark, node: Node) -> None:
    topic = node.create_topic()
    node.write(topic, 10)
    node.delete_before(topic, 6)

    found = spark.run(jobs.read, node.options(subscribe=topic))

    assert offsets_of(found) == {(topic, 0): [6, 7, 8, 9]}
