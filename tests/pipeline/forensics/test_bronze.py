"""Log directories become bronze: each record once, incomplete ends reported, damage refused."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kohort.pipeline.forensics import bronze
from kohort.pipeline.forensics.decoders.segment_decoder import DamagedLog
from kohort.pipeline.forensics.decoders.segment_files import NoLog
from kohort.pipeline.forensics.tables import RECORDS
from tests.pipeline.forensics.history_bytes import (
    EVENTS,
    OFFSETS,
    SMALL_SEGMENTS,
    History,
    rows,
    some_history,
    write,
)


def collected(spark: SparkSession, surveyed: bronze.LogSurvey) -> list[tuple]:
    found = bronze.read(spark, surveyed)
    assert [each.name for each in RECORDS.columns] == found.columns
    return sorted(map(tuple, found.collect()))


def expected(*histories: History) -> list[tuple]:
    """Spark returns times without a zone, in the zone of the machine."""
    return sorted(
        (topic, partition, offset, at.astimezone().replace(tzinfo=None), key, value)
        for history in histories
        for topic, partition, offset, at, key, value in rows(history.kept)
    )


def test_a_log_of_many_segments_and_partitions_is_read_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    first, second = some_history(0), some_history(2)
    second.kept = second.of(OFFSETS)
    write(tmp_path / "log dir", first, second, partitions=3, settings=SMALL_SEGMENTS)

    surveyed = bronze.survey(spark, str(tmp_path / "log dir"))

    assert len(surveyed.segments) > 6
    assert surveyed.incomplete == ()
    assert collected(spark, surveyed) == expected(first, second)


def test_the_directory_of_one_partition_is_accepted(spark: SparkSession, tmp_path: Path) -> None:
    history = some_history()
    write(tmp_path, history)

    surveyed = bronze.survey(spark, str(tmp_path / f"{OFFSETS}-0"))

    history.kept = history.of(OFFSETS)
    assert collected(spark, surveyed) == expected(history)


def test_running_twice_gives_the_same_table(spark: SparkSession, tmp_path: Path) -> None:
    history = some_history()
    write(tmp_path / "log", history)
    table = str(tmp_path / "tables" / "records")

    for _ in range(2):
        bronze.ingest(spark, str(tmp_path / "log"), table)

    assert sorted(map(tuple, spark.read.parquet(table).collect())) == expected(history)
    assert spark.read.parquet(table).schema == spark.createDataFrame([], RECORDS.ddl).schema


def test_a_grown_log_adds_its_new_records(spark: SparkSession, tmp_path: Path) -> None:
    history = some_history()
    write(tmp_path / "before", history)
    history.committed("g", "t0", 999, at=10_000)
    write(tmp_path / "after", history)
    table = str(tmp_path / "records")

    bronze.ingest(spark, str(tmp_path / "before"), table)
    bronze.ingest(spark, str(tmp_path / "after"), table)

    assert sorted(map(tuple, spark.read.parquet(table).collect())) == expected(history)


def test_duplicates_of_a_record_are_appended_once(spark: SparkSession, tmp_path: Path) -> None:
    history = some_history()
    twice = spark.createDataFrame(rows(history.kept + history.kept), RECORDS.ddl)

    bronze.append(twice, str(tmp_path / "records"))

    found = spark.read.parquet(str(tmp_path / "records")).collect()
    assert sorted(map(tuple, found)) == expected(history)


def test_an_incomplete_end_is_left_out_and_reported(spark: SparkSession, tmp_path: Path) -> None:
    history = some_history()
    write(tmp_path, history)
    segment = tmp_path / f"{OFFSETS}-0" / f"{0:020d}.log"
    whole = segment.read_bytes()
    segment.write_bytes(whole[:-10])

    surveyed = bronze.survey(spark, str(tmp_path))

    history.kept = [each for each in history.kept if (each.topic, each.offset) != (OFFSETS, 21)]
    assert collected(spark, surveyed) == expected(history)
    (incomplete,) = surveyed.incomplete
    assert incomplete.path == str(segment)
    assert incomplete.position + incomplete.size == len(whole) - 10
    assert incomplete.reason


def test_damage_in_an_earlier_segment_is_refused_with_its_position(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path / "log", some_history(), settings=SMALL_SEGMENTS)
    segment = sorted((tmp_path / "log" / f"{OFFSETS}-0").glob("*.log"))[1]
    content = segment.read_bytes()
    segment.write_bytes(content[:-5])

    with pytest.raises(DamagedLog, match=rf"{segment.name}: damaged at position \d+"):
        bronze.ingest(spark, str(tmp_path / "log"), str(tmp_path / "records"))


def test_a_location_without_a_log_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()

    with pytest.raises(NoLog, match="missing: no such directory"):
        bronze.survey(spark, str(tmp_path / "missing"))
    with pytest.raises(NoLog, match=f"no segment of {OFFSETS} or {EVENTS}"):
        bronze.survey(spark, str(tmp_path))
    with pytest.raises(NoLog, match="neither an absolute path nor a URI"):
        bronze.survey(spark, "here/and/there")


def test_an_empty_log_is_an_empty_table(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / f"{OFFSETS}-0").mkdir()
    (tmp_path / f"{OFFSETS}-0" / f"{0:020d}.log").touch()

    assert collected(spark, bronze.survey(spark, str(tmp_path))) == []
