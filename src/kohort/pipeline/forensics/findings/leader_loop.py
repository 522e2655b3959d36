"""A leader that rejoins repeatedly without any change of the assignment.

A leader rejoins when its topics change, and then the group gets other partitions. If it rejoins
repeatedly and the assignment stays the same, its topic metadata is unstable or its program enforces
rebalances.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.findings.finding import WHO, Evidence, FindingRule, in_bursts

SEEN_MIN = 3
GAP_MS = 30 * 60_000


def _find(evidence: Evidence) -> DataFrame:
    order = Window.partitionBy("group_id").orderBy("ended_at")
    kept = evidence.rebalances.where("ending = 'stable'").withColumn(
        "partitions_before", sql.lag("partitions").over(order)
    )
    idle = kept.where(
        "trigger = 'leader-rejoined' AND moved = 0 AND partitions = partitions_before "
        "AND size(joined) = 0 AND size(departed) = 0"
        # The second step of a cooperative rebalance is not a loop.
        " AND coalesce(client_reason NOT LIKE '%revoke%', true)"
    )
    return (
        in_bursts(idle, by=["group_id"], at="ended_at", gap_ms=GAP_MS)
        .groupBy("group_id", "burst")
        .agg(
            sql.count("*").alias("count"),
            sql.min("ended_at").alias("from_at"),
            sql.max("ended_at").alias("to_at"),
            sql.mode(sql.expr(WHO.replace("party", "initiator"))).alias("subject"),
            sql.mode("client_reason").alias("reason"),
            sql.sum("ownerless_partition_ms").alias("ownerless_ms"),
            sql.bool_and("is_exact").alias("is_exact"),
            sql.collect_list("generation").alias("generations"),
        )
        .where(f"count >= {SEEN_MIN}")
        .selectExpr(
            "*",
            "CASE WHEN reason IS NOT NULL THEN concat(' Reason given by the client: ', reason, '.')"
            " WHEN is_exact THEN ' The client gave no reason.' "
            "ELSE ' The leader is inferred as the initiator, because nothing else changed.' END"
            " AS doubt",
        )
    )


LEADER_LOOP = FindingRule(
    name="leader-rejoin-loop",
    meaning="The leader starts rebalances that change nothing.",
    find=_find,
    severity="CASE WHEN count >= 10 THEN 'critical' ELSE 'warning' END",
    what="The leader {subject} started {count:rebalance} that did not change the assignment."
    "{doubt}",
    advice="Narrow its subscription pattern if topics that match it are created and deleted often. "
    "Raise metadata.max.age.ms if brokers return different topic metadata. Remove calls of "
    "enforceRebalance() from the program.",
    setting="'metadata.max.age.ms, and a narrower subscription pattern'",
    saved="ownerless_ms",
    shown=("generations", "reason"),
)
