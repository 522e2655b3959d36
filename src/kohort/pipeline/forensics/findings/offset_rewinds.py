"""Offsets that a group with members set back: records are read again.

An operator who sets offsets back does it while the group is empty, and means it. In a group with
members somebody seeks, starts from an old state, or lost an offset and began anew.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.findings.finding import Evidence, Finding
from kohort.pipeline.forensics.saying import number


def _find(evidence: Evidence) -> DataFrame:
    return (
        evidence.stints.where("rewinds > 0 AND owner IS NOT NULL")
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
            f"CASE WHEN zeros > 0 THEN concat(' ', {number('zeros')}, ' of them to the very "
            "beginning.') ELSE '' END AS beginning",
        )
    )


OFFSET_REWINDS = Finding(
    name="offset-rewinds",
    meaning="Members committed lower offsets than were committed before.",
    find=_find,
    severity="CASE WHEN count >= 3 OR zeros > 0 THEN 'warning' ELSE 'notice' END",
    what="{count:commit} of {subject}, in {partitions:partition}, went back, by {records:record} "
    "in all and {furthest:number} at the most.{beginning} Those are read again, unless the topic "
    "was made anew.",
    advice="See whether the program seeks, or commits out of order from several threads; and "
    "whether it falls back to auto.offset.reset.",
    setting="CASE WHEN zeros > 0 THEN 'auto.offset.reset=none, to be told instead' END",
    shown=("records", "furthest", "generations"),
)
