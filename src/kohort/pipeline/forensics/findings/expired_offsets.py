"""Offsets that were gone when their group came back, so that it did not go on where it was.

Without events nobody knows whether they expired or somebody deleted them.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.findings.finding import Evidence, Finding

_PLACE = ["group_id", "topic", "partition"]


def _find(evidence: Evidence) -> DataFrame:
    removed = evidence.stints.where("removals > 0").select(*_PLACE).distinct()
    order = Window.partitionBy(*_PLACE).orderBy("log_offset")
    expired = (
        evidence.group_events.where("event = 'offsets-expired'")
        .groupBy("group_id")
        .agg(sql.count("*").alias("expiries"))
    )
    deleted = (
        evidence.group_events.where(
            "event = 'group-deleted' AND get_json_object(body, '$.is_expired') = 'false'"
        )
        .groupBy("group_id")
        .agg(sql.count("*").alias("deletions"))
    )
    return (
        evidence.commits.join(removed, _PLACE, "left_semi")
        .withColumn("last_at", sql.lag("at").over(order))
        .withColumn("last_committed", sql.lag("committed").over(order))
        .withColumn("next_at", sql.lead("at").over(order))
        .withColumn("next_committed", sql.lead("committed").over(order))
        # Nobody came back, nobody misses anything.
        .where("is_removed AND next_committed IS NOT NULL")
        .join(expired, "group_id", "left")
        .join(deleted, "group_id", "left")
        .where("deletions IS NULL OR expiries IS NOT NULL")
        .groupBy("group_id", sql.col("topic").alias("subject"))
        .agg(
            sql.count("*").alias("count"),
            sql.min("at").alias("from_at"),
            sql.max("next_at").alias("to_at"),
            sql.max(sql.expr("unix_millis(at) - unix_millis(last_at)")).alias("silent_ms"),
            sql.sum(sql.expr("greatest(last_committed - next_committed, 0)")).alias("again"),
            sql.sum(sql.expr("greatest(next_committed - last_committed, 0)")).alias("ahead"),
            sql.max("expiries").alias("expiries"),
        )
        .selectExpr(
            "*",
            "CASE WHEN expiries > 0 THEN 'expired' ELSE 'went away (expired, or deleted by hand: "
            "without events nobody knows)' END AS how",
        )
    )


EXPIRED_OFFSETS = Finding(
    name="expired-offsets",
    meaning="A group came back and its offsets were gone.",
    find=_find,
    severity="'warning'",
    what="{count:offset} of {subject} {how}, {silent_ms:duration} after the last commit, and the "
    "group came back: its first commits were {again:record} further back in all, and "
    "{ahead:number} ahead.",
    advice="Keep offsets for longer than the group may rest, or commit now and then while it does. "
    "What was skipped is not read by itself any more.",
    setting="concat('offsets.retention.minutes, more than ', "
    "ceil(coalesce(silent_ms, 0) / 3600000) * 60)",
    shown=("again", "ahead", "silent_ms"),
)
