"""Spark streaming queries on Kohort lose and repeat nothing across restarts."""

import json
from pathlib import Path

from tests.contract.spark import jobs
from tests.contract.spark.conftest import Node, Spark


def positions_of(rows: list[jobs.Row]) -> list[tuple[int | None, int]]:
    return [(row.partition, row.offset) for row in rows]


def test_a_second_run_reads_only_new_records(spark: Spark, node: Node, tmp_path: Path) -> None:
    topic = node.create_topic(2)
    options = node.options(subscribe=topic, startingOffsets="earliest")
    node.write(topic, 5, partition=0)
    first = spark.run(jobs.stream_to_files, options, tmp_path)
    node.write(topic, 3, partition=1)

    second = spark.run(jobs.stream_to_files, options, tmp_path)
    third = spark.run(jobs.stream_to_files, options, tmp_path)

    assert (sum(first.rows_per_batch), sum(second.rows_per_batch)) == (5, 3)
    assert third.rows_per_batch == ()
    found = spark.run(jobs.read_files, tmp_path)
    assert positions_of(found) == [(0, each) for each in range(5)] + [
        (1, each) for each in range(3)
    ]
    assert [row.value for row in found[:5]] == [f"value {number}" for number in range(5)]


def test_a_stream_can_start_at_any_offset(spark: Spark, node: Node, tmp_path: Path) -> None:
    topic = node.create_topic(2)
    for partition in range(2):
        node.write(topic, 6, partition=partition, time_ms=1_700_000_000_000)
    by_offset = json.dumps({topic: {"0": 4, "1": 6}})
    by_moment = json.dumps({topic: {"0": 1_700_000_000_005, "1": 1_700_000_000_003}})

    options = node.options(subscribe=topic, startingOffsets=by_offset)
    spark.run(jobs.stream_to_files, options, tmp_path / "offset")
    options = node.options(subscribe=topic, startingOffsetsByTimestamp=by_moment)
    spark.run(jobs.stream_to_files, options, tmp_path / "timestamp")

    assert positions_of(spark.run(jobs.read_files, tmp_path / "offset")) == [(0, 4), (0, 5)]
    assert positions_of(spark.run(jobs.read_files, tmp_path / "timestamp")) == [
        (0, 5),
        (1, 3),
        (1, 4),
        (1, 5),
    ]


def test_a_run_can_consist_of_many_small_batches(spark: Spark, node: Node, tmp_path: Path) -> None:
    topic = node.create_topic()
    node.write(topic, 25)
    options = node.options(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="10")

    run = spark.run(jobs.stream_to_files, options, tmp_path)

    assert run.rows_per_batch == (10, 10, 5)
    assert positions_of(spark.run(jobs.read_files, tmp_path)) == [(0, each) for each in range(25)]


def test_new_topics_and_partitions_are_read(spark: Spark, node: Node, tmp_path: Path) -> None:
    word = node.unique_name("pattern")
    first = node.create_topic(1, f"{word}.a")
    options = node.options(subscribePattern=f"{word}\\..*", startingOffsets="earliest")
    node.write(first, 2)
    spark.run(jobs.stream_to_files, options, tmp_path)
    node.grow_topic(first, 2)
    node.write(first, 2, partition=1)
    second = node.create_topic(1, f"{word}.b")
    node.write(second, 2)

    run = spark.run(jobs.stream_to_files, options, tmp_path)

    assert sum(run.rows_per_batch) == 4
    found = spark.run(jobs.read_files, tmp_path)
    assert [(row.topic, row.partition, row.offset) for row in found] == [
        *((first, 0, offset) for offset in range(2)),
        *((first, 1, offset) for offset in range(2)),
        *((second, 0, offset) for offset in range(2)),
    ]


def test_a_stream_copies_topics_to_a_topic(spark: Spark, node: Node, tmp_path: Path) -> None:
    source, target = node.create_topic(2), node.create_topic(2)
    for partition in range(2):
        node.write(source, 20, partition=partition)
    options = node.options(subscribe=source, startingOffsets="earliest")

    first = spark.run(jobs.stream_to_kafka, options, node.options(topic=target), tmp_path)
    again = spark.run(jobs.stream_to_kafka, options, node.options(topic=target), tmp_path)

    found = spark.run(jobs.read, node.options(subscribe=target))
    assert (sum(first.rows_per_batch), again.rows_per_batch) == (40, ())
    assert sorted(row.value or "" for row in found) == sorted(
        f"value {number}" for number in range(20) for _ in range(2)
    )


def test_deleted_records_fail_the_query_only_if_configured(
    spark: Spark, node: Node, tmp_path: Path
) -> None:
    topic = node.create_topic()
    options = node.options(subscribe=topic, startingOffsets="earliest")
    node.write(topic, 3)
    spark.run(jobs.stream_to_files, options, tmp_path)
    node.write(topic, 5)
    node.delete_before(topic, 6)

    strict = spark.run(jobs.stream_to_files, options, tmp_path)
    lenient = spark.run(jobs.stream_to_files, {**options, "failOnDataLoss": "false"}, tmp_path)

    assert strict.failure is not None
    assert lenient.failure is None
    assert positions_of(spark.run(jobs.read_files, tmp_path)) == [
        (0, offset) for offset in (0, 1, 2, 6, 7)
    ]
