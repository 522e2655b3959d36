"""A client whose memberships are short and follow each other directly.

A periodic job also has short memberships, but with pauses between them. A client that was removed
and rejoined has not crashed: events show that it gave a reason or tried to commit afterwards.
Without events, a removed client and a crashed client cannot be distinguished, and memberships seem
longer than they were.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.findings.finding import WHO, Evidence, FindingRule
from kohort.pipeline.forensics.findings.poll_interval import REASON

MEMBERSHIP_MS_MAX = 5 * 60_000
PAUSE_MS_MAX = 2 * 60_000
MEMBERSHIPS_MIN = 4


def _find(evidence: Evidence) -> DataFrame:
    memberships = evidence.memberships.selectExpr("*", f"{WHO.replace('party.', '')} AS subject")
    order = Window.partitionBy("group_id", "subject").orderBy("from_at")
    length = "unix_millis(to_at) - unix_millis(from_at)"
    pause = "unix_millis(from_at) - unix_millis(last_to)"
    # The last membership of a run may be long.
    continues = f"coalesce({pause} <= {PAUSE_MS_MAX} AND last_length <= {MEMBERSHIP_MS_MAX}, false)"
    return (
        memberships.withColumn("last_to", sql.lag("to_at").over(order))
        .withColumn("last_length", sql.lag(sql.expr(length)).over(order))
        .withColumn("run", sql.count_if(sql.expr(f"NOT ({continues})")).over(order))
        .withColumn("length_ms", sql.expr(length))
        .join(_removed_but_alive(evidence), ["group_id", "member_id"], "left")
        .groupBy("group_id", "subject", "run")
        .agg(
            sql.count("*").alias("count"),
            sql.count_if("was_alive").alias("alive"),
            sql.min("from_at").alias("from_at"),
            sql.max(sql.coalesce("to_at", "from_at")).alias("to_at"),
            sql.expr("percentile_approx(length_ms, 0.5)").alias("length_ms"),
            sql.collect_list("ending").alias("endings"),
            sql.bool_and("is_exact").alias("is_exact"),
            sql.expr("bool_and(coalesce(ending = 'replaced', true))").alias("is_quiet"),
            sql.collect_list("member_id").alias("members"),
        )
        .where(f"count - alive >= {MEMBERSHIPS_MIN}")
        .selectExpr(
            "*",
            "CASE WHEN size(array_except(endings, array('gone'))) = 0 "
            "THEN 'The history does not show why it left' ELSE concat('Departures: ', "
            "array_join(array_distinct(endings), ', ')) END AS how",
        )
    )


def _removed_but_alive(evidence: Evidence) -> DataFrame:
    refused = evidence.group_events.where("event = 'commit-refused'").selectExpr(
        "group_id", "get_json_object(body, '$.member_id') AS member_id"
    )
    poll_expired = evidence.group_events.where(f"event = 'member-gone' AND {REASON}").selectExpr(
        "group_id", "party.member_id"
    )
    return refused.union(poll_expired).distinct().withColumn("was_alive", sql.expr("true"))


CRASH_LOOP = FindingRule(
    name="crash-loop",
    meaning="A client leaves and rejoins again and again, each time after a few minutes at most.",
    find=_find,
    # Restarts of a static member do not affect the other members.
    severity="CASE WHEN is_quiet THEN 'warning' ELSE 'critical' END",
    what="{subject} left and rejoined {count:time}, typically after {length_ms:duration}. {how}.",
    advice="Check the log of this client at the times when it left. A common cause is a record "
    "that crashes the consumer: check whether one partition's committed offset has stopped. Add "
    "back-off between restarts.",
    setting="CASE WHEN NOT is_quiet THEN 'group.instance.id' END",
    shown=("members", "endings"),
)
