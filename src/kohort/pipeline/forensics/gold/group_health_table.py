"""Rebalance statistics of a group per time window, while it had members or rebalanced."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from kohort.pipeline.forensics import tables
from kohort.pipeline.forensics.store import conform

HOUR_MS = 3_600_000

FLAPS_MIN = 3
"""A client that joined or left this often in one window is flapping; a restart counts as two."""

_WINDOW = ["group_id", "window_ms"]


def build(*, rebalances: DataFrame, generations: DataFrame, window_ms: int = HOUR_MS) -> DataFrame:
    per_hour = HOUR_MS / window_ms
    return conform(
        _present(generations, rebalances, window_ms)
        .join(_ended(rebalances, window_ms), _WINDOW, "full")
        .join(_in_progress(rebalances, window_ms), _WINDOW, "full")
        .join(_flapping(rebalances, window_ms), _WINDOW, "left")
        .selectExpr(
            "group_id",
            "timestamp_millis(window_ms) AS window_start",
            f"timestamp_millis(window_ms + {window_ms}) AS window_end",
            "int(coalesce(rebalances, 0)) AS rebalances",
            f"coalesce(rebalances, 0) * {per_hour}D AS rebalances_per_hour",
            "coalesce(rebalancing_ms, 0) AS rebalancing_ms",
            f"least(coalesce(rebalancing_ms, 0) / {window_ms}D, 1D) AS rebalancing_share",
            "int(coalesce(flapping_members, 0)) AS flapping_members",
            "coalesce(members_max, 0) AS members_max",
            "imbalance",
            "CASE WHEN coalesce(owned, 0) = 0 THEN 1D ELSE 1D - moved / owned END AS stickiness",
        ),
        tables.GROUP_HEALTH,
    )


def _windows(begin: str, end: str, window_ms: int) -> str:
    """SQL: the start of each window that overlaps the time range."""
    first = f"unix_millis({begin}) div {window_ms} * {window_ms}"
    return f"sequence({first}, greatest({first}, unix_millis({end})), {window_ms}L)"


def _present(generations: DataFrame, rebalances: DataFrame, window_ms: int) -> DataFrame:
    """The members, and the balance of their partitions at the end of the window."""
    by_group = Window.partitionBy("group_id").orderBy("offset")
    until = (
        generations.select("at")
        .union(rebalances.selectExpr("ended_at"))
        .agg(sql.max("at").alias("until"))
    )
    return (
        generations.withColumn("next_at", sql.lead("at").over(by_group))
        .where("kind = 'formed'")
        .crossJoin(sql.broadcast(until))
        .selectExpr(
            "group_id",
            "offset",
            "coalesce(next_at, until) AS to_at",
            f"explode({_windows('at', 'coalesce(next_at, until)', window_ms)}) AS window_ms",
            "size(members) AS members",
            "transform(members, m -> size(m.assigned)) AS shares",
        )
        .selectExpr(
            "*",
            "array_max(shares) / (aggregate(shares, 0, (sum, n) -> sum + n) / size(shares))"
            " AS imbalance",
        )
        .groupBy(*_WINDOW)
        .agg(
            sql.max("members").alias("members_max"),
            sql.max_by("imbalance", "offset").alias("imbalance"),
        )
    )


def _ended(rebalances: DataFrame, window_ms: int) -> DataFrame:
    return (
        rebalances.where("ended_at IS NOT NULL")
        .withColumn("window_ms", sql.expr(f"unix_millis(ended_at) div {window_ms} * {window_ms}"))
        .groupBy(*_WINDOW)
        .agg(
            sql.count("*").alias("rebalances"),
            sql.sum("moved").alias("moved"),
            sql.sum("partitions").alias("owned"),
        )
    )


def _in_progress(rebalances: DataFrame, window_ms: int) -> DataFrame:
    return (
        rebalances.where("started_at < ended_at")
        .selectExpr("*", f"explode({_windows('started_at', 'ended_at', window_ms)}) AS window_ms")
        .groupBy(*_WINDOW)
        .agg(
            sql.sum(
                sql.expr(
                    f"least(unix_millis(ended_at), window_ms + {window_ms})"
                    " - greatest(unix_millis(started_at), window_ms)"
                )
            ).alias("rebalancing_ms")
        )
    )


def _flapping(rebalances: DataFrame, window_ms: int) -> DataFrame:
    return (
        rebalances.selectExpr(
            "group_id",
            f"unix_millis(ended_at) div {window_ms} * {window_ms} AS window_ms",
            "explode(concat(coalesce(joined, array()), coalesce(departed, array()))) AS party",
        )
        .selectExpr(
            "group_id",
            "window_ms",
            "coalesce(party.instance_id, concat(party.client_id, ' ', party.client_host)) AS who",
        )
        .groupBy(*_WINDOW, "who")
        .count()
        .where(f"count >= {FLAPS_MIN}")
        .groupBy(*_WINDOW)
        .agg(sql.count("*").alias("flapping_members"))
    )
