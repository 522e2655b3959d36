"""Every group in the history: its first and last timestamp, and the number of its rows."""

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kohort.pipeline.forensics import tables
from kohort.pipeline.forensics.store import conform

_COUNTED = ("generations", "rebalances", "commits", "events")


def build(
    *, generations: DataFrame, rebalances: DataFrame, group_events: DataFrame, recent_lag: DataFrame
) -> DataFrame:
    """`recent_lag` has one row for each partition that a group committed."""
    known = (
        _each(generations, "generations", "at"),
        _each(rebalances, "rebalances", "coalesce(started_at, ended_at)"),
        _each(group_events, "events", "at"),
        recent_lag.select("group_id", "from_at", "to_at", "commits"),
    )
    together = reduce(
        lambda one, other: one.unionByName(other, allowMissingColumns=True),
        known,
    )
    return conform(
        together.where("group_id IS NOT NULL")
        .groupBy("group_id")
        .agg(
            sql.min("from_at").alias("from_at"),
            sql.max("to_at").alias("to_at"),
            *(sql.coalesce(sql.sum(name), sql.lit(0)).alias(name) for name in _COUNTED),
        ),
        tables.GROUPS,
    )


def _each(frame: DataFrame, name: str, at: str) -> DataFrame:
    return frame.selectExpr("group_id", f"{at} AS from_at", f"{at} AS to_at", f"1L AS {name}")
