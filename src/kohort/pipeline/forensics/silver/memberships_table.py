"""Memberships: each member from its first generation to its departure.

With Kohort's events a membership starts when the member joined and ends when it was removed, with
the departure of the event. Otherwise it starts with the first stored generation that has it and
ends with the next one that does not: `replaced` if that one has the same group.instance.id with
another member id, else `gone`.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.silver.snapshots import GROUP, find_departures, number
from kohort.pipeline.forensics.store import conform
from kohort.pipeline.forensics.tables import MEMBERSHIPS


def build(generations: DataFrame, events: DataFrame) -> DataFrame:
    known = _add_ends(_add_beginnings(_runs(generations), events), events)
    return conform(known, MEMBERSHIPS)


def _runs(generations: DataFrame) -> DataFrame:
    """Consecutive generations of a member as one row."""
    members = (
        number(generations)
        .where("kind = 'formed'")
        .selectExpr(*GROUP, "n", "generation", "at", "next_at", "explode(members) AS member")
        .selectExpr("* EXCEPT (member)", "member.*")
    )
    order = Window.partitionBy(*GROUP, "member_id").orderBy("n")
    return (
        members.withColumn("run", sql.col("n") - sql.row_number().over(order))
        .groupBy(*GROUP, "member_id", "run")
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


def _add_beginnings(runs: DataFrame, events: DataFrame) -> DataFrame:
    joined = (
        events.where("event IN ('member-joined', 'instance-replaced')")
        .groupBy("group_id", sql.col("party.member_id").alias("member_id"))
        .agg(sql.min("at").alias("joined_at"))
    )
    # A member id is issued once. If it appears again, the join event belongs to the first run.
    order = Window.partitionBy(*GROUP, "member_id").orderBy("from_n")
    return (
        runs.withColumn("is_first", sql.row_number().over(order) == 1)
        .withColumn("is_last", sql.lead("from_n").over(order).isNull())
        .join(joined, ["group_id", "member_id"], "left")
        .withColumn("from_at", sql.expr("if(is_first, least(from_at, joined_at), from_at)"))
    )


def _add_ends(runs: DataFrame, events: DataFrame) -> DataFrame:
    order = Window.partitionBy(*GROUP, "instance_id").orderBy("from_n")
    is_replaced = sql.expr("instance_id IS NOT NULL AND next_from_n = to_n + 1")
    return (
        runs.withColumn("next_from_n", sql.lead("from_n").over(order))
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
