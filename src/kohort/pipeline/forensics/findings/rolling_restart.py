"""A rolling restart of dynamic members, with one or two rebalances for each member.

Within a short time at least half of the group was replaced, about as many members joined as left,
and almost no new member left again. Hosts may change with a deploy, so they are not compared.
Static membership would have saved all of the cost, if each member is back within its session.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.findings.finding import Evidence, FindingRule, in_bursts

REPLACED_MIN = 3
REBALANCES_MIN = 3
GAP_MS = 5 * 60_000


def _find(evidence: Evidence) -> DataFrame:
    ended = evidence.rebalances.where("ending IN ('stable', 'empty', 'interrupted')")
    ids = "transform(filter(coalesce({}, array()), p -> p.instance_id IS NULL), p -> p.member_id)"
    return (
        in_bursts(ended, by=["group_id"], at="ended_at", gap_ms=GAP_MS)
        .selectExpr("*", f"{ids.format('joined')} AS came", f"{ids.format('departed')} AS went")
        .groupBy("group_id", "burst")
        .agg(
            sql.count("*").alias("rebalances"),
            sql.min(sql.coalesce("started_at", "ended_at")).alias("from_at"),
            sql.max("ended_at").alias("to_at"),
            sql.max("members_before").alias("members"),
            sql.min("members_after").alias("members_min"),
            sql.min(sql.struct("ended_at", "members_before")).alias("first"),
            sql.expr("array_distinct(flatten(collect_list(came)))").alias("came"),
            sql.expr("array_distinct(flatten(collect_list(went)))").alias("went"),
            sql.sum("ownerless_partition_ms").alias("ownerless_ms"),
            sql.bool_and("is_exact").alias("is_exact"),
            sql.collect_list("generation").alias("generations"),
        )
        .selectExpr("*", "size(array_intersect(came, went)) AS brief")
        .selectExpr(
            "* EXCEPT (came, went)",
            "least(size(came), size(went)) - brief AS count",
            "abs(size(came) - size(went)) AS change",
        )
        .where(
            f"rebalances >= {REBALANCES_MIN} AND count >= {REPLACED_MIN} AND count >= members / 2 "
            "AND change <= count / 3 AND brief <= count / 3"
            # A group that started or stopped as a whole was not restarted one by one.
            " AND first.members_before > 0 AND members_min > 0"
        )
        .selectExpr(
            "*",
            "CAST(NULL AS STRING) AS subject",
            "unix_millis(to_at) - unix_millis(from_at) AS span_ms",
            "CASE WHEN is_exact THEN 'partition time without owner' "
            "ELSE 'partition time without owner (estimate)' END AS cost",
        )
    )


ROLLING_RESTART = FindingRule(
    name="rolling-restart",
    meaning="Dynamic members were restarted one by one, each with its own rebalance.",
    find=_find,
    severity="CASE WHEN ownerless_ms >= 600000 THEN 'warning' ELSE 'notice' END",
    what="{count:number} of {members:number} members were replaced within {span_ms:duration}, with "
    "{rebalances:rebalance} and {ownerless_ms:duration} of {cost}.",
    advice="Set group.instance.id to a fixed name for each member, and set session.timeout.ms "
    "longer than a restart takes. A static member that is back within its session timeout keeps "
    "its partitions without a rebalance.",
    setting="'group.instance.id, with session.timeout.ms longer than a restart'",
    saved="ownerless_ms",
    shown=("generations", "members"),
)
