"""Commits: every committed offset and every one that was removed, with its owner and its step.

Who owned a partition is told by the last generation before the commit in the log, not by a clock:
the commit of a member that is about to give its partition up counts as its own. One window over
the commits and generations of a partition, in the order of the log, tells owner, generation, step
and whether a record is a copy of another.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.decoding.commits import COMMITS as DECODED
from kohort.pipeline.forensics.decoding.commits import decode_commits
from kohort.pipeline.forensics.silver.choosing import Sorted
from kohort.pipeline.forensics.silver.conforming import conform
from kohort.pipeline.forensics.silver.snapshots import GROUP
from kohort.pipeline.forensics.tables import COMMITS

_PARTITION: Final = [*GROUP, "topic", "partition"]

_GENERATION, _ASSIGNMENT, _COMMIT = range(3)
"""The order of what has the same offset: a generation, who got the partition in it, a commit."""

_NOBODY: Final = ""
_NONE: Final = -1
"""How a generation says that nobody has a partition, and that there is no generation any more."""

REMOVED: Final = "-9223372036854775807L"
"""How a commit says that there is no offset any more: Spark keeps nulls that count at a price."""

_DECODED: Final = ", ".join(
    f"{each.name} {each.type}" for each in COMMITS.columns if each.name in DECODED.names
)


def build(records: Sorted, generations: DataFrame) -> DataFrame:
    story = _decoded(records.commits).withColumn("rank", sql.lit(_COMMIT))
    for marks in (_marks(records.keys, generations), _assignments(generations)):
        story = story.unionByName(marks, allowMissingColumns=True)
    return conform(_read(story), COMMITS)


def _read(story: DataFrame) -> DataFrame:
    """Each commit with what the last row of either kind before it says.

    Plain columns are looked back for, with words for nobody and none: Spark keeps a struct, or a
    null that counts, at a higher price for each of millions of rows.
    """
    # Spark sorts by the first eight bytes as long as it can: let them tell partitions apart.
    place = Window.partitionBy("place", *_PARTITION)
    order = place.orderBy("log_offset", "rank", "owner")
    before = order.rowsBetween(Window.unboundedPreceding, -1)
    is_commit = sql.col("rank") == _COMMIT
    looked_back = {
        "owner": sql.col("owner"),
        "generation": sql.col("generation"),
        "offset_before": sql.when(is_commit, sql.col("log_offset")),
        "committed_before": sql.when(is_commit, sql.expr(f"coalesce(committed, {REMOVED})")),
    }
    return (
        story.withColumn("place", sql.xxhash64(*_PARTITION))
        .withColumns(
            {
                name: sql.last(column, ignorenulls=True).over(before)
                for name, column in looked_back.items()
            }
        )
        .where(is_commit & sql.expr("NOT (offset_before <=> log_offset)"))
        .withColumn("step", sql.expr(f"committed - nullif(committed_before, {REMOVED})"))
        .withColumn("owner", sql.expr(f"nullif(owner, '{_NOBODY}')"))
        .withColumn("generation", sql.expr(f"nullif(generation, {_NONE})"))
    )


def _decoded(records: DataFrame) -> DataFrame:
    needed = records.select("partition", "offset", "timestamp", "key", "value")
    return needed.mapInArrow(_decode, _DECODED)


def _decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from decode_commits(batch)


def _marks(keys: DataFrame, generations: DataFrame) -> DataFrame:
    """Each generation, for each partition that its group ever committed to: nobody's, so far."""
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
            f"'{_NOBODY}' AS owner",
            f"coalesce(generation, {_NONE}) AS generation",
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
