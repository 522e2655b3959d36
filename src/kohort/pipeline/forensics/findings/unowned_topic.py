"""A topic of the group that no member consumes, although the group has members.

Either a member subscribes to it and no partition is assigned, because the topic does not exist or
the leader cannot see it. Or the group committed offsets for it, which may have expired since, there
are newer records, and no member subscribes to it any more.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.findings.finding import Evidence, FindingRule, lasting_generations

LASTING_MS = 10 * 60_000


def _find(evidence: Evidence) -> DataFrame:
    latest = Window.partitionBy("group_id").orderBy(sql.col("offset").desc())
    present = (
        lasting_generations(evidence, LASTING_MS)
        .withColumn("newest", sql.row_number().over(latest))
        .where("newest = 1 AND next_at IS NULL")
        .selectExpr(
            "group_id",
            "generation",
            "at AS from_at",
            "to_at",
            "array_distinct(flatten(transform(members, m -> m.topics))) AS wanted",
            "array_distinct(flatten(transform(members, m -> transform(m.assigned, "
            "p -> p.topic)))) AS owned",
        )
    )
    unseen = present.selectExpr("*", "explode(array_except(wanted, owned)) AS subject").selectExpr(
        "*", "0L AS count", "0L AS lag", "'subscribed, but not assigned to any member' AS how"
    )
    left_behind = (
        _unread(evidence)
        .groupBy("group_id", sql.col("topic").alias("subject"))
        .agg(sql.count("*").alias("count"), sql.sum("lag").alias("lag"))
        .join(present, "group_id")
        .where("NOT array_contains(wanted, subject)")
        .selectExpr(
            "*",
            "'no longer subscribed by any member, although the group consumed it before' AS how",
        )
    )
    return unseen.unionByName(left_behind)


def _unread(evidence: Evidence) -> DataFrame:
    """The records after the group's last commit, even if that offset has expired."""
    place = ["topic", "partition"]
    ends = evidence.ends.groupBy(*place).agg(sql.max_by("log_end", "at").alias("log_end"))
    return (
        evidence.commit_runs.where("commits > 0")
        .groupBy("group_id", *place)
        .agg(sql.max_by("last_committed", "last_log_offset").alias("committed"))
        .join(ends, place)
        .selectExpr("group_id", "topic", "log_end - committed AS lag")
        .where("lag > 0")
    )


UNOWNED_TOPIC = FindingRule(
    name="unowned-topic",
    meaning="No member consumes a topic of the group.",
    find=_find,
    severity="CASE WHEN lag > 0 THEN 'warning' ELSE 'notice' END",
    what="{subject} is {how}. It has {lag:unread record}.",
    advice="If the topic should be consumed, check that it exists, that its name is spelled "
    "correctly, and that the leader is authorised to describe it. If not, delete the group's "
    "committed offsets of this topic.",
    shown=("generation", "wanted", "owned"),
)
