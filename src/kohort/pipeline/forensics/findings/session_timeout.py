"""A client whose session expires repeatedly: it pauses, gets no CPU, or loses its connection.

A single expiry may be a process that died. If the client used its old member id afterwards, it was
alive.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.findings.finding import WHO, Evidence, FindingRule
from kohort.pipeline.forensics.sql_text import count

SEEN_MIN = 2


def _find(evidence: Evidence) -> DataFrame:
    recorded = evidence.group_events.where(
        "event = 'member-gone' AND departure = 'session-expired'"
    ).selectExpr("group_id", "at", "party", "1D AS confidence")
    inferred = evidence.rebalances.where(
        "NOT is_exact AND trigger = 'session-expired' AND initiator IS NOT NULL"
    ).selectExpr("group_id", "ended_at AS at", "initiator AS party", "confidence")
    timeouts = (
        evidence.generations.selectExpr("group_id", "explode(members) AS m")
        .groupBy("group_id", sql.col("m.member_id").alias("member_id"))
        .agg(sql.max("m.session_timeout_ms").alias("session_ms"))
    )
    refused = evidence.group_events.where("event = 'commit-refused'").selectExpr(
        "group_id", "get_json_object(body, '$.member_id') AS member_id", "true AS was_alive"
    )
    return (
        recorded.unionByName(inferred)
        .selectExpr("*", "party.member_id", f"{WHO} AS subject")
        .join(timeouts, ["group_id", "member_id"], "left")
        .join(refused.distinct(), ["group_id", "member_id"], "left")
        .groupBy("group_id", "subject")
        .agg(
            sql.count("*").alias("count"),
            sql.min("at").alias("from_at"),
            sql.max("at").alias("to_at"),
            sql.max("session_ms").alias("session_ms"),
            sql.count_if("was_alive").alias("alive"),
            sql.min("confidence").alias("confidence"),
            sql.collect_list("member_id").alias("members"),
        )
        .where(f"count >= {SEEN_MIN}")
        .selectExpr(
            "*",
            f"CASE WHEN alive > 0 THEN concat(' It was still running ', {count('alive', 'time')}, "
            "': it tried to commit afterwards.') "
            "ELSE ' The history does not show whether it crashed or paused.' END AS state",
            "CASE WHEN confidence = 1 THEN '' ELSE ' Inferred from the time without commits.' END"
            " AS doubt",
        )
    )


SESSION_TIMEOUT = FindingRule(
    name="evicted-by-session-timeout",
    meaning="The session of one client expired repeatedly.",
    find=_find,
    severity="CASE WHEN count >= 5 THEN 'critical' ELSE 'warning' END",
    what="{subject} sent no heartbeat for {session_ms:duration}, {count:time}.{state}{doubt}",
    advice="Check for long pauses of the process (garbage collection, CPU throttling, a suspended "
    "machine) and for dropped connections. If it crashes, fix that first. Otherwise raise "
    "session.timeout.ms, and set heartbeat.interval.ms to at most a third of it.",
    setting="concat('session.timeout.ms=', greatest(2 * session_ms, 45000), "
    "', with heartbeat.interval.ms at most a third of it')",
    shown=("members", "alive"),
)
