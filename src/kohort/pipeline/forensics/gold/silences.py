"""How each member that is gone went, judged by its silence; and when its rebalance began.

A member that leaves has just committed. One whose session expired had been silent for the session
timeout, which it told when it joined, and one that was too busy to poll for its rebalance timeout
(a client's `max.poll.interval.ms`). Nobody tells when the rebalance began; but those who stayed
commit in their rhythm until they hear of it, so it began about when the first of them stopped.

What a member's silence can mean, the first that fits:

    unsynced   it never committed, the generation was as old as its rebalance timeout, and its
               session was longer than that: it never asked for its assignment
    waited     the others had stopped long before, and the rebalance ended as its session or its
               rebalance timeout did: it was waited for, and began nothing
    left       the rebalance was over before its session could be, or began with its last commit
    expired    the rebalance began when its session was over
    stuck      the rebalance began when its time to poll was over; clients leave then
    left       after all, if the rebalance began within its rhythm
    mute       none of these, and others committed all the while: a member that leaves commits
               before it goes, so this one most likely died
    quiet      none of these, and nobody committed much
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.gold.pairs import KEY, PARTY

NOTICE_MS = 3_500
"""How long after the beginning others may still commit: a heartbeat apart, three seconds mostly."""

REJOIN_MS = 10_000
"""How long an ordinary rebalance takes, where nobody's rhythm tells when it began."""

SLACK_MS = 2_000
"""For timers, and for what lies between a decision and its record."""

_IDLE = (
    "CASE WHEN ended_ms - sign_ms BETWEEN 0 AND 2 * m.rebalance_timeout_ms "
    "THEN (ended_ms - sign_ms) * size(m.assigned) END"
)
"""Partition-time since a member's last sign; what is longer than a rebalance can be is no part."""

_PAIR = ("group_id", "era", "seq")


def silences(paired: DataFrame, signs: DataFrame) -> DataFrame:
    """For each pair: `last_sign` of anybody; `exits`: who is gone, how and when, in order.

    And `idle_ms`: for how long the partitions of those who stayed were without a commit.
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
    heard = members.join(signs, ["group_id", "generation", "member_id"], "left").selectExpr(
        "*",
        "unix_millis(last_sign) AS sign_ms",
        f"CASE WHEN is_gone THEN named_struct('party', {PARTY}, "
        "'is_static', m.instance_id IS NOT NULL, 'has_sign', last_sign IS NOT NULL, "
        "'heard_ms', coalesce(unix_millis(last_sign), kept_ms), "
        "'rhythm_ms', coalesce(rhythm_ms, 5000L), 'session_ms', bigint(m.session_timeout_ms), "
        "'poll_ms', bigint(m.rebalance_timeout_ms)) END AS exit",
    )
    # Who has no rhythm, or is late already, does not tell when it would have committed next.
    steady = "NOT is_gone AND rhythm_ms IS NOT NULL"
    return (
        heard.groupBy(*_PAIR, "kept_ms", "ended_ms")
        .agg(
            sql.max("last_sign").alias("last_sign"),
            sql.expr(f"min(sign_ms) FILTER (WHERE {steady})").alias("stopped_from"),
            sql.expr(f"min(sign_ms + rhythm_ms) FILTER (WHERE {steady})").alias("stopped_by"),
            sql.expr("max(sign_ms) FILTER (WHERE NOT is_gone)").alias("stayed_ms"),
            sql.expr(f"max(rhythm_ms) FILTER (WHERE {steady})").alias("usual_ms"),
            sql.collect_list("exit").alias("exits"),
            sql.expr(f"sum({_IDLE}) FILTER (WHERE NOT is_gone)").alias("idle_ms"),
        )
        .selectExpr(
            "*",
            f"coalesce(stopped_from - {NOTICE_MS}, ended_ms - {REJOIN_MS}) AS from_ms",
            "least(coalesce(stopped_by, ended_ms), ended_ms) AS by_ms",
        )
        .selectExpr(*_PAIR, "last_sign", "idle_ms", f"{_judged('exits')} AS exits")
    )


def _judged(exits: str) -> str:
    judged = (
        f"transform({exits}, x -> named_struct('party', x.party, 'is_static', x.is_static, "
        f"'heard_ms', x.heard_ms, 'silent_ms', ended_ms - x.heard_ms, "
        f"'session_ms', x.session_ms, 'poll_ms', x.poll_ms, 'ended_ms', ended_ms, "
        f"'kind', {_kind()}))"
    )
    moment = (
        "CASE x.kind WHEN 'expired' THEN x.heard_ms + x.session_ms "
        "WHEN 'stuck' THEN x.heard_ms + x.poll_ms WHEN 'waited' THEN x.ended_ms "
        "ELSE x.heard_ms END"
    )
    return (
        f"array_sort(transform({judged}, x -> named_struct('moment', {moment}, 'kind', x.kind, "
        "'party', x.party, 'is_static', x.is_static, 'silent_ms', x.silent_ms)))"
    )


def _kind() -> str:
    # What a timer that began with the last sign leaves open: the next sign that did not come.
    slack = f"greatest(x.rhythm_ms, {NOTICE_MS}) + {SLACK_MS}"

    def ends(timeout: str) -> str:
        over = f"x.heard_ms + x.{timeout}"
        # Had somebody who stayed just come, that would have ended the wait, and not this one.
        return (
            f"(by_ms < {over} AND ended_ms BETWEEN {over} - {SLACK_MS} AND {over} + {slack} "
            f"AND coalesce(stayed_ms < ended_ms - {SLACK_MS}, true))"
        )

    def begins(timeout: str) -> str:
        over = f"x.heard_ms + x.{timeout}"
        return f"(by_ms >= {over} - {SLACK_MS} AND from_ms <= {over} + {slack})"

    unsynced = (
        "NOT x.has_sign AND x.session_ms >= x.poll_ms AND "
        f"ended_ms BETWEEN kept_ms + x.poll_ms / 2 AND kept_ms + x.poll_ms + {slack}"
    )
    left = (
        "ended_ms < x.heard_ms + x.session_ms OR (x.has_sign AND "
        f"coalesce(stopped_from, ended_ms) <= x.heard_ms + {NOTICE_MS} + {SLACK_MS})"
    )
    could_have_left = f"x.has_sign AND from_ms <= x.heard_ms + x.rhythm_ms + {SLACK_MS}"
    mute = "stayed_ms > x.heard_ms + 2 * coalesce(usual_ms, x.rhythm_ms)"
    return (
        f"CASE WHEN {unsynced} THEN 'unsynced' "
        f"WHEN {ends('session_ms')} OR {ends('poll_ms')} THEN 'waited' "
        f"WHEN {left} THEN 'left' "
        f"WHEN {begins('session_ms')} THEN 'expired' "
        f"WHEN {begins('poll_ms')} THEN 'stuck' "
        f"WHEN {could_have_left} THEN 'left' WHEN {mute} THEN 'mute' ELSE 'quiet' END"
    )
