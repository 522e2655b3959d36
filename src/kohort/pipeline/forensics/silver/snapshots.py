"""What is known of a group at one moment, and until when it held: generations in their order.

A rebalance's beginning is known only from events. It belongs to the last generation that was kept
before it, and is believed only if it lies between that one's time and the next one's.
"""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

GROUP: Final = ["log_partition", "group_id"]
"""A group lives in one partition of `__consumer_offsets`; another one there is another group."""

_IS_COOPERATIVE: Final = (
    "coalesce(protocol LIKE '%cooperative%', false) "
    "OR exists(members, each -> size(each.owned) > 0)"
)
"""Members of eager protocols give up all they own before they join, and so tell of none."""


def number(generations: DataFrame) -> DataFrame:
    """Generations as `n` = 1, 2, ... within their group, each with what is needed of the next."""
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
    """When the rebalance began that ended a snapshot: `log_partition, group_id, n, started_at`.

    Of several that followed one another before the next generation was kept, the first counts.
    """
    began = events.where("event = 'rebalance-started'").select("group_id", "generation", "at")
    ended = events.where("event = 'rebalance-ended'").selectExpr(
        "group_id", "generation_before AS generation", "started_at AS at"
    )
    starts = began.unionByName(ended).withColumn("is_start", sql.lit(1))
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
    """Who is out since when and how: `group_id, member_id, left_at, departure`, once a member."""
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
