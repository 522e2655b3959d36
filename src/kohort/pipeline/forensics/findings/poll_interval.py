"""A member that left the group because its program did not poll for `max.poll.interval.ms`.

The Java client and Kohort's give this reason when they leave. Others, such as librdkafka, give no
reason, and some do not leave but miss the rebalance timeout. Without a reason it is inferred: the
time since the last commit was as long as the rebalance timeout, which clients take from that
setting.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.findings.finding import WHO, Evidence, FindingRule
from kohort.pipeline.forensics.gold.departure_inference import last_activity
from kohort.pipeline.forensics.sql_text import count

REASON = "lower(client_reason) RLIKE 'poll timeout|max[. ]poll[. ]interval'"
MISSED_MIN = 2
EARLY_MS = 2_000
LATE_MS = 30_000
"""The time counts from the last commit, which is up to a commit interval before the last poll."""


def _find(evidence: Evidence) -> DataFrame:
    timeouts = (
        evidence.generations.selectExpr("group_id", "explode(members) AS m")
        .groupBy("group_id", sql.col("m.member_id").alias("member_id"))
        .agg(sql.max("m.rebalance_timeout_ms").alias("poll_ms"))
    )
    out = _from_events(evidence).unionByName(_inferred(evidence))
    returns = evidence.memberships.selectExpr(
        "group_id", f"{WHO.replace('party.', '')} AS subject", "from_at"
    )
    evicted = (
        out.join(timeouts, ["group_id", "member_id"], "left")
        .where(f"has_reason OR silent_ms BETWEEN poll_ms - {EARLY_MS} AND poll_ms + {LATE_MS}")
        .selectExpr("*", f"{WHO} AS subject")
        .groupBy("group_id", "subject")
        .agg(
            sql.count("*").alias("count"),
            sql.min("at").alias("from_at"),
            sql.max("at").alias("to_at"),
            sql.max("poll_ms").alias("poll_ms"),
            sql.bool_and("has_reason").alias("is_exact"),
            sql.bool_and("has_missed").alias("has_missed"),
            sql.collect_list("member_id").alias("members"),
        )
        # A member that missed a single rebalance may have crashed.
        .where(f"NOT has_missed OR count >= {MISSED_MIN}")
    )
    back = (
        evicted.select("group_id", "subject", sql.col("from_at").alias("out_at"))
        .join(returns, ["group_id", "subject"])
        .where("from_at > out_at")
        .groupBy("group_id", "subject")
        .agg(sql.count("*").alias("returns"))
    )
    return evicted.join(back, ["group_id", "subject"], "left").selectExpr(
        "*",
        f"CASE WHEN returns > 0 THEN concat(' It rejoined ', {count('returns', 'time')}, '.') "
        "ELSE '' END AS aftermath",
        "CASE WHEN is_exact THEN '' ELSE ' Inferred from the time without commits.' END AS doubt",
    )


def _from_events(evidence: Evidence) -> DataFrame:
    return (
        evidence.group_events.where("event = 'member-gone'")
        .where(f"({REASON} AND departure = 'left') OR departure = 'not-rejoined'")
        .selectExpr(
            "group_id",
            "at",
            "party.member_id",
            "party",
            "true AS has_reason",
            "departure = 'not-rejoined' AS has_missed",
            "0L AS silent_ms",
        )
    )


def _inferred(evidence: Evidence) -> DataFrame:
    """Members that left and had not committed for a long time."""
    left = evidence.rebalances.where(
        "trigger = 'member-left' AND initiator IS NOT NULL AND client_reason IS NULL"
    ).selectExpr(
        "group_id",
        "generation_before AS generation",
        "initiator AS party",
        "initiator.member_id",
        "ended_at AS at",
        "CASE WHEN is_exact THEN started_at ELSE ended_at END AS left_at",
    )
    activity = last_activity(evidence.commit_runs)
    return left.join(activity, ["group_id", "generation", "member_id"]).selectExpr(
        "group_id",
        "at",
        "member_id",
        "party",
        "false AS has_reason",
        "false AS has_missed",
        "unix_millis(left_at) - unix_millis(last_seen) AS silent_ms",
    )


POLL_INTERVAL = FindingRule(
    name="evicted-by-poll-interval",
    meaning="A client took longer for a batch than max.poll.interval.ms.",
    find=_find,
    severity="CASE WHEN count >= 3 THEN 'critical' ELSE 'warning' END",
    what="{subject} left the group {count:time} because it did not poll for {poll_ms:duration}."
    "{aftermath}{doubt}",
    advice="Raise max.poll.interval.ms above {poll_ms:duration}, or lower max.poll.records. "
    "Another member processes the unfinished batch again.",
    setting="concat('max.poll.interval.ms=', 2 * poll_ms, ', or half of max.poll.records')",
    shown=("members", "poll_ms"),
)
