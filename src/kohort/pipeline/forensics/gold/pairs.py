"""Successive generations of a group side by side, and who came and went between them.

A generation that is kept again, because a static member restarted, is one generation: it began
with its first record, and what it ended with is in its last. The deletion of a group ends an era;
the generations of the next one begin anew. Everything is ordered by offset, never by time.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

KEY = "coalesce(concat('instance ', m.instance_id), m.member_id)"
"""Who a member is, whatever id it has: an instance stays itself when it restarts."""

PARTY = "named_struct('member_id', m.member_id, 'instance_id', m.instance_id, "
PARTY += "'client_id', m.client_id, 'client_host', m.client_host)"

_KEPT = ("generation", "at", "kind", "protocol", "leader", "members")


def pairs(generations: DataFrame) -> DataFrame:
    """One row per generation: `before` is the one it followed, null where that is not known.

    `is_first` says that nothing was before. Where a history begins in the middle, what was before
    is neither nothing nor known.
    """
    by_group = Window.partitionBy("group_id").orderBy("offset")
    is_deleted = (sql.col("kind") == "deleted").cast("int")
    is_end = sql.col("kind").isin("deleted", "emptied").cast("int")
    numbered = generations.select(
        "*",
        sql.sum(is_deleted).over(by_group).alias("era"),
        # A generation that is empty still ends the life before it: hence what is before the row.
        (sql.sum(is_end).over(by_group) - is_end).alias("life"),
    ).where("kind != 'deleted'")
    kept = sql.struct(*(_kept(name) for name in _KEPT))
    once = numbered.groupBy("group_id", "era", "life", "generation", "kind").agg(
        sql.min("offset").alias("offset"),
        sql.min_by(kept, "offset").alias("after"),
        sql.max_by(kept, "offset").alias("last"),
    )
    by_era = Window.partitionBy("group_id", "era").orderBy("offset")
    paired = once.select(
        "group_id",
        "era",
        "life",
        "after",
        sql.row_number().over(by_era).alias("seq"),
        sql.lag("last").over(by_era).alias("before"),
        sql.lead("after.at").over(by_era).alias("next_at"),
    )
    is_first = sql.expr("before IS NULL AND (era > 0 OR after.generation <= 1)")
    return _compared(paired.withColumn("is_first", is_first)).where(
        # That a group without members is noted again is no rebalance.
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
