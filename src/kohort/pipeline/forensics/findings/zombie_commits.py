"""Commits by a client that no longer owns the partition.

Kafka rejects most of them, and only Kohort's events record the attempts. Some succeed:
transactional commits without group metadata, and commits of standalone consumers. Then two clients
write one offset: it falls, and the next commit is above the old value again, repeatedly.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.findings.finding import WHO, Evidence, FindingRule
from kohort.pipeline.forensics.sql_text import count

ERRORS = "('ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID', 'FENCED_INSTANCE_ID')"
ZIGZAGS_MIN = 2
"""A single one may be a program that seeks back and catches up quickly."""

REFUSED_MIN = 2
"""A single rejected commit is how a member notices that it was removed."""

_PLACE = ["group_id", "topic", "partition"]


def _find(evidence: Evidence) -> DataFrame:
    return _refused(evidence).unionByName(_accepted(evidence))


def _refused(evidence: Evidence) -> DataFrame:
    names = evidence.memberships.selectExpr(
        "group_id", "member_id", f"{WHO.replace('party.', '')} AS name"
    ).dropDuplicates(["group_id", "member_id"])
    return (
        evidence.group_events.where("event = 'commit-refused'")
        .selectExpr(
            "group_id",
            "at",
            "generation",
            "get_json_object(body, '$.member_id') AS member_id",
            "get_json_object(body, '$.error') AS error",
        )
        .where(f"error IN {ERRORS} AND member_id != ''")
        .join(names, ["group_id", "member_id"], "left")
        .groupBy("group_id", sql.coalesce("name", "member_id").alias("subject"))
        .agg(
            sql.count("*").alias("count"),
            sql.min("at").alias("from_at"),
            sql.max("at").alias("to_at"),
            sql.mode("error").alias("error"),
            sql.collect_set("generation").alias("generations"),
        )
        .where(f"count >= {REFUSED_MIN}")
        .selectExpr(
            "*",
            f"concat('tried to commit ', {count('count', 'time')}, ' after it had lost its "
            "partitions; the broker rejected it with ', error) AS action",
            "false AS is_accepted",
        )
    )


def _accepted(evidence: Evidence) -> DataFrame:
    falls = (
        evidence.commit_runs.where("rewinds > 0 AND owner IS NOT NULL").select(*_PLACE).distinct()
    )
    order = Window.partitionBy(*_PLACE).orderBy("log_offset")
    return (
        # Sort only the few partitions whose offset ever fell.
        evidence.commits.where("NOT is_removed")
        .join(falls, _PLACE, "left_semi")
        .withColumn("step_before", sql.lag("step").over(order))
        .withColumn("before_fall", sql.lag("committed", 2).over(order))
        .where("owner IS NOT NULL AND step_before < 0 AND committed >= before_fall")
        .groupBy(*_PLACE)
        .agg(
            sql.count("*").alias("count"),
            sql.min("at").alias("from_at"),
            sql.max("at").alias("to_at"),
            sql.collect_set("generation").alias("generations"),
        )
        .where(f"count >= {ZIGZAGS_MIN}")
        .selectExpr(
            "group_id",
            "concat(topic, '-', partition) AS subject",
            "count",
            "from_at",
            "to_at",
            "CAST(NULL AS STRING) AS error",
            "generations",
            "concat('has an offset that fell and rose again with the next commit, ', "
            f"{count('count', 'time')}, ': two clients commit it. The history does not show which "
            "of them is the owner') AS action",
            "true AS is_accepted",
        )
    )


ZOMBIE_COMMITS = FindingRule(
    name="zombie-commits",
    meaning="A client commits offsets of partitions that another member owns.",
    find=_find,
    severity="CASE WHEN is_accepted THEN 'critical' WHEN count >= 5 THEN 'warning' "
    "ELSE 'notice' END",
    what="{subject} {action}.",
    advice="Stop processing and commit in onPartitionsRevoked(), and drop unfinished work in "
    "onPartitionsLost(): records are processed twice otherwise. With transactions, pass "
    "consumer.groupMetadata() to sendOffsetsToTransaction().",
    setting="CASE WHEN is_accepted THEN 'group.id, a different one for each program' "
    "ELSE 'max.poll.interval.ms, above the duration of its longest batch' END",
    shown=("generations", "error"),
)
