"""The partitions that a rebalance moved, which of them needlessly, and the records replayed.

A partition has moved if its owner differs from its previous owner. With a cooperative assignor it
has no owner for one generation in between; it has moved when it has an owner again. After a group
was empty, nothing moves.

The smallest possible number of moves, for an assignment as balanced as the actual one, is the sum
of max(b - q, 0) over the members, with b (partitions before) and q (partitions after) both sorted
in descending order, plus the partitions of departed members. It is exact if every member may own
every partition; if subscriptions differ or are unknown, the result is null.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.gold.generation_pairs import KEY

_PAIR = ("group_id", "deletions", "seq")


def moves(paired: DataFrame, commit_runs: DataFrame) -> DataFrame:
    """For each pair with assigned partitions: partitions, moved, necessary, replayed."""
    shares = paired.selectExpr(*_PAIR, "explode(after.members) AS m").selectExpr(
        *_PAIR, f"{KEY} AS key", "size(m.assigned) AS share", "0 AS had", "true AS is_in"
    )
    had = (
        _with_last_owners(paired, commit_runs)
        .where("last_key IS NOT NULL")
        .selectExpr(
            *_PAIR,
            "last_key AS key",
            "0 AS share",
            "1 AS had",
            "false AS is_in",
            "int(last_key != key) AS moved",
            # Null unless both the old and the new owner have committed.
            "CASE WHEN last_key != key AND position IS NOT NULL AND first_committed IS NOT NULL "
            "THEN greatest(position - first_committed, 0) END"
            " AS replayed",
        )
    )
    by_member = (
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
        by_member.groupBy(*_PAIR)
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


def _with_last_owners(paired: DataFrame, commit_runs: DataFrame) -> DataFrame:
    owned = (
        paired.selectExpr(*_PAIR, "times_empty", "after.generation", "explode(after.members) AS m")
        .selectExpr("*", f"{KEY} AS key", "m.member_id AS owner", "explode(m.assigned) AS place")
        .selectExpr("*", "place.topic", "place.partition")
        .drop("m", "place")
    )
    committed = commit_runs.select(
        "group_id", "generation", "owner", "topic", "partition", "first_committed", "last_committed"
    )
    by_place = Window.partitionBy(
        "group_id", "deletions", "times_empty", "topic", "partition"
    ).orderBy("seq")
    earlier = by_place.rowsBetween(Window.unboundedPreceding, -1)
    return (
        owned.join(committed, ["group_id", "generation", "owner", "topic", "partition"], "left")
        .withColumn("last_key", sql.lag("key").over(by_place))
        .withColumn("position", sql.last("last_committed", ignorenulls=True).over(earlier))
    )
