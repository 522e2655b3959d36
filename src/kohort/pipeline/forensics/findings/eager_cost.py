"""The cost of an eager assignor: every rebalance stops all members, although few partitions move.

A cooperative assignor stops only the partitions that move. It would have saved the time without
owner of all partitions that returned to their previous owner.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.findings.finding import Evidence, FindingRule

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
            "CASE WHEN is_exact THEN '' ELSE ' The durations are estimates: from the last commit "
            "of each member to the new generation.' END AS doubt",
        )
    )


EAGER_COST = FindingRule(
    name="eager-protocol-cost",
    meaning="Every rebalance stopped all members, although few partitions moved.",
    find=_find,
    severity="CASE WHEN saved_ms >= 3600000 THEN 'warning' ELSE 'notice' END",
    what="{count:rebalance} with the eager assignor {protocol} stopped all partitions for "
    "{ownerless_ms:duration} of partition time and reassigned {percent:number} % of them. A "
    "cooperative assignor would have avoided {saved_ms:duration} of this.{doubt}",
    advice="Set partition.assignment.strategy=CooperativeStickyAssignor in two rolling restarts: "
    "first in addition to the present assignor, then alone.",
    setting="'partition.assignment.strategy=CooperativeStickyAssignor'",
    saved="saved_ms",
    shown=("moved", "partitions", "protocol"),
)
