"""Ingest topics to tables: rows, partition directories, bad records, exactly-once writes."""

import datetime
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import kohort
from kohort.pipeline import ingest
from kohort.pipeline.ingest.hadoop_fs import HadoopFiles
from kohort.pipeline.ingest.run_status import IngestProgress, StoppedImmediately
from kohort.pipeline.ingest.table import IngestTable, TableMismatch, TableTakenOver
from tests.pipeline.ingest_setup import (
    IngestBroker,
    commits_in,
    numbered,
    options_for,
    rows_in,
    rows_up_to,
)

SCHEMA = "id BIGINT NOT NULL, name STRING, amount DOUBLE, lines ARRAY<STRUCT<sku: STRING NOT NULL>>"


@pytest.fixture(scope="module")
def broker() -> Iterator[IngestBroker]:
    # Some records are years old; retention must not delete them.
    settings = {"group.initial.rebalance.delay.ms": 0, "log.retention.ms": -1}
    with kohort.Node(settings=settings) as node:
        yield IngestBroker(node.bootstrap_servers)


# Rows


def test_raw_records_keep_every_column(
    spark: SparkSession, broker: IngestBroker, tmp_path: Path
) -> None:
    topic = broker.create_topic(2)
    broker.write(topic, [b"a", b"", None], key=b"k", headers=[("h", b"1"), ("h", None)])
    broker.write(topic, [b"\xff\x00"], partition=1, timestamp=1_700_000_000_123)

    summary = ingest.run(spark, options_for(broker, topic, tmp_path / "t"))

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


def test_json_is_parsed_to_columns_and_partition_directories(
    spark: SparkSession, broker: IngestBroker, tmp_path: Path
) -> None:
    topic = broker.create_topic(2)
    values = [{"id": n, "name": "0" * n, "lines": [{"sku": "x"}]} for n in (1, 2)]
    for partition, value in enumerate(values):
        given = {"partition": partition, "timestamp": 1_700_000_000_000}
        broker.write(topic, [json.dumps(value).encode()], **given)

    options = options_for(
        broker, topic, tmp_path / "t", schema=SCHEMA, partition_by=("date", "hour", "name")
    )
    ingest.run(spark, options)

    day = tmp_path / "t" / "data" / "batch=0" / "date=2023-11-14" / "hour=22"
    rows = ingest.read(spark, str(tmp_path / "t")).orderBy("id").collect()
    assert sorted(path.name for path in day.iterdir()) == ["name=0", "name=00"]
    # A reader that infers types from directories takes these names for numbers.
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
    b"[1]": "not a JSON object",
    b'[{"id": 1}]': "not a JSON object",
    b"null": "not a JSON object",
    b"7": "not a JSON object",
    b'{"name": "x"}': "id is missing",
    b'{"id": null}': "id is missing",
    b'{"id": "x", "amount": true}': "id is not bigint; amount is not double",
    b'{"id": 9223372036854775808}': "id is not bigint",
    b'{"id": 1, "lines": [{"sku": "x"}, {}]}': "does not fit the schema",
}

GOOD = (
    b'{"id": 1}',
    b' {"id": 2, "else": [{}]} \n',
    b'{"id": 3, "name": null, "lines": []}',
    b'{"id": 4, "name": "}] {[", "amount": 1}',
)


def test_bad_records_are_stored_with_their_reason(
    spark: SparkSession, broker: IngestBroker, tmp_path: Path
) -> None:
    topic = broker.create_topic()
    broker.write(topic, [*BAD, *GOOD], key=b"k")

    summary = ingest.run(spark, options_for(broker, topic, tmp_path / "t", schema=SCHEMA))

    bad = ingest.read_bad(spark, str(tmp_path / "t")).collect()
    found = {None if row["value"] is None else bytes(row["value"]): row["reason"] for row in bad}
    rows = ingest.read(spark, str(tmp_path / "t")).collect()
    assert found == BAD
    assert (summary.rows, summary.bad) == (len(GOOD), len(BAD))
    assert sorted(row["id"] for row in rows) == [1, 2, 3, 4]
    assert {row["topic"] for row in bad} == {topic}
    assert {bytes(row["key"]) for row in bad} == {b"k"}


