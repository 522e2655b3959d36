"""How far behind, at every commit and every look at the logs' ends.

A look has a time and no offset, so this is the one table whose rows are ordered by time. Where a
broker's clock stepped back, a look within that step may go with the commit beside it.

Lag in seconds is how long ago the log ended where the commit is: between two looks the log is taken
to have grown evenly. Where the commit is older than the first look, nobody knows.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from kohort.pipeline.forensics import tables
from kohort.pipeline.forensics.silver.commits import REMOVED
from kohort.pipeline.forensics.silver.conforming import conform

_PLACE = ("group_id", "topic", "partition")

_BY_LOOKS = ("log_end", "lag_records", "lag_seconds")


def build(*, commits: DataFrame, ends: DataFrame) -> DataFrame:
    if ends.isEmpty():
        # Nobody has looked, so nothing need be put in order: commits are all there is to tell.
        return conform(commits.withColumns(dict.fromkeys(_BY_LOOKS, sql.lit(None))), tables.LAG)
    # Shuffled once more, so that what comes of it is kept for both halves, and made once.
    rows = _in_records(commits, ends).repartition("topic", "partition")
    is_behind = "coalesce(lag_records > 0, false)"
    behind = _in_seconds(rows.where(is_behind), ends)
    rest = rows.where(f"NOT {is_behind}").withColumn(
        "lag_seconds", sql.expr("CASE WHEN lag_records = 0 THEN 0D END")
    )
    return conform(rest.unionByName(behind), tables.LAG)


def _in_records(commits: DataFrame, ends: DataFrame) -> DataFrame:
    looks = commits.select(*_PLACE).distinct().join(ends, ["topic", "partition"])
    told = commits.selectExpr(
        *_PLACE, "at", "log_offset", f"if(is_removed, {REMOVED}, committed) AS committed"
    )
    moments = told.unionByName(looks.select(*_PLACE, "at", "log_end"), allowMissingColumns=True)
    # A look at the same time comes first: its end is what the commit is measured by.
    in_time = Window.partitionBy(*_PLACE).orderBy("at", sql.col("log_offset").asc_nulls_first())
    return (
        moments.withColumns(
            {
                name: sql.last(name, ignorenulls=True).over(in_time)
                for name in ("committed", "log_end")
            }
        )
        # Before the first commit, and after a removal, there is no offset to look at.
        .where(f"log_offset IS NOT NULL OR committed != {REMOVED}")
        .withColumn("committed", sql.expr(f"nullif(committed, {REMOVED})"))
        .withColumn("lag_records", sql.expr("log_end - committed"))
        .withColumn("lag_records", sql.expr("if(lag_records < 0, 0L, lag_records)"))
    )


def _in_seconds(behind: DataFrame, ends: DataFrame) -> DataFrame:
    by_place = Window.partitionBy("topic", "partition")
    in_time = by_place.orderBy("look_ms")
    steps = ends.selectExpr(
        "topic", "partition", "log_end AS position", "unix_millis(at) AS look_ms"
    ).select(
        "topic",
        "partition",
        "position",
        sql.struct(
            sql.col("position").alias("end_from"),
            sql.lead("position").over(in_time).alias("end_to"),
            sql.col("look_ms").alias("ms_from"),
            sql.lead("look_ms").over(in_time).alias("ms_to"),
        ).alias("look"),
    )
    by_position = by_place.orderBy("position", sql.col("look.ms_from").asc_nulls_last())
    grown = "(position - step.end_from) / (step.end_to - step.end_from)"
    return (
        behind.withColumn("position", sql.col("committed"))
        .unionByName(steps, allowMissingColumns=True)
        .withColumn("step", sql.last("look", ignorenulls=True).over(by_position))
        .where("group_id IS NOT NULL")
        .selectExpr(
            "* EXCEPT (position, look, step)",
            # Where the step is not known, or was the last, nobody knows when the log ended there.
            "CASE WHEN position < step.end_to THEN greatest(0D, (unix_millis(at) - step.ms_from"
            f" - {grown} * (step.ms_to - step.ms_from)) / 1000D) END AS lag_seconds",
        )
    )
