"""A group without progress: its rebalance does not end, or its members make no progress.

Only events record a rebalance in progress. Without them a group is stuck if all partitions with
unread records have an owner, and no committed offset moves.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.findings.finding import Evidence, FindingRule
from kohort.pipeline.forensics.sql_text import count, duration

LONG_MS = 5 * 60_000
"""The default rebalance timeout: by then the coordinator should have removed slow members."""


def _find(evidence: Evidence) -> DataFrame:
    return _long_rebalances(evidence).unionByName(_without_progress(evidence))


def _long_rebalances(evidence: Evidence) -> DataFrame:
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
            f"concat({count('count', 'rebalance')}, ' took 5 min or more, the longest ', "
            f"{duration('took_ms')}, "
            "CASE WHEN is_now THEN '; one is still in progress.' ELSE '.' END) AS how",
        )
        .drop("took_ms")
    )


def _without_progress(evidence: Evidence) -> DataFrame:
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
            f"concat('The group has members, but no committed offset moves: ', "
            f"{count('lag', 'record')}, ' of lag in ', {count('count', 'partition')}, "
            "'. The history does not show whether it is rebalancing or its programs hang.') AS how",
        )
    )


STUCK_GROUP = FindingRule(
    name="stuck-group",
    meaning="The group has members and makes no progress.",
    find=_find,
    severity="CASE WHEN is_now THEN 'critical' ELSE 'warning' END",
    what="{how}",
    advice="Find the member that the group waits for: it sends heartbeats, but neither joins nor "
    "polls. Take a thread dump of it and restart it. Lower max.poll.interval.ms to the longest "
    "time that the group may wait.",
    setting="'max.poll.interval.ms, at most the time that the group may wait'",
    shown=("generations",),
)
