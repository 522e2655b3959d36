"""Topics into tables: rows, directories, records that do not fit, and every record once."""

import datetime
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import kohort
from kohort.pipeline import ingest
from kohort.pipeline.ingest.files import Files
from kohort.pipeline.ingest.table import NotOurs, Table, TakenOver
from kohort.pipeline.ingest.wish import EndedAtOnce, Progress
from tests.pipeline.ingesting import (
    Broker,
    all_places,
    commits_in,
    numbered,
    places_in,
    wish_for,
)

SCHEMA = "id BIGINT NOT NULL, name STRING, amount DOUBLE, lines ARRAY<STRUCT<sku: STRING NOT NULL>>"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    # Some records here are years old, and a run may be long enough for housekeeping.
    settings = {"group.initial.rebalance.delay.ms": 0, "log.retention.ms": -1}
    with kohort.Node(settings=settings) as node:
        yield Broker(node.bootstrap_servers)


# Rows


def test_raw_records_keep_every_column(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    topic = broker.make_topic(2)
    broker.write(topic, [b"a", b"", None], key=b"k", headers=[("h", b"1"), ("h", None)])
    broker.write(topic, [b"\xff\x00"], partition=1, timestamp=1_700_000_000_123)

    summary = ingest.run(spark, wish_for(broker, topic, tmp_path / "t"))

    table = ingest.read(spark, str(tmp_path / "t"))
    rows = table.orderBy("partition", "offset").collect()
    times = table.selectExpr("partition", "cast(timestamp as string)")
    assert (summary.rows, summary.bad, summary.lag) == (4, 0, 0)
    assert [row["value"] for row in rows] == [b"a", b"", None, b"\xff\x00"]
    assert [row["offset"] for row in rows] == [0, 1, 2, 0]
    assert {row["topic"] for row in rows} == {topic}
    assert rows[0]["key"] == b"k"
    assert [tuple(each) for each in rows[0]["headers"]] == [("h", b"1"), ("h", None)]
    assert times.where("partition = 1").collect()[0][1] == "2023-11-14 22:13:20.123"


def test_json_becomes_columns_in_directories(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    topic = broker.make_topic(2)
    values = [{"id": n, "name": "0" * n, "lines": [{"sku": "x"}]} for n in (1, 2)]
    for partition, value in enumerate(values):
        given = {"partition": partition, "timestamp": 1_700_000_000_000}
        broker.write(topic, [json.dumps(value).encode()], **given)

    wish = wish_for(
        broker, topic, tmp_path / "t", schema=SCHEMA, partition_by=("date", "hour", "name")
    )
    ingest.run(spark, wish)

    day = tmp_path / "t" / "data" / "batch=0" / "date=2023-11-14" / "hour=22"
    rows = ingest.read(spark, str(tmp_path / "t")).orderBy("id").collect()
    assert sorted(path.name for path in day.iterdir()) == ["name=0", "name=00"]
    # Who only sees directories would take these names for numbers.
    assert [(row["id"], row["name"], row["hour"]) for row in rows] == [(1, "0", 22), (2, "00", 22)]
    assert [row["_record"]["partition"] for row in rows] == [0, 1]
    assert rows[0]["date"] == datetime.date(2023, 11, 14)
    assert rows[0]["lines"][0]["sku"] == "x"
    assert spark.read.parquet(str(tmp_path / "t" / "data")).count() == 2


BAD = {
    None: "the value is null",
    b"": "the value is empty",
    b"  ": "the value is empty",
    b"garbage": "not JSON",
    b'{"id": 1': "not JSON",
    b'{"id": 1} and more': "not JSON",
    b'{"id": 1}}': "not JSON",
    b'{"id": 1}] [': "not JSON",
    b"{'id': 1}": "not JSON",
    b'{"id": 1}{"id": 2}': "not JSON",
    b'{"id": 1},{"id": 2}': "more than one JSON value",
    b'{"id": 1, "name": "\xff"}': "not UTF-8",
    b"[1]": "no JSON object",
    b'[{"id": 1}]': "no JSON object",
    b"null": "no JSON object",
    b"7": "no JSON object",
    b'{"name": "x"}': "id is missing",
    b'{"id": null}': "id is missing",
    b'{"id": "x", "amount": true}': "id is no bigint; amount is no double",
    b'{"id": 9223372036854775808}': "id is no bigint",
    b'{"id": 1, "lines": [{"sku": "x"}, {}]}': "does not fit the schema",
}

GOOD = (
    b'{"id": 1}',
    b' {"id": 2, "else": [{}]} \n',
    b'{"id": 3, "name": null, "lines": []}',
    b'{"id": 4, "name": "}] {[", "amount": 1}',
)


def test_what_does_not_fit_is_kept_aside_with_its_reason(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    topic = broker.make_topic()
    broker.write(topic, [*BAD, *GOOD], key=b"k")

    summary = ingest.run(spark, wish_for(broker, topic, tmp_path / "t", schema=SCHEMA))

    bad = ingest.read_bad(spark, str(tmp_path / "t")).collect()
    found = {None if row["value"] is None else bytes(row["value"]): row["reason"] for row in bad}
    rows = ingest.read(spark, str(tmp_path / "t")).collect()
    assert found == BAD
    assert (summary.rows, summary.bad) == (len(GOOD), len(BAD))
    assert sorted(row["id"] for row in rows) == [1, 2, 3, 4]
    assert {row["topic"] for row in bad} == {topic}
    assert {bytes(row["key"]) for row in bad} == {b"k"}


def test_an_empty_topic_makes_an_empty_table(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    topic = broker.make_topic()

    summary = ingest.run(spark, wish_for(broker, topic, tmp_path / "t", schema=SCHEMA))

    table = ingest.read(spark, str(tmp_path / "t"))
    assert (summary.rows, summary.rows_total) == (0, 0)
    assert table.count() == ingest.read_bad(spark, str(tmp_path / "t")).count() == 0
    assert table.columns == ["id", "name", "amount", "lines", "_record", "batch"]


# Every record once


def test_a_second_run_adds_only_what_is_new(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    topic = broker.make_topic(2)
    wish = wish_for(broker, topic, tmp_path, rows_max=6)
    broker.write(topic, numbered(range(10)))

    first = ingest.run(spark, wish)
    broker.write(topic, numbered(range(5)), partition=1)
    second = ingest.run(spark, wish)
    third = ingest.run(spark, wish)

    assert [(each.rows, each.rows_total) for each in (first, second, third)] == [
        (10, 10),
        (5, 15),
        (0, 15),
    ]
    assert all(each.is_group_told and each.has_left for each in (first, second, third))
    assert places_in(tmp_path) == all_places([10, 5])
    assert broker.committed(wish.group_id) == {0: 10, 1: 5}
    assert broker.state_of(wish.group_id) == "EMPTY"


@pytest.mark.parametrize("lost", [("log",), ("log", "commit"), ("log", "commit", "data")])
def test_a_batch_that_is_run_again_is_there_once(
    spark: SparkSession, broker: Broker, tmp_path: Path, lost: tuple[str, ...]
) -> None:
    """As after a crash: between the last of these being written and the first."""
    topic = broker.make_topic()
    wish = wish_for(broker, topic, tmp_path / "t", schema="id BIGINT")
    broker.write(topic, [*numbered(range(10)), b"bad"])
    ingest.run(spark, wish)
    places = {
        "log": "_checkpoint/commits/0",
        "commit": "_commits/0.json",
        "data": "data/batch=0",
    }
    for name in lost:
        remove(tmp_path / "t" / places[name])
    half = tmp_path / "t" / "_staging" / "former" / "data" / "batch=0" / "part-0.parquet"
    half.parent.mkdir(parents=True)
    half.write_bytes(b"torn")
    before = ingest.read(spark, str(tmp_path / "t")).count()

    broker.write(topic, numbered(range(10, 15)))
    summary = ingest.run(spark, wish)

    rows = ingest.read(spark, str(tmp_path / "t")).collect()
    assert before == (10 if lost == ("log",) else 0)
    assert sorted(row["id"] for row in rows) == list(range(15))
    assert (summary.rows_total, summary.bad_total) == (15, 1)
    assert spark.read.parquet(str(tmp_path / "t" / "data")).count() == 15
    assert ingest.read_bad(spark, str(tmp_path / "t")).count() == 1
    assert not half.exists()
    assert broker.committed(wish.group_id) == {0: 16}


def test_columns_may_be_added_to_a_table(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    topic = broker.make_topic()
    broker.write(topic, [b'{"id": 1, "name": "early"}'])
    ingest.run(spark, wish_for(broker, topic, tmp_path, schema="id INT"))
    broker.write(topic, [b'{"id": 2, "name": "late"}'])
    ingest.run(spark, wish_for(broker, topic, tmp_path, schema="id INT, name STRING"))

    rows = ingest.read(spark, str(tmp_path)).orderBy("id").collect()

    assert [(row["id"], row["name"]) for row in rows] == [(1, None), (2, "late")]


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
        path.with_name(f".{path.name}.crc").unlink()


def test_an_older_checkpoint_is_not_taken_for_the_tables(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    topic = broker.make_topic()
    wish = wish_for(broker, topic, tmp_path / "t")
    broker.write(topic, numbered(range(3)))
    ingest.run(spark, wish)
    shutil.copytree(tmp_path / "t" / "_checkpoint", tmp_path / "older")
    broker.write(topic, numbered(range(3)))
    ingest.run(spark, wish)

    shutil.rmtree(tmp_path / "t" / "_checkpoint")
    with pytest.raises(NotOurs, match="_checkpoint is gone"):
        ingest.run(spark, wish)
    shutil.copytree(tmp_path / "older", tmp_path / "t" / "_checkpoint")
    broker.write(topic, numbered(range(3)))
    with pytest.raises(NotOurs, match="older than the table, which has batch 1"):
        ingest.run(spark, wish)

    assert places_in(tmp_path / "t") == all_places([6])


def test_a_run_that_was_taken_over_publishes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    table = Table(Files(spark, str(tmp_path)))
    table.claim("first")
    staged = table.stage("first", 0, "data")
    table.files.make_directory(staged)
    table.claim("second")

    with pytest.raises(TakenOver, match="another ingest writes to"):
        table.publish("first", 0, {"data": staged}, rows=1, bad=0)

    assert table.find_last_commit() is None
    assert not table.files.exists("data")


# Continuous


def test_it_goes_on_until_it_is_told_to_end(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    topic = broker.make_topic(2)
    wish = wish_for(broker, topic, tmp_path, is_continuous=True, rows_max=4)
    broker.write(topic, numbered(range(10)))
    ending = ingest.Ending()
    seen: list[Progress] = []

    def watch(progress: Progress) -> None:
        seen.append(progress)
        if progress.rows == 10 and progress.lag == 0 and len(commits_in(tmp_path)) < 4:
            broker.write(topic, numbered(range(5)), partition=1)
        if progress.rows >= 12:
            ending.after_batch.set()

    summary = ingest.run(spark, wish, ending=ending, watch=watch)

    done = broker.committed(wish.group_id)
    assert summary.is_interrupted
    assert summary.is_group_told
    assert summary.has_left
    assert places_in(tmp_path) == all_places([done[0], done[1]])
    assert summary.rows == sum(done.values()) >= 12
    assert broker.state_of(wish.group_id) == "EMPTY"
    assert {"stable"} <= {each.group_state for each in seen}


def test_in_a_hurry_it_leaves_the_batch_to_the_next_run(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    topic = broker.make_topic()
    broker.write(topic, numbered(range(20_000)))
    wish = wish_for(broker, topic, tmp_path, is_continuous=True, rows_max=100)
    ending = ingest.Ending()

    def watch(progress: Progress) -> None:
        if progress.batches:
            ending.at_once.set()

    with pytest.raises(EndedAtOnce):
        ingest.run(spark, wish, ending=ending, watch=watch)
    broker.await_state(wish.group_id, "EMPTY")
    left = ingest.read(spark, str(tmp_path)).count()
    ingest.run(spark, wish_for(broker, topic, tmp_path))

    assert 0 < left < 20_000
    assert places_in(tmp_path) == all_places([20_000])
