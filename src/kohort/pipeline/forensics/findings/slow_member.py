"""One member for which all others wait: a rebalance takes as long as its slowest join.

Without events, join times are unknown. Members with an eager assignor commit once more before they
join, so the slow member is the one that committed long after all others, shortly before the new
generation.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.findings.finding import WHO, Evidence, FindingRule
from kohort.pipeline.forensics.gold.departure_inference import last_activity

SLOW_MS = 10_000
"""Members rejoin within one or two heartbeats; 10 s means that one is processing a batch."""

TIMES_THE_OTHERS = 3
SEEN_MIN = 2
FOLLOWS_WITHIN_MS = 5_000


def _find(evidence: Evidence) -> DataFrame:
    return (
        _from_events(evidence)
        .unionByName(_inferred(evidence))
        .selectExpr("*", f"{WHO} AS subject")
        .groupBy("group_id", "subject")
        .agg(
            sql.count("*").alias("count"),
            sql.min("ended_at").alias("from_at"),
            sql.max("ended_at").alias("to_at"),
            sql.max("slowest_ms").alias("longest_ms"),
            sql.max("second_ms").alias("second_ms"),
            sql.sum("cost_ms").alias("cost_ms"),
            sql.bool_and("is_exact").alias("is_exact"),
            sql.collect_list("generation").alias("generations"),
        )
        .where(f"count >= {SEEN_MIN}")
        .selectExpr(
            "*",
            "CASE WHEN is_exact THEN '' ELSE ' Inferred from commits; join times are unknown.'"
            " END AS doubt",
        )
    )


def _from_events(evidence: Evidence) -> DataFrame:
    joins = (
        "reverse(array_sort(transform(filter(participants, p -> p.join_took_ms IS NOT NULL), "
        "p -> named_struct('ms', p.join_took_ms, 'party', p.party, 'got', size(p.got)))))"
    )
    return (
        evidence.group_events.where("event = 'rebalance-ended' AND ending = 'stable'")
        .selectExpr("*", f"{joins} AS joins")
        .where(
            f"size(joins) >= 2 AND get(joins, 0).ms >= {SLOW_MS} "
            f"AND get(joins, 0).ms >= {TIMES_THE_OTHERS} * get(joins, 1).ms"
        )
        .selectExpr(
            "group_id",
            "at AS ended_at",
            "generation",
            "get(joins, 0).party AS party",
            "get(joins, 0).ms AS slowest_ms",
            "get(joins, 1).ms AS second_ms",
            # With a cooperative assignor the other members continue meanwhile.
            "CASE WHEN protocol NOT LIKE '%cooperative%' THEN (get(joins, 0).ms - get(joins, 1).ms)"
            " * aggregate(slice(joins, 2, size(joins)), 0, (sum, j) -> sum + j.got) END AS cost_ms",
            "true AS is_exact",
        )
    )


def _inferred(evidence: Evidence) -> DataFrame:
    activity = (
        last_activity(evidence.commit_runs)
        .groupBy("group_id", sql.col("generation").alias("generation_before"))
        .agg(
            sql.expr("reverse(array_sort(collect_list(struct(last_seen, member_id))))").alias(
                "activity"
            )
        )
    )
    members = evidence.generations.selectExpr(
        "group_id", "generation", "at AS ended_at", "explode(members) AS party"
    )
    late = "unix_millis(get(activity, 0).last_seen) - unix_millis(get(activity, 1).last_seen)"
    return (
        evidence.rebalances.where("NOT is_exact AND NOT is_cooperative AND ending = 'stable'")
        .join(activity, ["group_id", "generation_before"])
        .where(f"size(activity) >= 2 AND {late} >= {SLOW_MS}")
        .where(
            "unix_millis(ended_at) - unix_millis(get(activity, 0).last_seen) BETWEEN 0 AND "
            f"{FOLLOWS_WITHIN_MS}"
        )
        .join(members, ["group_id", "generation", "ended_at"])
        .where("party.member_id = get(activity, 0).member_id")
        .selectExpr(
            "group_id",
            "ended_at",
            "generation",
            "struct(party.member_id, party.instance_id, party.client_id, party.client_host)"
            " AS party",
            f"{late} AS slowest_ms",
            "0L AS second_ms",
            f"{late} * (partitions - size(party.assigned)) AS cost_ms",
            "false AS is_exact",
        )
    )


SLOW_MEMBER = FindingRule(
    name="slow-member",
    meaning="One member rejoins long after the others, which wait for it.",
    find=_find,
    severity="CASE WHEN longest_ms >= 60000 THEN 'critical' ELSE 'warning' END",
    what="In {count:rebalance} all members waited for {subject}, up to {longest_ms:duration}; the "
    "second slowest took at most {second_ms:duration}.{doubt}",
    advice="Lower max.poll.records, or process records in another thread than the one that polls. "
    "A member rejoins only when it polls, after its batch is done.",
    setting="'max.poll.records, lower than now'",
    saved="cost_ms",
    shown=("generations", "longest_ms"),
)
