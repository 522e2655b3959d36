"""Members that have nothing to do: a partition has one reader, so there are more than can read."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.findings.finding import Evidence, Finding, lasting
from kohort.pipeline.forensics.saying import count

LASTING_MS = 10 * 60_000
"""A cooperative rebalance leaves newcomers without anything for a moment."""


def _find(evidence: Evidence) -> DataFrame:
    return (
        lasting(evidence, LASTING_MS)
        .selectExpr(
            "*",
            "filter(members, m -> size(m.assigned) = 0 AND size(m.topics) > 0) AS idle",
            "aggregate(members, 0, (sum, m) -> sum + size(m.assigned)) AS partitions",
        )
        # Where nobody has anything the topics are to blame, not the number of members.
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


TOO_MANY_MEMBERS = Finding(
    name="too-many-members",
    meaning="The group has members without any partition.",
    find=_find,
    severity="CASE WHEN count > partitions THEN 'warning' ELSE 'notice' END",
    what="{count:number} of {members:number} members had nothing to read, for {idle_ms:duration}: "
    "the group has only {partitions:partition}. Each of them still takes part in every rebalance.",
    advice="Run as many members as there are partitions, or add partitions. One in reserve is no "
    "mistake, but it does not make the group faster.",
    setting=f"concat('at most ', {count('partitions', 'member')})",
    shown=("clients", "members", "partitions"),
)
