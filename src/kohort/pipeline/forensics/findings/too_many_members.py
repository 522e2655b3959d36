"""Members without partitions: the group has more members than partitions."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.findings.finding import Evidence, FindingRule, lasting_generations
from kohort.pipeline.forensics.sql_text import count

LASTING_MS = 10 * 60_000
"""In a cooperative rebalance a new member has no partitions for a short time."""


def _find(evidence: Evidence) -> DataFrame:
    return (
        lasting_generations(evidence, LASTING_MS)
        .selectExpr(
            "*",
            "filter(members, m -> size(m.assigned) = 0 AND size(m.topics) > 0) AS idle",
            "aggregate(members, 0, (sum, m) -> sum + size(m.assigned)) AS partitions",
        )
        # If no member has partitions, the topics are missing; that is another problem.
        .where("size(idle) > 0 AND partitions > 0")
        .groupBy("group_id")
        .agg(
            sql.count("*").alias("generations"),
            sql.min("at").alias("from_at"),
            sql.max("to_at").alias("to_at"),
            sql.max_by(sql.expr("size(idle)"), "offset").alias("count"),
            sql.max_by(sql.expr("size(members)"), "offset").alias("members"),
            sql.max_by("partitions", "offset").alias("partitions"),
            sql.max_by(sql.expr("transform(idle, m -> m.client_id)"), "offset").alias("clients"),
            sql.sum(sql.expr("unix_millis(to_at) - unix_millis(at)")).alias("idle_ms"),
        )
        .selectExpr("*", "CAST(NULL AS STRING) AS subject")
    )


TOO_MANY_MEMBERS = FindingRule(
    name="too-many-members",
    meaning="The group has members without partitions.",
    find=_find,
    severity="CASE WHEN count > partitions THEN 'warning' ELSE 'notice' END",
    what="{count:number} of {members:number} members had no partitions for {idle_ms:duration}: "
    "the group has only {partitions:partition}. Idle members still take part in every rebalance.",
    advice="Run at most {partitions:member}, or add partitions to the topics. One spare member is "
    "acceptable, but it does not add throughput.",
    setting=f"concat('at most ', {count('partitions', 'member')})",
    shown=("clients", "members", "partitions"),
)
