"""A member that is out because its program did not poll for `max.poll.interval.ms`.

Java's clients and Kohort's say so when they leave. Others, librdkafka among them, leave without a
word, and some do not leave but miss the time to rejoin. Without a word, the silence tells: it was
as long as the rebalance timeout, which is what clients make of that setting.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.findings.finding import WHO, Evidence, Finding
from kohort.pipeline.forensics.gold.signs import signs
from kohort.pipeline.forensics.saying import count

REASON = "lower(client_reason) RLIKE 'poll timeout|max[. ]poll[. ]interval'"
MISSED_MIN = 2
EARLY_MS = 2_000
LATE_MS = 30_000
"""A silence counts from the last commit, which is a rhythm before the last poll."""


def _find(evidence: Evidence) -> DataFrame:
    timeouts = (
        evidence.generations.selectExpr("group_id", "explode(members) AS m")
        .groupBy("group_id", sql.col("m.member_id").alias("member_id"))
        .agg(sql.max("m.rebalance_timeout_ms").alias("poll_ms"))
    )
    out = _told(evidence).unionByName(_guessed(evidence))
    returns = evidence.memberships.selectExpr(
        "group_id", f"{WHO.replace('party.', '')} AS subject", "from_at"
    )
    evicted = (
        out.join(timeouts, ["group_id", "member_id"], "left")
        .where(f"has_said OR silent_ms BETWEEN poll_ms - {EARLY_MS} AND poll_ms + {LATE_MS}")
        .selectExpr("*", f"{WHO} AS subject")
        .groupBy("group_id", "subject")
        .agg(
            sql.count("*").alias("count"),
            sql.min("at").alias("from_at"),
            sql.max("at").alias("to_at"),
            sql.max("poll_ms").alias("poll_ms"),
            sql.bool_and("has_said").alias("is_exact"),
            sql.bool_and("has_missed").alias("has_missed"),
            sql.collect_list("member_id").alias("members"),
        )
        # Who misses one rebalance may have died in it.
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
        f"CASE WHEN returns > 0 THEN concat(' It came back ', {count('returns', 'time')}, '.') "
        "ELSE '' END AS aftermath",
        "CASE WHEN is_exact THEN '' ELSE ' Its client gave no reason: its silence tells.' END"
        " AS doubt",
    )


def _told(evidence: Evidence) -> DataFrame:
    return (
        evidence.group_events.where("event = 'member-gone'")
        .where(f"({REASON} AND departure = 'left') OR departure = 'not-rejoined'")
        .selectExpr(
            "group_id",
            "at",
            "party.member_id",
            "party",
            "true AS has_said",
            "departure = 'not-rejoined' AS has_missed",
            "0L AS silent_ms",
        )
    )


def _guessed(evidence: Evidence) -> DataFrame:
    """Who left and had not committed for long; clients of other makes, and all without events."""
    left = evidence.rebalances.where(
        "trigger = 'member-left' AND culprit IS NOT NULL AND client_reason IS NULL"
    ).selectExpr(
        "group_id",
        "generation_before AS generation",
        "culprit AS party",
        "culprit.member_id",
        "ended_at AS at",
        "CASE WHEN is_exact THEN started_at ELSE ended_at END AS left_at",
    )
    heard = signs(evidence.stints)
    return left.join(heard, ["group_id", "generation", "member_id"]).selectExpr(
        "group_id",
        "at",
        "member_id",
        "party",
        "false AS has_said",
        "false AS has_missed",
        "unix_millis(left_at) - unix_millis(last_sign) AS silent_ms",
    )


POLL_INTERVAL = Finding(
    name="evicted-by-poll-interval",
    meaning="A program took longer over its records than max.poll.interval.ms allows.",
    find=_find,
    severity="CASE WHEN count >= 3 THEN 'critical' ELSE 'warning' END",
    what="{subject} was out {count:time} since it did not poll for {poll_ms:duration}.{aftermath}"
    "{doubt}",
    advice="Its batches take longer than that. Make them smaller, or allow more time; what it was "
    "at work on is done again by another.",
    setting="concat('max.poll.interval.ms=', 2 * poll_ms, ', or max.poll.records halved')",
    shown=("members", "poll_ms"),
)
