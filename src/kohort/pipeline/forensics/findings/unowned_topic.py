"""A topic that a group with members is about, and none of them reads.

Either somebody is subscribed to it and nobody was assigned any of it, because it does not exist or
the leader does not see it; or the group has committed offsets of it, which may have expired since,
records wait, and nobody in the group wants it any more.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.findings.finding import Evidence, Finding, lasting

LASTING_MS = 10 * 60_000


def _find(evidence: Evidence) -> DataFrame:
    latest = Window.partitionBy("group_id").orderBy(sql.col("offset").desc())
    present = (
        lasting(evidence, LASTING_MS)
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
        "*", "0L AS count", "0L AS lag", "'wanted, and assigned to nobody' AS how"
    )
    left_behind = (
        _waiting(evidence)
        .groupBy("group_id", sql.col("topic").alias("subject"))
        .agg(sql.count("*").alias("count"), sql.sum("lag").alias("lag"))
        .join(present, "group_id")
        .where("NOT array_contains(wanted, subject)")
        .selectExpr("*", "'not wanted any more, though the group has read it before' AS how")
    )
    return unseen.unionByName(left_behind)


def _waiting(evidence: Evidence) -> DataFrame:
    """What was written after the group's last commit, even if that has expired by now."""
    place = ["topic", "partition"]
    ends = evidence.ends.groupBy(*place).agg(sql.max_by("log_end", "at").alias("log_end"))
    return (
        evidence.stints.where("commits > 0")
        .groupBy("group_id", *place)
        .agg(sql.max_by("last_committed", "last_log_offset").alias("committed"))
        .join(ends, place)
        .selectExpr("group_id", "topic", "log_end - committed AS lag")
        .where("lag > 0")
    )


UNOWNED_TOPIC = Finding(
    name="unowned-topic",
    meaning="A topic the group is about is read by none of its members.",
    find=_find,
    severity="CASE WHEN lag > 0 THEN 'warning' ELSE 'notice' END",
    what="{subject} is {how}, with {lag:record} of it to read.",
    advice="If it is to be read, see that it exists, that it is spelled right, and that the leader "
    "may see it. If it is not, delete the group's offsets of it, so that nobody waits for them.",
    shown=("generation", "wanted", "owned"),
)
