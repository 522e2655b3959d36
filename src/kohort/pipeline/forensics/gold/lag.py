"""How far behind, at every commit and every look at the logs' ends.

A look has a time and no offset, so this is the one table whose rows are ordered by time. Where a
broker's clock stepped back, a look within that step may go with the commit beside it.

Lag in seconds is how long ago the log ended where the commit is: between two looks the log is taken
to have grown evenly. Where the commit is older than the first look, nobody knows.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from kohort.pipeline.forensics import tables
from kohort.pipeline.forensics.silver.conforming import conform

_PLACE = ("group_id", "topic", "partition")


def build(*, commits: DataFrame, ends: DataFrame) -> DataFrame:
    rows = _in_records(commits, ends)
    is_behind = "coalesce(lag_records > 0, false)"
    behind = _in_seconds(rows.where(is_behind), ends)
    rest = rows.where(f"NOT {is_behind}").withColumn(
        "lag_seconds", sql.expr("CASE WHEN lag_records = 0 THEN 0D END")
    )
    return conform(rest.unionByName(behind), tables.LAG)


def _in_records(commits: DataFrame, ends: DataFrame) -> DataFrame:
    looks = commits.select(*_PLACE).distinct().join(ends, ["topic", "partition"])
    moments = commits.select(*_PLACE, "at", "log_offset", "committed", "is_removed").unionByName(
        looks.select(*_PLACE, "at", "log_end"), allowMissingColumns=True
    )
    # A look at the same time comes first: its end is what the commit is measured by.
    in_time = Window.partitionBy(*_PLACE).orderBy("at", sql.col("log_offset").asc_nulls_first())
    last_commit = sql.last(
        sql.expr("CASE WHEN log_offset IS NOT NULL THEN struct(committed, is_removed) END"),
        ignorenulls=True,
    ).over(in_time)
    return (
        moments.withColumn("held", last_commit)
        .withColumn("log_end", sql.last("log_end", ignorenulls=True).over(in_time))
        # Before the first commit, and after a removal, there is no offset to look at.
        .where("held IS NOT NULL AND (log_offset IS NOT NULL OR NOT held.is_removed)")
        .selectExpr(
            *_PLACE,
            "at",
            "log_offset",
            "held.committed",
            "log_end",
            "CASE WHEN held.committed IS NOT NULL AND log_end IS NOT NULL "
            "THEN greatest(log_end - held.committed, 0L) END AS lag_records",
        )
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
