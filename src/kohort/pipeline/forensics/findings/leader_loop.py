"""A leader that joins again and again, and nothing changes.

A leader joins anew when the topics it watches change, and then its group gets other partitions. If
it does so repeatedly and all stays as it was, it sees changes that are none, or its program
enforces rebalances.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.findings.finding import WHO, Evidence, Finding, in_bursts

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
        # The second step of a cooperative rebalance is no loop.
        " AND coalesce(client_reason NOT LIKE '%revoke%', true)"
    )
    return (
        in_bursts(idle, by=["group_id"], at="ended_at", gap_ms=GAP_MS)
        .groupBy("group_id", "burst")
        .agg(
            sql.count("*").alias("count"),
            sql.min("ended_at").alias("from_at"),
            sql.max("ended_at").alias("to_at"),
            sql.mode(sql.expr(WHO.replace("party", "culprit"))).alias("subject"),
            sql.mode("client_reason").alias("reason"),
            sql.sum("ownerless_partition_ms").alias("ownerless_ms"),
            sql.bool_and("is_exact").alias("is_exact"),
            sql.collect_list("generation").alias("generations"),
        )
        .where(f"count >= {SEEN_MIN}")
        .selectExpr(
            "*",
            "CASE WHEN reason IS NOT NULL THEN concat(' Its reason: ', reason, '.') "
            "WHEN is_exact THEN ' It gave no reason.' "
            "ELSE ' That it was the leader is inferred: nothing else had changed.' END AS doubt",
        )
    )


LEADER_LOOP = Finding(
    name="leader-rejoin-loop",
    meaning="The leader begins rebalances that change nothing.",
    find=_find,
    severity="CASE WHEN count >= 10 THEN 'critical' ELSE 'warning' END",
    what="The leader, {subject}, began {count:rebalance} after which everybody had what they "
    "had before.{doubt}",
    advice="See whether its subscription is a pattern that other topics come and go under, whether "
    "its view of the topics flaps between brokers, or whether its program enforces rebalances.",
    setting="'metadata.max.age.ms, and a narrower subscription pattern'",
    saved="ownerless_ms",
    shown=("generations", "reason"),
)