def test_an_empty_topic_gives_an_empty_table(
    spark: SparkSession, broker: IngestBroker, tmp_path: Path
) -> None:
    topic = broker.create_topic()

    summary = ingest.run(spark, options_for(broker, topic, tmp_path / "t", schema=SCHEMA))

    table = ingest.read(spark, str(tmp_path / "t"))
    assert (summary.rows, summary.rows_total) == (0, 0)
    assert table.count() == ingest.read_bad(spark, str(tmp_path / "t")).count() == 0
    assert table.columns == ["id", "name", "amount", "lines", "_record", "batch"]


# Exactly once


def test_a_second_run_adds_only_new_records(
    spark: SparkSession, broker: IngestBroker, tmp_path: Path
) -> None:
    topic = broker.create_topic(2)
    options = options_for(broker, topic, tmp_path, rows_max=6)
    broker.write(topic, numbered(range(10)))

    first = ingest.run(spark, options)
    broker.write(topic, numbered(range(5)), partition=1)
    second = ingest.run(spark, options)
    third = ingest.run(spark, options)

    assert [(each.rows, each.rows_total) for each in (first, second, third)] == [
        (10, 10),
        (5, 15),
        (0, 15),
    ]
    assert all(each.is_group_committed and each.has_left for each in (first, second, third))
    assert rows_in(tmp_path) == rows_up_to([10, 5])
    assert broker.committed(options.group_id) == {0: 10, 1: 5}
    assert broker.state_of(options.group_id) == "EMPTY"


@pytest.mark.parametrize(
    "lost",
    [
        pytest.param(("log",), marks=pytest.mark.full),
        pytest.param(("log", "commit"), marks=pytest.mark.full),
        ("log", "commit", "data"),
    ],
)
def test_a_repeated_batch_is_in_the_table_once(
    spark: SparkSession, broker: IngestBroker, tmp_path: Path, lost: tuple[str, ...]
) -> None:
    """As after a crash between the write of the last of these files and the first."""
    topic = broker.create_topic()
    options = options_for(broker, topic, tmp_path / "t", schema="id BIGINT")
    broker.write(topic, [*numbered(range(10)), b"bad"])
    ingest.run(spark, options)
    files = {
        "log": "_checkpoint/commits/0",
        "commit": "_commits/0.json",
        "data": "data/batch=0",
    }
    for name in lost:
        remove(tmp_path / "t" / files[name])
    torn = tmp_path / "t" / "_staging" / "former" / "data" / "batch=0" / "part-0.parquet"
    torn.parent.mkdir(parents=True)
    torn.write_bytes(b"torn")
    before = ingest.read(spark, str(tmp_path / "t")).count()

    broker.write(topic, numbered(range(10, 15)))
    summary = ingest.run(spark, options)

    rows = ingest.read(spark, str(tmp_path / "t")).collect()
    assert before == (10 if lost == ("log",) else 0)
    assert sorted(row["id"] for row in rows) == list(range(15))
    assert (summary.rows_total, summary.bad_total) == (15, 1)
    assert spark.read.parquet(str(tmp_path / "t" / "data")).count() == 15
    assert ingest.read_bad(spark, str(tmp_path / "t")).count() == 1
    assert not torn.exists()
    assert broker.committed(options.group_id) == {0: 16}


def test_columns_can_be_added_to_a_table(
    spark: SparkSession, broker: IngestBroker, tmp_path: Path
) -> None:
    topic = broker.create_topic()
    broker.write(topic, [b'{"id": 1, "name": "early"}'])
    ingest.run(spark, options_for(broker, topic, tmp_path, schema="id INT"))
    broker.write(topic, [b'{"id": 2, "name": "late"}'])
    ingest.run(spark, options_for(broker, topic, tmp_path, schema="id INT, name STRING"))

    rows = ingest.read(spark, str(tmp_path)).orderBy("id").collect()

    assert [(row["id"], row["name"]) for row in rows] == [(1, None), (2, "late")]


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
        path.with_name(f".{path.name}.crc").unlink()


