"""Offsets that no longer existed when the group started again, so it did not continue there.

Without events it is unknown whether they expired or were deleted.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.findings.finding import Evidence, FindingRule

_PLACE = ["group_id", "topic", "partition"]


def _find(evidence: Evidence) -> DataFrame:
    removed = evidence.commit_runs.where("removals > 0").select(*_PLACE).distinct()
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
        # Only if the group committed again later.
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
            "CASE WHEN expiries > 0 THEN 'expired' ELSE 'were removed (expired, or deleted by an "
            "operator)' END AS how",
        )
    )


EXPIRED_OFFSETS = FindingRule(
    name="expired-offsets",
    meaning="A group started again after its committed offsets had expired.",
    find=_find,
    severity="'warning'",
    what="{count:offset} of {subject} {how}, {silent_ms:duration} after the last commit. When the "
    "group started again, it processed {again:record} again and skipped {ahead:number}.",
    advice="Raise offsets.retention.minutes on the broker above the longest time that the group is "
    "stopped. To process skipped records, reset the offsets of the group.",
    setting="concat('offsets.retention.minutes, above ', "
    "ceil(coalesce(silent_ms, 0) / 3600000) * 60)",
    shown=("again", "ahead", "silent_ms"),
)
