"""Commits: every committed and every removed offset, with its owner and its step.

The step is the difference to the previous committed offset.

The owner is taken from the last generation before the commit, by log offset and not by timestamp:
a commit just before a revocation counts for the old owner. One window over the commits
and generations of a partition, in log order, gives the owner, the generation, the step, and whether
a record is a duplicate.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.decoders.commit_decoder import COMMITS as DECODED
from kohort.pipeline.forensics.decoders.commit_decoder import decode_commits
from kohort.pipeline.forensics.silver.record_kinds import RecordsByKind
from kohort.pipeline.forensics.silver.snapshots import GROUP
from kohort.pipeline.forensics.store import conform
from kohort.pipeline.forensics.tables import COMMITS

_PARTITION: Final = [*GROUP, "topic", "partition"]

_GENERATION, _ASSIGNMENT, _COMMIT = range(3)
"""The order of rows with the same offset: a generation, its assignment, a commit."""

_NO_OWNER: Final = ""
_NO_GENERATION: Final = -1
"""Values instead of null for a partition without owner and a group without generation."""

REMOVED: Final = "-9223372036854775807L"
"""A value instead of null for a removed offset: counting nulls in a window is slower in Spark."""

_DECODED: Final = ", ".join(
    f"{each.name} {each.type}" for each in COMMITS.columns if each.name in DECODED.names
)


def build(records: RecordsByKind, generations: DataFrame) -> DataFrame:
    rows = _decoded(records.commits).withColumn("rank", sql.lit(_COMMIT))
    for more in (_generations(records.keys, generations), _assignments(generations)):
        rows = rows.unionByName(more, allowMissingColumns=True)
    return conform(_with_owners(rows), COMMITS)


def _with_owners(rows: DataFrame) -> DataFrame:
    """Each commit with the owner and generation of the last generation before it.

    Uses plain columns and special values: structs and counted nulls cost more for each of millions
    of rows.
    """
    # Spark compares the first eight bytes of a sort key first: a hash separates partitions there.
    place = Window.partitionBy("place", *_PARTITION)
    order = place.orderBy("log_offset", "rank", "owner")
    before = order.rowsBetween(Window.unboundedPreceding, -1)
    is_commit = sql.col("rank") == _COMMIT
    previous = {
        "owner": sql.col("owner"),
        "generation": sql.col("generation"),
        "offset_before": sql.when(is_commit, sql.col("log_offset")),
        "committed_before": sql.when(is_commit, sql.expr(f"coalesce(committed, {REMOVED})")),
    }
    return (
        rows.withColumn("place", sql.xxhash64(*_PARTITION))
        .withColumns(
            {
                name: sql.last(column, ignorenulls=True).over(before)
                for name, column in previous.items()
            }
        )
        .where(is_commit & sql.expr("NOT (offset_before <=> log_offset)"))
        .withColumn("step", sql.expr(f"committed - nullif(committed_before, {REMOVED})"))
        .withColumn("owner", sql.expr(f"nullif(owner, '{_NO_OWNER}')"))
        .withColumn("generation", sql.expr(f"nullif(generation, {_NO_GENERATION})"))
    )


def _decoded(records: DataFrame) -> DataFrame:
    needed = records.select("partition", "offset", "timestamp", "key", "value")
    return needed.mapInArrow(_decode, _DECODED)


def _decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from decode_commits(batch)


def _generations(keys: DataFrame, generations: DataFrame) -> DataFrame:
    """Each generation for each partition that its group ever committed, without an owner."""
    partitions = _decoded(
        keys.selectExpr(
            "partition",
            "0L AS offset",
            "timestamp_millis(0) AS timestamp",
            "key",
            "CAST(NULL AS BINARY) AS value",
        )
    ).select(*_PARTITION)
    return (
        generations.selectExpr(
            "partition AS log_partition", "group_id", "offset AS log_offset", "generation"
        )
        .join(partitions, GROUP)
        .selectExpr(
            *_PARTITION,
            "log_offset",
            f"{_GENERATION} AS rank",
            f"'{_NO_OWNER}' AS owner",
            f"coalesce(generation, {_NO_GENERATION}) AS generation",
        )
    )


def _assignments(generations: DataFrame) -> DataFrame:
    return (
        generations.selectExpr(
            "partition AS log_partition",
            "group_id",
            "offset AS log_offset",
            "generation",
            "explode(members) AS member",
        )
        .selectExpr("*", "explode(array_distinct(member.assigned)) AS each")
        .selectExpr(
            *GROUP,
            "each.topic",
            "each.partition",
            "log_offset",
            f"{_ASSIGNMENT} AS rank",
            "member.member_id AS owner",
            "generation",
        )
    )
