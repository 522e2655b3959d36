"""Ownership: the owner of each partition over time.

A member owns a partition from the stored generation that assigns it until the next one that does
not; consecutive generations with the same owner are one row. A partition that is not assigned, or
whose group is empty or deleted, has no owner.

Kohort's events show more. With an eager assignor all partitions are revoked when a rebalance
starts, so an ownership ends there, and the next one starts with the following generation even if
the owner is the same. With a cooperative assignor members keep their partitions. The partitions of
a removed member have no owner from its removal. Without events all this is visible only in the next
generation, so gaps look shorter than they were.
"""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.silver.snapshots import (
    GROUP,
    find_departures,
    find_starts,
    number,
)
from kohort.pipeline.forensics.store import conform
from kohort.pipeline.forensics.tables import OWNERSHIP

_PARTITION: Final = [*GROUP, "topic", "partition"]

_IS_EAGER: Final = "NOT if(next_kind = 'formed', next_is_cooperative, is_cooperative)"
"""The assignor of the next generation decides; if it has no members, the present one."""


def build(generations: DataFrame, events: DataFrame) -> DataFrame:
    return conform(_add_gaps(_runs(_held(generations, events))), OWNERSHIP)


def _held(generations: DataFrame, events: DataFrame) -> DataFrame:
    """The assigned partitions of each member and generation, and until when it owned them."""
    snapshots = number(generations)
    starts = find_starts(snapshots, events)
    left = "left_at >= at AND (next_at IS NULL OR left_at <= next_at)"
    return (
        snapshots.where("kind = 'formed'")
        .join(starts, [*GROUP, "n"], "left")
        .withColumn("started_at", sql.expr(f"if({_IS_EAGER}, started_at, NULL)"))
        .selectExpr(
            *GROUP, "n", "generation", "at", "next_at", "started_at", "explode(members) AS member"
        )
        .selectExpr(
            "* EXCEPT (member)",
            "member.member_id",
            "member.instance_id",
            "member.client_id",
            "member.assigned",
        )
        .join(find_departures(events), ["group_id", "member_id"], "left")
        .withColumn("left_at", sql.expr(f"if({left}, left_at, NULL)"))
        # `least` ignores nulls.
        .withColumn("lost_at", sql.expr("least(started_at, left_at)"))
        .withColumn("until", sql.expr("coalesce(lost_at, next_at)"))
        .withColumn("each", sql.expr("explode(array_distinct(assigned))"))
        .selectExpr("* EXCEPT (each, assigned)", "each.topic", "each.partition")
    )


def _runs(held: DataFrame) -> DataFrame:
    """Consecutive generations in which a member owned a partition, as one row.

    All windows are over the same columns, so that rows are shuffled once.
    """
    order = Window.partitionBy(*_PARTITION).orderBy("member_id", "n")
    goes_on = sql.expr("member_before = member_id AND n_before = n - 1 AND lost_before IS NULL")
    return (
        held.withColumn("member_before", sql.lag("member_id").over(order))
        .withColumn("n_before", sql.lag("n").over(order))
        .withColumn("lost_before", sql.lag("lost_at").over(order))
        .withColumn("is_new", sql.when(goes_on, 0).otherwise(1))
        .withColumn("run", sql.sum("is_new").over(order))
        .groupBy(*_PARTITION, "member_id", "run")
        .agg(
            sql.min("n").alias("from_n"),
            sql.max_by("instance_id", "n").alias("instance_id"),
            sql.max_by("client_id", "n").alias("client_id"),
            sql.min_by("generation", "n").alias("from_generation"),
            sql.max_by("generation", "n").alias("to_generation"),
            sql.min_by("at", "n").alias("from_at"),
            sql.max_by("until", "n").alias("to_at"),
        )
    )


def _add_gaps(runs: DataFrame) -> DataFrame:
    order = Window.partitionBy(*_PARTITION).orderBy("from_n", "member_id")
    gap = "unix_millis(from_at) - unix_millis(lost_before)"
    return runs.withColumn("lost_before", sql.lag("to_at").over(order)).withColumn(
        # A clock that was set back must not give a negative gap.
        "gap_before_ms",
        sql.expr(f"if(lost_before IS NULL, NULL, greatest(0L, {gap}))"),
    )
