"""Pairs of successive generations of a group, and the members that joined and left between them.

A generation has several records if a static member restarted. Its start is that of the first
record; its members are those of the last. After a group is deleted, generation numbers start again;
`deletions` counts how often that happened. The order is that of offsets, never of timestamps.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

KEY = "coalesce(concat('instance ', m.instance_id), m.member_id)"
"""SQL: the identity of a member; a static member keeps it when it restarts."""

IDENTITY = "named_struct('member_id', m.member_id, 'instance_id', m.instance_id, "
IDENTITY += "'client_id', m.client_id, 'client_host', m.client_host)"

_KEPT = ("generation", "at", "kind", "protocol", "leader", "members")


def pairs(generations: DataFrame) -> DataFrame:
    """One row per generation: `before` is the previous one, null if it is unknown.

    `is_first` means that there was no previous one. If the history starts in the middle, `before`
    is null and `is_first` is false.
    """
    by_group = Window.partitionBy("group_id").orderBy("offset")
    is_deleted = (sql.col("kind") == "deleted").cast("int")
    is_end = sql.col("kind").isin("deleted", "emptied").cast("int")
    numbered = generations.select(
        "*",
        sql.sum(is_deleted).over(by_group).alias("deletions"),
        # How often the group became empty before this generation.
        (sql.sum(is_end).over(by_group) - is_end).alias("times_empty"),
    ).where("kind != 'deleted'")
    kept = sql.struct(*(_kept(name) for name in _KEPT))
    once = numbered.groupBy("group_id", "deletions", "times_empty", "generation", "kind").agg(
        sql.min("offset").alias("offset"),
        sql.min_by(kept, "offset").alias("after"),
        sql.max_by(kept, "offset").alias("last"),
    )
    between_deletions = Window.partitionBy("group_id", "deletions").orderBy("offset")
    paired = once.select(
        "group_id",
        "deletions",
        "times_empty",
        "after",
        sql.row_number().over(between_deletions).alias("seq"),
        sql.lag("last").over(between_deletions).alias("before"),
        sql.lead("after.at").over(between_deletions).alias("next_at"),
    )
    is_first = sql.expr("before IS NULL AND (deletions > 0 OR after.generation <= 1)")
    return _compared(paired.withColumn("is_first", is_first)).where(
        # Another record of a group without members is not a rebalance.
        "after.kind = 'formed' OR members_before > 0"
    )


def _kept(name: str) -> Column:
    if name == "members":
        return sql.expr("coalesce(members, array())").alias(name)
    return sql.col(name)


def _compared(paired: DataFrame) -> DataFrame:
    with_keys = paired.selectExpr(
        "*",
        "coalesce(before.members, CASE WHEN is_first THEN array() END) AS had_members",
        f"transform(before.members, m -> {KEY}) AS keys_before",
        f"transform(after.members, m -> {KEY}) AS keys_after",
    )
    return with_keys.selectExpr(
        "*",
        "size(had_members) AS members_before",
        "size(after.members) AS members_after",
        "CASE WHEN is_first THEN after.members WHEN before IS NOT NULL THEN filter("
        f"after.members, m -> NOT array_contains(keys_before, {KEY})) END AS joiners",
        f"filter(had_members, m -> NOT array_contains(keys_after, {KEY})) AS leavers",
    )
