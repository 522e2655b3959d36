"""Memberships: each member from its first generation to its end.

Where Kohort's events tell, a membership begins when its member joined and ends when it was out, in
the word of the event. Else it begins when its first generation was kept, and ends when one was kept
without it: `replaced` if the same instance is in that one under another id, `gone` if not.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.silver.conforming import conform
from kohort.pipeline.forensics.silver.snapshots import GROUP, find_departures, number
from kohort.pipeline.forensics.tables import MEMBERSHIPS


def build(generations: DataFrame, events: DataFrame) -> DataFrame:
    known = _add_ends(_add_beginnings(_stretches(generations), events), events)
    return conform(known, MEMBERSHIPS)


def _stretches(generations: DataFrame) -> DataFrame:
    """Generations in a row that a member was in, as one."""
    members = (
        number(generations)
        .where("kind = 'formed'")
        .selectExpr(*GROUP, "n", "generation", "at", "next_at", "explode(members) AS member")
        .selectExpr("* EXCEPT (member)", "member.*")
    )
    order = Window.partitionBy(*GROUP, "member_id").orderBy("n")
    return (
        members.withColumn("stretch", sql.col("n") - sql.row_number().over(order))
        .groupBy(*GROUP, "member_id", "stretch")
        .agg(
            sql.min("n").alias("from_n"),
            sql.max("n").alias("to_n"),
            *(
                sql.max_by(name, "n").alias(name)
                for name in ("instance_id", "client_id", "client_host")
            ),
            sql.min_by("generation", "n").alias("from_generation"),
            sql.max_by("generation", "n").alias("to_generation"),
            sql.min_by("at", "n").alias("from_at"),
            sql.max_by("next_at", "n").alias("to_at"),
        )
    )


def _add_beginnings(stretches: DataFrame, events: DataFrame) -> DataFrame:
    joined = (
        events.where("event IN ('member-joined', 'instance-replaced')")
        .groupBy("group_id", sql.col("party.member_id").alias("member_id"))
        .agg(sql.min("at").alias("joined_at"))
    )
    # An id is given out once. Should it come back all the same, its first time is what is told.
    order = Window.partitionBy(*GROUP, "member_id").orderBy("from_n")
    return (
        stretches.withColumn("is_first", sql.row_number().over(order) == 1)
        .withColumn("is_last", sql.lead("from_n").over(order).isNull())
        .join(joined, ["group_id", "member_id"], "left")
        .withColumn("from_at", sql.expr("if(is_first, least(from_at, joined_at), from_at)"))
    )


def _add_ends(stretches: DataFrame, events: DataFrame) -> DataFrame:
    order = Window.partitionBy(*GROUP, "instance_id").orderBy("from_n")
    is_replaced = sql.expr("instance_id IS NOT NULL AND next_from_n = to_n + 1")
    return (
        stretches.withColumn("next_from_n", sql.lead("from_n").over(order))
        .withColumn("is_replaced", sql.coalesce(is_replaced, sql.lit(False)))  # noqa: FBT003
        .join(find_departures(events), ["group_id", "member_id"], "left")
        .withColumn("is_exact", sql.expr("is_last AND departure IS NOT NULL"))
        .withColumn(
            "ending",
            sql.expr(
                "CASE WHEN is_exact THEN departure WHEN to_at IS NULL THEN NULL "
                "WHEN is_replaced THEN 'replaced' ELSE 'gone' END"
            ),
        )
        .withColumn("to_at", sql.expr("if(is_exact, left_at, to_at)"))
    )
