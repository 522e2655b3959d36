"""Copy the records of a log directory into an append-only table.

Spark tasks list and decode the files, so executors must be able to read the location; the driver
does not open them. The end of a log that is still being written may be incomplete: the valid part
is used, and the survey reports the rest. Any other damage is an error.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from typing import Final, TypeAlias

import pyarrow as pa
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from kohort.pipeline.forensics.decoders.batches import arrow_type
from kohort.pipeline.forensics.decoders.segment_decoder import DamagedLog, find_end
from kohort.pipeline.forensics.decoders.segment_files import NoLog, SegmentFile, list_segments
from kohort.pipeline.forensics.decoders.transaction_filter import decode_segment
from kohort.pipeline.forensics.store import conform
from kohort.pipeline.forensics.tables import RECORDS
from kohort.types import Offset, Partition, Topic, value

RECORD_KEY: Final = ["topic", "partition", "offset"]
"""The columns that identify a record."""

_Batches: TypeAlias = Iterable[pa.RecordBatch]

_TaskRow: TypeAlias = tuple[SegmentFile, str | None]
"""The valid part of a segment, and the reason if it is not all of it."""

_TASK_COLUMNS: Final = {
    "index": "BIGINT",
    "row": "BIGINT",
    "error": "STRING",
    "is_damage": "BOOLEAN",
    "location": "STRING",
    "path": "STRING",
    "topic": "STRING",
    "partition": "INT",
    "first": "BIGINT",
    "stop": "BIGINT",
    "size": "BIGINT",
    "reason": "STRING",
}
"""The columns that tasks return: an error, or a segment and why its end is incomplete."""


@value
class IncompleteEnd:
    """The end of a log that was left out: it is not valid, and no valid batch follows."""

    path: str
    position: int
    size: int
    reason: str


@value
class LogSurvey:
    """The segments of a log, and their incomplete ends."""

    segments: tuple[SegmentFile, ...]
    incomplete: tuple[IncompleteEnd, ...]


def survey(spark: SparkSession, location: str) -> LogSurvey:
    """List the segments of a log directory, Kohort's or Kafka's, or of one partition's directory.

    The end of each partition is determined once, so that all tasks read a growing log to the same
    offset.
    """
    segments = [each for each, _ in _run_tasks(spark, 1, lambda _: _list(location))]
    last = [each for each in segments if each.is_last]
    ends = _run_tasks(spark, len(last), lambda index: _measure(last[index]))
    measured = {end.path: end for end, _ in ends}
    used = (measured.get(each.path, each) for each in segments)
    incomplete = (
        IncompleteEnd(path=end.path, position=end.size, size=each.size - end.size, reason=reason)
        for each, (end, reason) in zip(last, ends, strict=True)
        if reason is not None
    )
    return LogSurvey(
        segments=tuple(each for each in used if each.size), incomplete=tuple(incomplete)
    )


def read(spark: SparkSession, survey_result: LogSurvey) -> DataFrame:
    """The records of a log, with one task per segment."""
    segments = survey_result.segments
    if not segments:
        return spark.createDataFrame([], RECORDS.ddl)

    def decode(batches: _Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column("id").to_pylist():
                yield from decode_segment(segments[index])

    numbers = spark.range(0, len(segments), 1, len(segments))
    return conform(numbers.mapInArrow(decode, RECORDS.ddl), RECORDS)


def append(records: DataFrame, directory: str, *, has_duplicates: bool = True) -> None:
    """Append the records that the table in this directory does not have yet.

    Idempotent, also after a crash. Only one process may append at a time.
    """
    new = records.dropDuplicates(RECORD_KEY) if has_duplicates else records
    known = _find_table(records.sparkSession, directory)
    if known is not None:
        new = new.join(known.select(RECORD_KEY), RECORD_KEY, "left_anti")
    conform(new, RECORDS).write.mode("append").parquet(directory)


def ingest(spark: SparkSession, location: str, directory: str) -> LogSurvey:
    """Append the records of a log to the table in a directory; returns the survey."""
    survey_result = survey(spark, location)
    try:
        append(read(spark, survey_result), directory, has_duplicates=False)
    except PySparkException as error:
        # Spark wraps the error of a task in a long message; keep its one relevant line.
        damage = re.search(r"\bDamagedLog: (.+)", str(error))
        if damage is None:
            raise
        raise DamagedLog(damage[1]) from error
    return survey_result


def _find_table(spark: SparkSession, directory: str) -> DataFrame | None:
    try:
        return spark.read.schema(RECORDS.ddl).parquet(directory)
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return None
        raise


# Tasks


def _list(location: str) -> list[_TaskRow]:
    return [(each, None) for each in list_segments(location)]


def _measure(segment: SegmentFile) -> list[_TaskRow]:
    end = find_end(segment)
    return [(replace(segment, size=end.size), end.reason)]


def _run_tasks(
    spark: SparkSession, count: int, do: Callable[[int], list[_TaskRow]]
) -> list[_TaskRow]:
    """Run this number of tasks; return their rows in order, or raise the first error."""

    schema = pa.schema([(name, arrow_type(type_)) for name, type_ in _TASK_COLUMNS.items()])

    def run_task(batches: _Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column("id").to_pylist():
                try:
                    rows = [asdict(segment) | {"reason": why} for segment, why in do(index)]
                except (NoLog, DamagedLog, OSError) as error:
                    rows = [{"error": str(error), "is_damage": isinstance(error, DamagedLog)}]
                numbered = [{"index": index, "row": row, **each} for row, each in enumerate(rows)]
                yield pa.RecordBatch.from_pylist(numbered, schema=schema)

    if not count:
        return []
    ddl = ", ".join(f"{name} {type_}" for name, type_ in _TASK_COLUMNS.items())
    results = spark.range(0, count, 1, count).mapInArrow(run_task, ddl)
    rows = results.orderBy("index", "row").collect()
    for each in rows:
        if each.error is not None:
            raise (DamagedLog if each.is_damage else NoLog)(each.error)
    return [(_segment(each), each.reason) for each in rows]


def _segment(row: Row) -> SegmentFile:
    return SegmentFile(
        location=row.location,
        path=row.path,
        topic=Topic(row.topic),
        partition=Partition(row.partition),
        first=Offset(row.first),
        stop=Offset(row.stop),
        size=row.size,
    )
