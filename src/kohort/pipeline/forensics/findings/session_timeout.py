"""A client whose session expires again and again: it pauses, or is starved, or the network is cut.

One expiry is a process that died. If the same client was heard of afterwards under its old id, it
had been alive all the while.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.findings.finding import WHO, Evidence, Finding
from kohort.pipeline.forensics.saying import count

SEEN_MIN = 2


def _find(evidence: Evidence) -> DataFrame:
    told = evidence.group_events.where(
        "event = 'member-gone' AND departure = 'session-expired'"
    ).selectExpr("group_id", "at", "party", "1D AS confidence")
    guessed = evidence.rebalances.where(
        "NOT is_exact AND trigger = 'session-expired' AND culprit IS NOT NULL"
    ).selectExpr("group_id", "ended_at AS at", "culprit AS party", "confidence")
    timeouts = (
        evidence.generations.selectExpr("group_id", "explode(members) AS m")
        .groupBy("group_id", sql.col("m.member_id").alias("member_id"))
        .agg(sql.max("m.session_timeout_ms").alias("session_ms"))
    )
    refused = evidence.group_events.where("event = 'commit-refused'").selectExpr(
        "group_id", "get_json_object(body, '$.member_id') AS member_id", "true AS was_alive"
    )
    return (
        told.unionByName(guessed)
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
            f"CASE WHEN alive > 0 THEN concat(' It was alive ', {count('alive', 'time')}, ': it "
            "tried to commit afterwards.') "
            "ELSE ' Whether it had died or only paused is not known.' END AS state",
            "CASE WHEN confidence = 1 THEN '' ELSE ' Inferred from how long it was silent.' END"
            " AS doubt",
        )
    )


SESSION_TIMEOUT = Finding(
    name="evicted-by-session-timeout",
    meaning="The same client was repeatedly not heard of for its session timeout.",
    find=_find,
    severity="CASE WHEN count >= 5 THEN 'critical' ELSE 'warning' END",
    what="{subject} was not heard of for {session_ms:duration}, {count:time}.{state}{doubt}",
    advice="Look for long pauses of the process (garbage collection, throttled CPU, a suspended "
    "machine) and for a network that drops idle connections. If it crashes, mend that first.",
    setting="concat('session.timeout.ms=', greatest(2 * session_ms, 45000), "
    "', heartbeat.interval.ms a third of it at the most')",
    shown=("members", "alive"),
)
