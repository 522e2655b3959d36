"""Which partitions a rebalance moved, which of them for nothing, and what was read again for it.

A partition has moved when its owner is another one than its last. Under a cooperative protocol it
is without an owner for a generation in between; it has moved when it has one again. When a group
has stood empty, nobody had anything, and nothing moves.

The stickiest assignment that is as even as the one that was made is found by counting. Somebody
with b partitions who may keep q of them gives up b - q, if that is more than none, whichever they
are; and the shares of an assignment may be dealt to its members in any order. The fewest must be
given up when the largest share goes to whoever has the most, and so on down. Partitions of members
that are gone move in any case. So the bound is exact, as long as everybody may have any
partition: where subscriptions differ, or are not told, the answer is null.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.gold.pairs import KEY

_PAIR = ("group_id", "era", "seq")


def moves(paired: DataFrame, stints: DataFrame) -> DataFrame:
    """For each pair that gave out any partition: partitions, moved, necessary, replayed."""
    shares = paired.selectExpr(*_PAIR, "explode(after.members) AS m").selectExpr(
        *_PAIR, f"{KEY} AS key", "size(m.assigned) AS share", "0 AS had", "true AS is_in"
    )
    had = (
        _with_last_owners(paired, stints)
        .where("last_key IS NOT NULL")
        .selectExpr(
            *_PAIR,
            "last_key AS key",
            "0 AS share",
            "1 AS had",
            "false AS is_in",
            "int(last_key != key) AS moved",
            # Null unless both have committed, the one who had it and the one who got it.
            "CASE WHEN last_key != key AND position IS NOT NULL AND first_committed IS NOT NULL "
            "THEN greatest(position - first_committed, 0) END"
            " AS replayed",
        )
    )
    people = (
        shares.unionByName(had, allowMissingColumns=True)
        .groupBy(*_PAIR, "key")
        .agg(
            sql.sum("share").alias("share"),
            sql.sum("had").alias("had"),
            sql.bool_or("is_in").alias("is_in"),
            sql.sum("moved").alias("moved"),
            sql.sum("replayed").alias("replayed"),
        )
    )
    return (
        people.groupBy(*_PAIR)
        .agg(
            sql.sum("share").alias("partitions"),
            sql.coalesce(sql.sum("moved"), sql.lit(0)).alias("moved"),
            sql.sum("replayed").alias("replayed"),
            sql.sum(sql.expr("CASE WHEN NOT is_in THEN had ELSE 0 END")).alias("orphaned"),
            sql.expr("sort_array(collect_list(had) FILTER (WHERE is_in), false)").alias("had"),
            sql.expr("sort_array(collect_list(share) FILTER (WHERE is_in), false)").alias("shares"),
        )
        .selectExpr(
            *_PAIR,
            "partitions",
            "moved",
            "orphaned + aggregate(zip_with(had, shares, (b, q) -> greatest(b - q, 0L)), 0L,"
            " (sum, each) -> sum + each) AS necessary",
            "replayed",
        )
    )


def _with_last_owners(paired: DataFrame, stints: DataFrame) -> DataFrame:
    owned = (
        paired.selectExpr(*_PAIR, "life", "after.generation", "explode(after.members) AS m")
        .selectExpr("*", f"{KEY} AS key", "m.member_id AS owner", "explode(m.assigned) AS place")
        .selectExpr("*", "place.topic", "place.partition")
        .drop("m", "place")
    )
    told = stints.select(
        "group_id", "generation", "owner", "topic", "partition", "first_committed", "last_committed"
    )
    by_place = Window.partitionBy("group_id", "era", "life", "topic", "partition").orderBy("seq")
    earlier = by_place.rowsBetween(Window.unboundedPreceding, -1)
    return (
        owned.join(told, ["group_id", "generation", "owner", "topic", "partition"], "left")
        .withColumn("last_key", sql.lag("key").over(by_place))
        .withColumn("position", sql.last("last_committed", ignorenulls=True).over(earlier))
    )
