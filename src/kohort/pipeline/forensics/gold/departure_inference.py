"""How each departed member left, inferred from the time since its last commit.

A member that leaves commits just before. If its session expired, its last commit is at least the
session timeout ago; if it did not poll, at least its rebalance timeout (`max.poll.interval.ms`).
The start of the rebalance is not recorded, but the remaining members commit at regular intervals
until they rejoin, so it started about when the first of them stopped.

The kinds of departure; the first that fits is chosen:

    unsynced   it never committed, the generation was as old as its rebalance timeout, and its
               session timeout was longer: it never sent its SyncGroup request
    waited     the others had stopped long before, and the rebalance ended with its session or
               rebalance timeout: the group waited for it, and it did not start the rebalance
    left       the rebalance ended before its session could expire, or started with its last commit
    expired    the rebalance started when its session expired
    stuck      the rebalance started when its poll timeout expired; clients leave then
    left       the rebalance started within its commit interval
    mute       none of these, and the others went on committing: a member that leaves commits
               before, so this one most likely crashed
    quiet      none of these, and there were few commits
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.gold.generation_pairs import IDENTITY, KEY

NOTICE_MS = 3_500
"""Members may still commit this long after the start: until their next heartbeat, usually 3 s."""

REJOIN_MS = 10_000
"""The usual duration of a rebalance, if no commit interval shows when it started."""

SLACK_MS = 2_000
"""For timers, and for the time between a decision and its record."""

_IDLE_MS = (
    "CASE WHEN ended_ms - last_seen_ms BETWEEN 0 AND 2 * m.rebalance_timeout_ms "
    "THEN (ended_ms - last_seen_ms) * size(m.assigned) END"
)
"""Partition time since the last commit of a member; ignored if longer than a rebalance can be."""

_PAIR = ("group_id", "deletions", "seq")

COMMITS_FOR_INTERVAL = 3
"""Fewer commits do not show a commit interval."""


def last_activity(commit_runs: DataFrame) -> DataFrame:
    """Each member's last commit in a generation, and its commit interval.

    Kafka does not store heartbeats, so commits are the only recorded activity of a member.
    """
    span = sql.unix_millis("last_at") - sql.unix_millis("first_at")
    interval = sql.when(
        sql.col("commits") >= COMMITS_FOR_INTERVAL, (span / (sql.col("commits") - 1)).cast("bigint")
    )
    return (
        commit_runs.where("owner IS NOT NULL AND commits > 0")
        .groupBy("group_id", "generation", sql.col("owner").alias("member_id"))
        .agg(
            sql.max("last_at").alias("last_seen"),
            # Some clients do not commit idle partitions: the busiest one shows the interval.
            sql.min(interval).alias("interval_ms"),
        )
    )


def departures(paired: DataFrame, last_activity: DataFrame) -> DataFrame:
    """For each pair: `last_seen`, the last commit; `exits`, the departed members in order of time;
    and `idle_ms`, the partition time without commits of the remaining members.
    """
    members = (
        paired.where("before IS NOT NULL")
        .selectExpr(
            *_PAIR,
            "before.generation",
            "unix_millis(before.at) AS kept_ms",
            "unix_millis(after.at) AS ended_ms",
            f"transform(leavers, m -> {KEY}) AS gone",
            "explode(had_members) AS m",
        )
        .selectExpr("*", f"array_contains(gone, {KEY}) AS is_gone", "m.member_id")
    )
    activity = members.join(
        last_activity, ["group_id", "generation", "member_id"], "left"
    ).selectExpr(
        "*",
        "unix_millis(last_seen) AS last_seen_ms",
        f"CASE WHEN is_gone THEN named_struct('party', {IDENTITY}, "
        "'is_static', m.instance_id IS NOT NULL, 'has_commits', last_seen IS NOT NULL, "
        "'seen_ms', coalesce(unix_millis(last_seen), kept_ms), "
        "'interval_ms', coalesce(interval_ms, 5000L), 'session_ms', bigint(m.session_timeout_ms), "
        "'poll_ms', bigint(m.rebalance_timeout_ms)) END AS exit",
    )
    # Members without a commit interval do not show when they would have committed next.
    steady = "NOT is_gone AND interval_ms IS NOT NULL"
    return (
        activity.groupBy(*_PAIR, "kept_ms", "ended_ms")
        .agg(
            sql.max("last_seen").alias("last_seen"),
            sql.expr(f"min(last_seen_ms) FILTER (WHERE {steady})").alias("stopped_from"),
            sql.expr(f"min(last_seen_ms + interval_ms) FILTER (WHERE {steady})").alias(
                "stopped_by"
            ),
            sql.expr("max(last_seen_ms) FILTER (WHERE NOT is_gone)").alias("stayed_ms"),
            sql.expr(f"max(interval_ms) FILTER (WHERE {steady})").alias("usual_ms"),
            sql.collect_list("exit").alias("exits"),
            sql.expr(f"sum({_IDLE_MS}) FILTER (WHERE NOT is_gone)").alias("idle_ms"),
        )
        .selectExpr(
            "*",
            f"coalesce(stopped_from - {NOTICE_MS}, ended_ms - {REJOIN_MS}) AS from_ms",
            "least(coalesce(stopped_by, ended_ms), ended_ms) AS by_ms",
        )
        .selectExpr(*_PAIR, "last_seen", "idle_ms", f"{_judged('exits')} AS exits")
    )


def _judged(exits: str) -> str:
    judged = (
        f"transform({exits}, x -> named_struct('party', x.party, 'is_static', x.is_static, "
        f"'seen_ms', x.seen_ms, 'silent_ms', ended_ms - x.seen_ms, "
        f"'session_ms', x.session_ms, 'poll_ms', x.poll_ms, 'ended_ms', ended_ms, "
        f"'kind', {_kind()}))"
    )
    at_ms = (
        "CASE x.kind WHEN 'expired' THEN x.seen_ms + x.session_ms "
        "WHEN 'stuck' THEN x.seen_ms + x.poll_ms WHEN 'waited' THEN x.ended_ms "
        "ELSE x.seen_ms END"
    )
    return (
        f"array_sort(transform({judged}, x -> named_struct('at_ms', {at_ms}, 'kind', x.kind, "
        "'party', x.party, 'is_static', x.is_static, 'silent_ms', x.silent_ms)))"
    )


def _kind() -> str:
    # The timer started up to one interval after the last commit.
    slack = f"greatest(x.interval_ms, {NOTICE_MS}) + {SLACK_MS}"

    def ends(timeout: str) -> str:
        over = f"x.seen_ms + x.{timeout}"
        # If a remaining member had just joined, that would have ended the wait instead.
        return (
            f"(by_ms < {over} AND ended_ms BETWEEN {over} - {SLACK_MS} AND {over} + {slack} "
            f"AND coalesce(stayed_ms < ended_ms - {SLACK_MS}, true))"
        )

    def begins(timeout: str) -> str:
        over = f"x.seen_ms + x.{timeout}"
        return f"(by_ms >= {over} - {SLACK_MS} AND from_ms <= {over} + {slack})"

    unsynced = (
        "NOT x.has_commits AND x.session_ms >= x.poll_ms AND "
        f"ended_ms BETWEEN kept_ms + x.poll_ms / 2 AND kept_ms + x.poll_ms + {slack}"
    )
    left = (
        "ended_ms < x.seen_ms + x.session_ms OR (x.has_commits AND "
        f"coalesce(stopped_from, ended_ms) <= x.seen_ms + {NOTICE_MS} + {SLACK_MS})"
    )
    could_have_left = f"x.has_commits AND from_ms <= x.seen_ms + x.interval_ms + {SLACK_MS}"
    mute = "stayed_ms > x.seen_ms + 2 * coalesce(usual_ms, x.interval_ms)"
    return (
        f"CASE WHEN {unsynced} THEN 'unsynced' "
        f"WHEN {ends('session_ms')} OR {ends('poll_ms')} THEN 'waited' "
        f"WHEN {left} THEN 'left' "
        f"WHEN {begins('session_ms')} THEN 'expired' "
        f"WHEN {begins('poll_ms')} THEN 'stuck' "
        f"WHEN {could_have_left} THEN 'left' WHEN {mute} THEN 'mute' ELSE 'quiet' END"
    )
