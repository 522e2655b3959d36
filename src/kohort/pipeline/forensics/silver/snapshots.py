"""The generations of a group in order, each with the time until which it was valid.

Only events record the start of a rebalance. It belongs to the last generation stored before it, and
is used only if it lies between the timestamps of that one and the next.
"""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

GROUP: Final = ["log_partition", "group_id"]
"""A group is in one partition of `__consumer_offsets`; the same id in another is another group."""

_IS_COOPERATIVE: Final = (
    "coalesce(protocol LIKE '%cooperative%', false) "
    "OR exists(members, each -> size(each.owned) > 0)"
)
"""Members with an eager assignor revoke all partitions before they join, so they report none."""


def number(generations: DataFrame) -> DataFrame:
    """Generations with their number `n` = 1, 2, ... in the group, and columns of the next one."""
    order = Window.partitionBy(*GROUP).orderBy("log_offset")
    numbered = generations.withColumnsRenamed(
        {"partition": "log_partition", "offset": "log_offset"}
    )
    return (
        numbered.withColumn("is_cooperative", sql.expr(_IS_COOPERATIVE))
        .withColumn("n", sql.row_number().over(order))
        .withColumn("next_at", sql.lead("at").over(order))
        .withColumn("next_kind", sql.lead("kind").over(order))
        .withColumn("next_is_cooperative", sql.lead("is_cooperative").over(order))
    )


def find_starts(snapshots: DataFrame, events: DataFrame) -> DataFrame:
    """The start of the rebalance that ended a snapshot: `log_partition, group_id, n, started_at`.

    If several rebalances started before the next generation was stored, the first counts.
    """
    started = events.where("event = 'rebalance-started'").select("group_id", "generation", "at")
    ended = events.where("event = 'rebalance-ended'").selectExpr(
        "group_id", "generation_before AS generation", "started_at AS at"
    )
    starts = started.unionByName(ended).withColumn("is_start", sql.lit(1))
    kept = snapshots.where("kind <> 'deleted'").select(
        "group_id",
        "generation",
        "at",
        sql.lit(0).alias("is_start"),
        sql.struct("log_partition", "n", "at", "next_at").alias("snapshot"),
    )
    order = Window.partitionBy("group_id").orderBy("generation", "at", "is_start")
    return (
        kept.unionByName(starts, allowMissingColumns=True)
        .withColumn("snapshot", sql.last("snapshot", ignorenulls=True).over(order))
        .where("is_start = 1 AND snapshot.at <= at")
        .where("snapshot.next_at IS NULL OR at <= snapshot.next_at")
        .groupBy("snapshot.log_partition", "group_id", "snapshot.n")
        .agg(sql.min("at").alias("started_at"))
    )


def find_departures(events: DataFrame) -> DataFrame:
    """One row per departed member: `group_id, member_id, left_at, departure`."""
    gone = events.where("event = 'member-gone'").selectExpr(
        "group_id", "party.member_id", "at", "departure"
    )
    replaced = events.where("event = 'instance-replaced'").selectExpr(
        "group_id",
        "get_json_object(body, '$.old_member_id') AS member_id",
        "at",
        "'replaced' AS departure",
    )
    removed = (
        events.where("event = 'rebalance-ended'")
        .selectExpr("group_id", "at", "explode(removals) AS removal")
        .selectExpr("group_id", "removal.party.member_id", "at", "removal.departure")
    )
    return (
        gone.unionByName(replaced)
        .unionByName(removed)
        .groupBy("group_id", "member_id")
        .agg(sql.min("at").alias("left_at"), sql.min_by("departure", "at").alias("departure"))
    )
