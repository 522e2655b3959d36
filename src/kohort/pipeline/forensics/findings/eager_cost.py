"""What an eager protocol cost: everybody stops for every rebalance, though little moves.

A cooperative protocol stops only what moves. What it would have saved is the time without an owner
of all partitions that were back with their old owner in the end.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.findings.finding import Evidence, Finding

REBALANCES_MIN = 3
SAVED_MS_MIN = 60_000
SHARE_MIN = 0.5


def _find(evidence: Evidence) -> DataFrame:
    return (
        evidence.rebalances.where(
            "NOT is_cooperative AND ending = 'stable' AND members_before > 0 AND partitions > 0"
        )
        .groupBy("group_id")
        .agg(
            sql.count("*").alias("count"),
            sql.min("ended_at").alias("from_at"),
            sql.max("ended_at").alias("to_at"),
            sql.sum("ownerless_partition_ms").alias("ownerless_ms"),
            sql.sum(
                sql.expr("bigint(ownerless_partition_ms * (1 - least(moved / partitions, 1)))")
            ).alias("saved_ms"),
            sql.sum("moved").alias("moved"),
            sql.sum("partitions").alias("partitions"),
            sql.mode("protocol").alias("protocol"),
            sql.bool_and("is_exact").alias("is_exact"),
        )
        .where(
            f"count >= {REBALANCES_MIN} AND saved_ms >= {SAVED_MS_MIN} "
            f"AND saved_ms >= {SHARE_MIN} * ownerless_ms"
        )
        .selectExpr(
            "*",
            "CAST(NULL AS STRING) AS subject",
            "round(100 * moved / partitions) AS percent",
            "CASE WHEN is_exact THEN '' ELSE ' The times are estimates, from each member\\'s last "
            "commit to the new generation.' END AS doubt",
        )
    )


EAGER_COST = Finding(
    name="eager-protocol-cost",
    meaning="Every rebalance stopped everybody, though few partitions moved.",
    find=_find,
    severity="CASE WHEN saved_ms >= 3600000 THEN 'warning' ELSE 'notice' END",
    what="{count:rebalance} under {protocol} stopped all partitions for {ownerless_ms:duration} of "
    "partition-time, and moved {percent:number} % of them. {saved_ms:duration} of it a cooperative "
    "protocol would have spared.{doubt}",
    advice="Roll out the cooperative protocol in two deploys: first beside the present one, then "
    "alone.",
    setting="'partition.assignment.strategy=CooperativeStickyAssignor'",
    saved="saved_ms",
    shown=("moved", "partitions", "protocol"),
)
