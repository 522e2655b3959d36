"""Members of one group that subscribe to different topics for longer than a deploy takes."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.findings.finding import Evidence, FindingRule, lasting_generations

LASTING_MS = 10 * 60_000


def _find(evidence: Evidence) -> DataFrame:
    wanted = "transform(members, m -> array_sort(m.topics))"
    return (
        lasting_generations(evidence, LASTING_MS)
        .where(f"size(array_distinct({wanted})) > 1 AND forall(members, m -> m.topics IS NOT NULL)")
        .selectExpr(
            "*",
            f"array_sort(array_distinct(flatten({wanted}))) AS topics",
            "size(members) AS size",
        )
        .selectExpr(
            "*",
            "filter(topics, t -> exists(members, m -> NOT array_contains(m.topics, t))) AS odd",
        )
        .groupBy("group_id", "odd")
        .agg(
            sql.count("*").alias("count"),
            sql.min("at").alias("from_at"),
            sql.max("to_at").alias("to_at"),
            sql.max("size").alias("size"),
            sql.max_by(
                sql.expr(
                    "map_from_arrays(odd, transform(odd, t -> transform(filter(members, "
                    "m -> array_contains(m.topics, t)), m -> m.client_id)))"
                ),
                "offset",
            ).alias("wanted_by"),
            sql.collect_list("generation").alias("generations"),
        )
        .selectExpr(
            "*",
            "array_join(odd, ', ') AS subject",
            "unix_millis(to_at) - unix_millis(from_at) AS span_ms",
        )
    )


SUBSCRIPTION_MISMATCH = FindingRule(
    name="subscription-mismatch",
    meaning="Members of one group are subscribed to different topics.",
    find=_find,
    severity="'warning'",
    what="For {span_ms:duration} only some of the {size:number} members subscribed to {subject}. "
    "Only these members consume it.",
    advice="If a deploy is incomplete, finish it. If two programs share this group by mistake, set "
    "a different group.id for each.",
    setting="'group.id, a different one for each program'",
    shown=("wanted_by", "generations"),
)
