"""Commits by somebody who does not own the partition any more.

Kafka refuses most of them, and only Kohort's events tell that they were tried. Some are let in: of
programs that commit in transactions without saying who they are, and of consumers that assign
themselves. These show as two hands that write one offset: it falls, and in one step is back above
where it was, and again.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.findings.finding import WHO, Evidence, Finding
from kohort.pipeline.forensics.saying import count

ERRORS = "('ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID', 'FENCED_INSTANCE_ID')"
ZIGZAGS_MIN = 2
"""One such fall may be a program that seeks, and reads fast."""

REFUSED_MIN = 2
"""One refused commit is how a member learns that it is out."""

_PLACE = ["group_id", "topic", "partition"]


def _find(evidence: Evidence) -> DataFrame:
    return _refused(evidence).unionByName(_let_in(evidence))


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
            f"concat('tried to commit ', {count('count', 'time')}, ' when it was not the owner any "
            "more, and was refused with ', error) AS deed",
            "false AS is_let_in",
        )
    )


def _let_in(evidence: Evidence) -> DataFrame:
    falls = evidence.stints.where("rewinds > 0 AND owner IS NOT NULL").select(*_PLACE).distinct()
    order = Window.partitionBy(*_PLACE).orderBy("log_offset")
    return (
        # Only partitions that ever fell are put in order: nearly none.
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
            "concat('has offsets that fell and were back in one step, ', "
            f"{count('count', 'time')}, ': two commit it. Which of them is the owner nothing kept "
            "tells') AS deed",
            "true AS is_let_in",
        )
    )


ZOMBIE_COMMITS = Finding(
    name="zombie-commits",
    meaning="Somebody commits offsets of partitions that are another's.",
    find=_find,
    severity="CASE WHEN is_let_in THEN 'critical' WHEN count >= 5 THEN 'warning' ELSE 'notice' END",
    what="{subject} {deed}.",
    advice="It works on after it was put out: what it did is done twice. Let it stop what it is at "
    "work on when its partitions are taken, and commit before it gives them up. If it commits in "
    "transactions, let it tell its group's metadata.",
    setting="CASE WHEN is_let_in THEN 'a group.id for each program' "
    "ELSE 'max.poll.interval.ms, longer than its longest batch' END",
    shown=("generations", "error"),
)
