"""Ownership: who held which partition, from when to when.

A partition is a member's from the moment a generation is kept that assigns it, until one is kept
that does not: generations in a row with the same owner are one ownership. A partition that no
member of a kept generation was assigned, that of an emptied group and that of a deleted one is
nobody's meanwhile.

With Kohort's events more is known. Members of eager protocols give up everything when a rebalance
begins, so an ownership ends there, and the next one begins with the generation that follows even if
the owner is the same; members of cooperative protocols keep what they have. And a partition of a
member that is out is nobody's from that moment on. Without events, all this shows only when the
next generation is kept, so gaps are then shorter than they were.
"""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.silver.conforming import conform
from kohort.pipeline.forensics.silver.snapshots import (
    GROUP,
    find_departures,
    find_starts,
    number,
)
from kohort.pipeline.forensics.tables import OWNERSHIP

_PARTITION: Final = [*GROUP, "topic", "partition"]

_IS_EAGER: Final = "NOT if(next_kind = 'formed', next_is_cooperative, is_cooperative)"
"""What decides is the protocol that members join with; if none of them does, the one they had."""


def build(generations: DataFrame, events: DataFrame) -> DataFrame:
    return conform(_add_gaps(_stretches(_held(generations, events))), OWNERSHIP)


def _held(generations: DataFrame, events: DataFrame) -> DataFrame:
    """What each member was assigned in each generation, until when it had it, and if it lost it."""
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
        # Of times that are not known, the least is the one that is.
        .withColumn("lost_at", sql.expr("least(started_at, left_at)"))
        .withColumn("until", sql.expr("coalesce(lost_at, next_at)"))
        .withColumn("each", sql.expr("explode(array_distinct(assigned))"))
        .selectExpr("* EXCEPT (each, assigned)", "each.topic", "each.partition")
    )


def _stretches(held: DataFrame) -> DataFrame:
    """Generations in a row in which a member held a partition, as one.

    All windows are over the same columns, so that rows are shuffled once.
    """
    order = Window.partitionBy(*_PARTITION).orderBy("member_id", "n")
    goes_on = sql.expr("member_before = member_id AND n_before = n - 1 AND lost_before IS NULL")
    return (
        held.withColumn("member_before", sql.lag("member_id").over(order))
        .withColumn("n_before", sql.lag("n").over(order))
        .withColumn("lost_before", sql.lag("lost_at").over(order))
        .withColumn("is_new", sql.when(goes_on, 0).otherwise(1))
        .withColumn("stretch", sql.sum("is_new").over(order))
        .groupBy(*_PARTITION, "member_id", "stretch")
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


def _add_gaps(stretches: DataFrame) -> DataFrame:
    order = Window.partitionBy(*_PARTITION).orderBy("from_n", "member_id")
    gap = "unix_millis(from_at) - unix_millis(lost_before)"
    return stretches.withColumn("lost_before", sql.lag("to_at").over(order)).withColumn(
        # A clock that was set back makes no gap of less than nothing.
        "gap_before_ms",
        sql.expr(f"if(lost_before IS NULL, NULL, greatest(0L, {gap}))"),
    )
