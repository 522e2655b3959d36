"""Records as they came: from a copied log directory into a table that only ever grows.

A log is looked at and decoded by Spark's workers, so its place must be one that they can read; the
driver never opens a file of it. A log that is still written to may be torn at its end: what is
sound of it is used, and the survey tells what was left out. Any other damage is an error.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from typing import Final, TypeAlias

import pyarrow as pa
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from kohort.pipeline.forensics.decoding.files import NoLog, Segment, list_segments
from kohort.pipeline.forensics.decoding.segments import DamagedLog, find_end
from kohort.pipeline.forensics.decoding.transactions import decode_segment
from kohort.pipeline.forensics.silver.conforming import conform
from kohort.pipeline.forensics.tables import RECORDS
from kohort.types import Offset, Partition, Topic, value

NAME: Final = ["topic", "partition", "offset"]
"""What tells one record from all others."""

_Batches: TypeAlias = Iterable[pa.RecordBatch]

_Answer: TypeAlias = tuple[Segment, str | None]
"""A segment, as much of it as can be used, and why that is not all."""

_ANSWERS: Final = pa.schema(
    [
        pa.field("index", pa.int64()),
        pa.field("row", pa.int64()),
        pa.field("error", pa.string()),
        pa.field("is_damage", pa.bool_()),
        pa.field("place", pa.string()),
        pa.field("path", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("first", pa.int64()),
        pa.field("stop", pa.int64()),
        pa.field("size", pa.int64()),
        pa.field("reason", pa.string()),
    ]
)
_ANSWERS_DDL: Final = (
    "index BIGINT, row BIGINT, error STRING, is_damage BOOLEAN, place STRING, path STRING, "
    "topic STRING, partition INT, first BIGINT, stop BIGINT, size BIGINT, reason STRING"
)


@value
class TornEnd:
    """The end of a log that was left out, because it is not sound and nothing sound follows."""

    path: str
    position: int
    size: int
    reason: str


@value
class Survey:
    """What there is to read, and what is torn."""

    segments: tuple[Segment, ...]
    torn: tuple[TornEnd, ...]


def survey(spark: SparkSession, place: str) -> Survey:
    """Look at a log directory, Kohort's or Kafka's, or at one partition's directory.

    The end of each partition is looked for once, so that a log that grows meanwhile, or is torn,
    is read to the same offset by everyone.
    """
    segments = [each for each, _ in _ask(spark, 1, lambda _: _list(place))]
    growing = [each for each in segments if each.is_last]
    ends = _ask(spark, len(growing), lambda index: _measure(growing[index]))
    measured = {end.path: end for end, _ in ends}
    used = (measured.get(each.path, each) for each in segments)
    torn = (
        TornEnd(path=end.path, position=end.size, size=each.size - end.size, reason=reason)
        for each, (end, reason) in zip(growing, ends, strict=True)
        if reason is not None
    )
    return Survey(segments=tuple(each for each in used if each.size), torn=tuple(torn))


def read(spark: SparkSession, surveyed: Survey) -> DataFrame:
    """The records of a surveyed log, each once, a task for each segment."""
    segments = surveyed.segments
    if not segments:
        return spark.createDataFrame([], RECORDS.ddl)

    def decode(batches: _Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column("id").to_pylist():
                yield from decode_segment(segments[index])

    numbers = spark.range(0, len(segments), 1, len(segments))
    return conform(numbers.mapInArrow(decode, RECORDS.ddl), RECORDS)


def append(records: DataFrame, directory: str, *, has_repeats: bool = True) -> None:
    """Add to the table in this directory the records it does not have yet.

    Doing it twice, or again after a crash, leads to the same table. Only one may do it at a time.
    """
    fresh = records.dropDuplicates(NAME) if has_repeats else records
    known = _find_table(records.sparkSession, directory)
    if known is not None:
        fresh = fresh.join(known.select(NAME), NAME, "left_anti")
    conform(fresh, RECORDS).write.mode("append").parquet(directory)


def ingest(spark: SparkSession, place: str, directory: str) -> Survey:
    """Add what a log holds to the table in a directory; tells what was there and what was torn."""
    surveyed = survey(spark, place)
    try:
        append(read(spark, surveyed), directory, has_repeats=False)
    except PySparkException as error:
        # A task's error comes in a page of Spark's own; what it says is one line of it.
        damage = re.search(r"\bDamagedLog: (.+)", str(error))
        if damage is None:
            raise
        raise DamagedLog(damage[1]) from error
    return surveyed


def _find_table(spark: SparkSession, directory: str) -> DataFrame | None:
    try:
        return spark.read.schema(RECORDS.ddl).parquet(directory)
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return None
        raise


# What workers are asked


def _list(place: str) -> list[_Answer]:
    return [(each, None) for each in list_segments(place)]


def _measure(segment: Segment) -> list[_Answer]:
    end = find_end(segment)
    return [(replace(segment, size=end.size), end.reason)]


def _ask(spark: SparkSession, count: int, do: Callable[[int], list[_Answer]]) -> list[_Answer]:
    """What so many tasks on workers find, in their order; the first error that one of them met."""

    def answer(batches: _Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column("id").to_pylist():
                try:
                    rows = [asdict(segment) | {"reason": why} for segment, why in do(index)]
                except (NoLog, DamagedLog, OSError) as error:
                    rows = [{"error": str(error), "is_damage": isinstance(error, DamagedLog)}]
                told = [{"index": index, "row": row, **each} for row, each in enumerate(rows)]
                yield pa.RecordBatch.from_pylist(told, schema=_ANSWERS)

    if not count:
        return []
    answers = spark.range(0, count, 1, count).mapInArrow(answer, _ANSWERS_DDL)
    rows = answers.orderBy("index", "row").collect()
    for each in rows:
        if each.error is not None:
            raise (DamagedLog if each.is_damage else NoLog)(each.error)
    return [(_segment(each), each.reason) for each in rows]


def _segment(row: Row) -> Segment:
    return Segment(
        place=row.place,
        path=row.path,
        topic=Topic(row.topic),
        partition=Partition(row.partition),
        first=Offset(row.first),
        stop=Offset(row.stop),
        size=row.size,
    )