def test_a_missing_or_older_checkpoint_is_refused(
    spark: SparkSession, broker: IngestBroker, tmp_path: Path
) -> None:
    topic = broker.create_topic()
    options = options_for(broker, topic, tmp_path / "t")
    broker.write(topic, numbered(range(3)))
    ingest.run(spark, options)
    shutil.copytree(tmp_path / "t" / "_checkpoint", tmp_path / "older")
    broker.write(topic, numbered(range(3)))
    ingest.run(spark, options)

    shutil.rmtree(tmp_path / "t" / "_checkpoint")
    with pytest.raises(TableMismatch, match="_checkpoint is missing"):
        ingest.run(spark, options)
    shutil.copytree(tmp_path / "older", tmp_path / "t" / "_checkpoint")
    broker.write(topic, numbered(range(3)))
    with pytest.raises(TableMismatch, match="older than the table, which has batch 1"):
        ingest.run(spark, options)

    assert rows_in(tmp_path / "t") == rows_up_to([6])


def test_a_run_that_was_replaced_publishes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    table = IngestTable(HadoopFiles(spark, str(tmp_path)))
    table.claim("first")
    staged = table.stage("first", 0, "data")
    table.files.make_directory(staged)
    table.claim("second")

    with pytest.raises(TableTakenOver, match="another ingest now writes to"):
        table.publish("first", 0, {"data": staged}, rows=1, bad=0)

    assert table.find_last_commit() is None
    assert not table.files.exists("data")


# Continuous


def test_a_continuous_run_stops_after_a_batch_on_request(
    spark: SparkSession, broker: IngestBroker, tmp_path: Path
) -> None:
    topic = broker.create_topic(2)
    options = options_for(broker, topic, tmp_path, is_continuous=True, rows_max=4)
    broker.write(topic, numbered(range(10)))
    stop = ingest.StopRequest()
    seen: list[IngestProgress] = []

    def on_progress(progress: IngestProgress) -> None:
        seen.append(progress)
        if progress.rows == 10 and progress.lag == 0 and len(commits_in(tmp_path)) < 4:
            broker.write(topic, numbered(range(5)), partition=1)
        if progress.rows >= 12:
            stop.after_batch.set()

    summary = ingest.run(spark, options, stop=stop, on_progress=on_progress)

    done = broker.committed(options.group_id)
    assert summary.is_interrupted
    assert summary.is_group_committed
    assert summary.has_left
    assert rows_in(tmp_path) == rows_up_to([done[0], done[1]])
    assert summary.rows == sum(done.values()) >= 12
    assert broker.state_of(options.group_id) == "EMPTY"
    assert {"stable"} <= {each.group_state for each in seen}


def test_an_immediate_stop_leaves_the_batch_to_the_next_run(
    spark: SparkSession, broker: IngestBroker, tmp_path: Path
) -> None:
    topic = broker.create_topic()
    broker.write(topic, numbered(range(20_000)))
    options = options_for(broker, topic, tmp_path, is_continuous=True, rows_max=100)
    stop = ingest.StopRequest()

    def on_progress(progress: IngestProgress) -> None:
        if progress.batches:
            stop.immediately.set()

    with pytest.raises(StoppedImmediately):
        ingest.run(spark, options, stop=stop, on_progress=on_progress)
    broker.wait_for_state(options.group_id, "EMPTY")
    left = ingest.read(spark, str(tmp_path)).count()
    ingest.run(spark, options_for(broker, topic, tmp_path))

    assert 0 < left < 20_000
    assert rows_in(tmp_path) == rows_up_to([20_000])
