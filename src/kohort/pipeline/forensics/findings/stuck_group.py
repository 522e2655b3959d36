"""A group that gets nothing done: it rebalances without an end, or it has members that stand still.

That a rebalance is going on is only told by events. Without them a stuck group shows by its
partitions: all that have something to read have an owner, and none of them moves.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.findings.finding import Evidence, Finding
from kohort.pipeline.forensics.saying import count, duration

LONG_MS = 5 * 60_000
"""As long as the usual rebalance timeout: by then everybody should have been given up."""


def _find(evidence: Evidence) -> DataFrame:
    return _between_generations(evidence).unionByName(_standing_still(evidence))


def _between_generations(evidence: Evidence) -> DataFrame:
    return (
        evidence.rebalances.where("is_exact AND coalesce(ending, '') != 'abandoned'")
        .crossJoin(sql.broadcast(evidence.until))
        .withColumn("to_at", sql.expr("coalesce(ended_at, until)"))
        .withColumn("took_ms", sql.expr("unix_millis(to_at) - unix_millis(started_at)"))
        .where(f"took_ms >= {LONG_MS}")
        .groupBy("group_id")
        .agg(
            sql.count("*").alias("count"),
            sql.min("started_at").alias("from_at"),
            sql.max("to_at").alias("to_at"),
            sql.max("took_ms").alias("took_ms"),
            sql.bool_or(sql.col("ended_at").isNull()).alias("is_now"),
            sql.collect_list("generation_before").alias("generations"),
        )
        .selectExpr(
            "* EXCEPT (is_now)",
            "CAST(NULL AS STRING) AS subject",
            "is_now",
            f"concat('It was between generations for long, ', {count('count', 'time')}, ', ', "
            f"{duration('took_ms')}, ' at the most', "
            "CASE WHEN is_now THEN ', and is so now.' ELSE '.' END) AS how",
        )
        .drop("took_ms")
    )


def _standing_still(evidence: Evidence) -> DataFrame:
    latest = Window.partitionBy("group_id").orderBy(sql.col("offset").desc())
    formed = (
        evidence.generations.withColumn("newest", sql.row_number().over(latest))
        .where("newest = 1 AND kind = 'formed'")
        .selectExpr("group_id", "generation")
    )
    return (
        evidence.lag_status.where("lag_records > 0 AND owner IS NOT NULL")
        .groupBy("group_id")
        .agg(
            sql.count("*").alias("count"),
            sql.bool_and(sql.col("status").isin("stopped", "stalled")).alias("is_stuck"),
            sql.sum("lag_records").alias("lag"),
            sql.min("since").alias("from_at"),
        )
        .where("is_stuck")
        .join(formed, "group_id")
        .crossJoin(sql.broadcast(evidence.until))
        .selectExpr(
            "group_id",
            "CAST(NULL AS STRING) AS subject",
            "count",
            "from_at",
            "until AS to_at",
            "array(generation) AS generations",
            "true AS is_now",
            f"concat('It has members, and none of them moves on, with ', {count('lag', 'record')}, "
            f"' to read in ', {count('count', 'partition')}, '. Whether it rebalances or its "
            "programs hang, commits do not tell.') AS how",
        )
    )


STUCK_GROUP = Finding(
    name="stuck-group",
    meaning="The group has members and gets nothing done.",
    find=_find,
    severity="CASE WHEN is_now THEN 'critical' ELSE 'warning' END",
    what="{how}",
    advice="See who is waited for: a member that heartbeats and neither joins nor polls holds "
    "everybody until its rebalance timeout is over. Take a thread dump of it, then restart it.",
    setting="'max.poll.interval.ms, not longer than everybody can wait'",
    shown=("generations",),
)
