"""A group that rebalances again and again, and not because of a deploy.

A deploy begins two rebalances for each member, one when it goes and one when it comes. A storm is
many rebalances by few, at least three for each client that began any; or more of them than the
group has members by far, where each newcomer has a new name.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.findings.finding import WHO, Evidence, Finding, in_bursts
from kohort.pipeline.forensics.saying import count

REBALANCES_MIN = 10
PER_CLIENT_MIN = 3
PER_MEMBER_MIN = 4
GAP_MS = 10 * 60_000


def _find(evidence: Evidence) -> DataFrame:
    ended = evidence.rebalances.where("ended_at IS NOT NULL").selectExpr(
        "*", f"{WHO.replace('party', 'culprit')} AS who"
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
            f"CASE WHEN is_by_few THEN concat(most, ' began the most') "
            f"ELSE concat({count('clients', 'client')}, ' began them') END AS who",
            "CASE WHEN is_by_few THEN most ELSE 'what starts and stops the members' END AS worst",
            "unix_millis(to_at) - unix_millis(from_at) AS span_ms",
            "CASE WHEN is_exact THEN '' ELSE ' Who began them is inferred: no event tells.' END"
            " AS doubt",
        )
    )


STORM = Finding(
    name="rebalance-storm",
    meaning="Many rebalances in a row, begun again and again by few clients.",
    find=_find,
    severity="CASE WHEN rebalancing_ms > span_ms / 5 OR count >= 30 THEN 'critical' "
    "ELSE 'warning' END",
    what="{count:rebalance} within {span_ms:duration}, {rebalancing_ms:duration} of it between "
    "generations. Most begin with {trigger}; {who}.{doubt}",
    advice="Look at {worst} first. The other findings of this group may tell what it does; until "
    "it is mended, stop it, and the group will be quiet.",
    setting="CASE trigger WHEN 'session-expired' THEN 'session.timeout.ms=45000' "
    "WHEN 'member-left' THEN 'max.poll.interval.ms, or group.instance.id' "
    "WHEN 'member-joined' THEN 'group.instance.id' END",
    saved="ownerless_ms",
    shown=("first_generation", "last_generation", "trigger", "clients"),
)
