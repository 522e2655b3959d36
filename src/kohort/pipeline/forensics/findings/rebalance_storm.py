"""A group that rebalances very often, and not because of a deploy.

A deploy starts two rebalances for each member: one when it leaves and one when it joins. In a storm
few clients start many rebalances, at least three each; or there are many more rebalances than
members, if every new member has a new name.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.findings.finding import WHO, Evidence, FindingRule, in_bursts
from kohort.pipeline.forensics.sql_text import count

REBALANCES_MIN = 10
PER_CLIENT_MIN = 3
PER_MEMBER_MIN = 4
GAP_MS = 10 * 60_000


def _find(evidence: Evidence) -> DataFrame:
    ended = evidence.rebalances.where("ended_at IS NOT NULL").selectExpr(
        "*", f"{WHO.replace('party', 'initiator')} AS who"
    )
    return (
        in_bursts(ended, by=["group_id"], at="ended_at", gap_ms=GAP_MS)
        .groupBy("group_id", "burst")
        .agg(
            sql.count("*").alias("count"),
            sql.count_distinct(sql.expr("coalesce(who, '')")).alias("clients"),
            sql.min(sql.coalesce("started_at", "ended_at")).alias("from_at"),
            sql.max("ended_at").alias("to_at"),
            sql.sum("duration_ms").alias("rebalancing_ms"),
            sql.sum("ownerless_partition_ms").alias("ownerless_ms"),
            sql.max(sql.greatest("members_before", "members_after")).alias("members"),
            sql.mode("who").alias("most"),
            sql.mode("trigger").alias("trigger"),
            sql.bool_and("is_exact").alias("is_exact"),
            sql.min("generation").alias("first_generation"),
            sql.max("generation").alias("last_generation"),
        )
        .selectExpr("*", f"count >= {PER_CLIENT_MIN} * clients AS is_by_few")
        .where(f"count >= {REBALANCES_MIN} AND (is_by_few OR count >= {PER_MEMBER_MIN} * members)")
        .selectExpr(
            "*",
            "CASE WHEN is_by_few THEN most END AS subject",
            f"CASE WHEN is_by_few THEN concat(most, ' started most of them') "
            f"ELSE concat({count('clients', 'client')}, ' started them') END AS who",
            "CASE WHEN is_by_few THEN most ELSE 'the system that starts and stops the members' END"
            " AS worst",
            "unix_millis(to_at) - unix_millis(from_at) AS span_ms",
            "CASE WHEN is_exact THEN '' ELSE ' The initiators are inferred.' END AS doubt",
        )
    )


REBALANCE_STORM = FindingRule(
    name="rebalance-storm",
    meaning="Many rebalances in a short time, most of them started by few clients.",
    find=_find,
    severity="CASE WHEN rebalancing_ms > span_ms / 5 OR count >= 30 THEN 'critical' "
    "ELSE 'warning' END",
    what="{count:rebalance} within {span_ms:duration}; the group spent {rebalancing_ms:duration} "
    "rebalancing. The most frequent trigger is {trigger}; {who}.{doubt}",
    advice="Check {worst} first; the other findings of this group may show the cause. Until it is "
    "fixed, stop it to stabilise the group.",
    setting="CASE trigger WHEN 'session-expired' THEN 'session.timeout.ms=45000' "
    "WHEN 'member-left' THEN 'max.poll.interval.ms, or group.instance.id' "
    "WHEN 'member-joined' THEN 'group.instance.id' END",
    saved="ownerless_ms",
    shown=("first_generation", "last_generation", "trigger", "clients"),
)
