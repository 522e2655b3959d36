"""The lag at every commit and every reading of the end offsets.

A reading of end offsets has a timestamp and no offset, so this is the only table that is ordered by
time. If a broker's clock stepped back, a reading may be matched with a neighbouring commit.

Lag in seconds is the time since the log end was at the committed offset; between two readings the
log is assumed to grow evenly. It is unknown if the commit is older than the first reading.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from kohort.pipeline.forensics import tables
from kohort.pipeline.forensics.silver.commits_table import REMOVED
from kohort.pipeline.forensics.store import conform

_PLACE = ("group_id", "topic", "partition")

_FROM_READINGS = ("log_end", "lag_records", "lag_seconds")


def build(*, commits: DataFrame, ends: DataFrame) -> DataFrame:
    if ends.isEmpty():
        # Without end offsets there is nothing to sort.
        return conform(
            commits.withColumns(dict.fromkeys(_FROM_READINGS, sql.lit(None))), tables.LAG
        )
    # This shuffle is reused by both halves, so that the rows are computed once.
    rows = _in_records(commits, ends).repartition("topic", "partition")
    is_behind = "coalesce(lag_records > 0, false)"
    behind = _in_seconds(rows.where(is_behind), ends)
    rest = rows.where(f"NOT {is_behind}").withColumn(
        "lag_seconds", sql.expr("CASE WHEN lag_records = 0 THEN 0D END")
    )
    return conform(rest.unionByName(behind), tables.LAG)


def _in_records(commits: DataFrame, ends: DataFrame) -> DataFrame:
    readings = commits.select(*_PLACE).distinct().join(ends, ["topic", "partition"])
    committed = commits.selectExpr(
        *_PLACE, "at", "log_offset", f"if(is_removed, {REMOVED}, committed) AS committed"
    )
    points = committed.unionByName(
        readings.select(*_PLACE, "at", "log_end"), allowMissingColumns=True
    )
    # A reading with the same timestamp comes first: the commit is compared with it.
    in_time = Window.partitionBy(*_PLACE).orderBy("at", sql.col("log_offset").asc_nulls_first())
    return (
        points.withColumns(
            {
                name: sql.last(name, ignorenulls=True).over(in_time)
                for name in ("committed", "log_end")
            }
        )
        # Before the first commit and after a removal there is no committed offset.
        .where(f"log_offset IS NOT NULL OR committed != {REMOVED}")
        .withColumn("committed", sql.expr(f"nullif(committed, {REMOVED})"))
        .withColumn("lag_records", sql.expr("log_end - committed"))
        .withColumn("lag_records", sql.expr("if(lag_records < 0, 0L, lag_records)"))
    )


def _in_seconds(behind: DataFrame, ends: DataFrame) -> DataFrame:
    by_place = Window.partitionBy("topic", "partition")
    in_time = by_place.orderBy("reading_ms")
    steps = ends.selectExpr(
        "topic", "partition", "log_end AS position", "unix_millis(at) AS reading_ms"
    ).select(
        "topic",
        "partition",
        "position",
        sql.struct(
            sql.col("position").alias("end_from"),
            sql.lead("position").over(in_time).alias("end_to"),
            sql.col("reading_ms").alias("ms_from"),
            sql.lead("reading_ms").over(in_time).alias("ms_to"),
        ).alias("reading"),
    )
    by_position = by_place.orderBy("position", sql.col("reading.ms_from").asc_nulls_last())
    grown = "(position - step.end_from) / (step.end_to - step.end_from)"
    return (
        behind.withColumn("position", sql.col("committed"))
        .unionByName(steps, allowMissingColumns=True)
        .withColumn("step", sql.last("reading", ignorenulls=True).over(by_position))
        .where("group_id IS NOT NULL")
        .selectExpr(
            "* EXCEPT (position, reading, step)",
            # Null if the step is unknown or is the last one.
            "CASE WHEN position < step.end_to THEN greatest(0D, (unix_millis(at) - step.ms_from"
            f" - {grown} * (step.ms_to - step.ms_from)) / 1000D) END AS lag_seconds",
        )
    )
