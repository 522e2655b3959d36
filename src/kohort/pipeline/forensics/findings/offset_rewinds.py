"""Offsets that went back while the group had members, so that records are processed again.

An operator resets offsets on purpose, while the group is empty. If the group has members, a program
seeks back, restores an old state, or lost its offset and used auto.offset.reset.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.findings.finding import Evidence, FindingRule
from kohort.pipeline.forensics.sql_text import number


def _find(evidence: Evidence) -> DataFrame:
    return (
        evidence.commit_runs.where("rewinds > 0 AND owner IS NOT NULL")
        .groupBy("group_id", sql.col("topic").alias("subject"))
        .agg(
            sql.sum("rewinds").alias("count"),
            sql.min("first_rewind_at").alias("from_at"),
            sql.max("last_rewind_at").alias("to_at"),
            sql.sum("rewound").alias("records"),
            sql.max("rewound_most").alias("furthest"),
            sql.count_distinct("partition").alias("partitions"),
            sql.sum("rewinds_to_zero").alias("zeros"),
            sql.collect_set("generation").alias("generations"),
        )
        .selectExpr(
            "*",
            f"CASE WHEN zeros > 0 THEN concat(' ', {number('zeros')}, ' of them to offset "
            "0.') ELSE '' END AS beginning",
        )
    )


OFFSET_REWINDS = FindingRule(
    name="offset-rewinds",
    meaning="Members committed lower offsets than before.",
    find=_find,
    severity="CASE WHEN count >= 3 OR zeros > 0 THEN 'warning' ELSE 'notice' END",
    what="{count:commit} in {partitions:partition} of {subject} went back, by {records:record} in "
    "total and at most {furthest:number} at once.{beginning} These records are processed again, "
    "unless the topic was recreated.",
    advice="Check whether the program seeks back, or commits out of order from several threads. "
    "Set auto.offset.reset=none to get an error instead of a silent reset.",
    setting="CASE WHEN zeros > 0 THEN 'auto.offset.reset=none' END",
    shown=("records", "furthest", "generations"),
)
