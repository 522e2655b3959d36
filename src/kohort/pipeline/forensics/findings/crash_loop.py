"""A program that starts, lives for minutes, is gone, and starts again.

A job that runs every now and then has short lives too, but rests between them. A program that is
put out and comes back has not died: events tell that it said why, or tried to commit afterwards.
Without events the two look the same, and lives seem longer than they were.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.findings.finding import WHO, Evidence, Finding
from kohort.pipeline.forensics.findings.poll_interval import REASON

LIFE_MS_MAX = 5 * 60_000
REST_MS_MAX = 2 * 60_000
LIVES_MIN = 4


def _find(evidence: Evidence) -> DataFrame:
    lives = evidence.memberships.selectExpr("*", f"{WHO.replace('party.', '')} AS subject")
    order = Window.partitionBy("group_id", "subject").orderBy("from_at")
    life = "unix_millis(to_at) - unix_millis(from_at)"
    rest = "unix_millis(from_at) - unix_millis(last_to)"
    goes_on = f"coalesce({rest} <= {REST_MS_MAX} AND last_life <= {LIFE_MS_MAX}, false)"
    return (
        lives.withColumn("last_to", sql.lag("to_at").over(order))
        .withColumn("last_life", sql.lag(sql.expr(life)).over(order))
        .withColumn("run", sql.count_if(sql.expr(f"NOT ({goes_on})")).over(order))
        .withColumn("life_ms", sql.expr(life))
        .join(_survivors(evidence), ["group_id", "member_id"], "left")
        .groupBy("group_id", "subject", "run")
        .agg(
            sql.count("*").alias("count"),
            sql.count_if("has_survived").alias("survived"),
            sql.min("from_at").alias("from_at"),
            sql.max(sql.coalesce("to_at", "from_at")).alias("to_at"),
            sql.expr("percentile_approx(life_ms, 0.5)").alias("life_ms"),
            sql.collect_list("ending").alias("endings"),
            sql.bool_and("is_exact").alias("is_exact"),
            sql.expr("bool_and(coalesce(ending = 'replaced', true))").alias("is_quiet"),
            sql.collect_list("member_id").alias("members"),
        )
        # The last life may be a long one: then the loop has ended.
        .where(f"count - survived >= {LIVES_MIN}")
        .selectExpr(
            "*",
            "CASE WHEN size(endings) = 0 THEN 'not known' ELSE "
            "array_join(array_distinct(endings), ', ') END AS how",
        )
    )


def _survivors(evidence: Evidence) -> DataFrame:
    refused = evidence.group_events.where("event = 'commit-refused'").selectExpr(
        "group_id", "get_json_object(body, '$.member_id') AS member_id"
    )
    stuck = evidence.group_events.where(f"event = 'member-gone' AND {REASON}").selectExpr(
        "group_id", "party.member_id"
    )
    return refused.union(stuck).distinct().withColumn("has_survived", sql.expr("true"))


CRASH_LOOP = Finding(
    name="crash-loop",
    meaning="A program lives for minutes at the most, again and again.",
    find=_find,
    # A static member's restarts cost the others nothing.
    severity="CASE WHEN is_quiet THEN 'warning' ELSE 'critical' END",
    what="{subject} started {count:time} in a row, and mostly lived for {life_ms:duration}. Its "
    "lives ended so: {how}.",
    advice="Read its log around the end of each life. Often there is a record it cannot digest: "
    "see whether a partition's commits stand still. Let restarts wait longer each time.",
    setting="CASE WHEN NOT is_quiet THEN 'group.instance.id' END",
    shown=("members", "endings"),
)
