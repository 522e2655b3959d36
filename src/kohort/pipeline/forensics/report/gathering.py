"""One row for each group, made in Spark: what a report needs to rank them all.

The tables may be of any size. What comes to the driver is one small row for each of at most
GROUPS_MAX groups; of the others it is told how many there are.
"""

from functools import reduce
from typing import Any, Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from kohort.pipeline.forensics import tables
from kohort.pipeline.forensics.report.material import (
    Bin,
    Found,
    Overview,
    Party,
    Starter,
    Summary,
)
from kohort.pipeline.forensics.report.reading import NoSuchGroup, Shelf

GROUPS_MAX: Final = 10_000
"""Protects the driver. The page lists fewer."""

BINS: Final = 48
"""Of a group's strip, over the whole time of the report."""

STARTERS_MAX: Final = 5

WHO: Final = "coalesce(culprit.instance_id, concat(culprit.client_id, ' at ', culprit.client_host))"


def gather(shelf: Shelf) -> Overview:
    span = _span(shelf)
    since_ms, until_ms = span["since_ms"], span["until_ms"]
    bin_ms = max(-(-((until_ms or 0) - (since_ms or 0) + 1) // BINS), 1)
    known = _groups(shelf).cache()
    try:
        groups = known.count()
        parts = [
            known.orderBy("order", "group_id").limit(GROUPS_MAX),
            _states(shelf, until_ms or 0),
            _rebalances(shelf),
            _strips(shelf, since_ms or 0, bin_ms),
            _triggers(shelf),
            _starters(shelf),
            _health(shelf),
            _lag(shelf),
        ]
        joined = reduce(lambda one, other: one.join(other, "group_id", "left"), parts)
        summaries = tuple(_summary(row.asDict(recursive=True)) for row in joined.collect())
    finally:
        known.unpersist()
    unknown = set(shelf.groups) - {each.group_id for each in summaries}
    if unknown and groups < len(set(shelf.groups)):
        raise NoSuchGroup(
            f"{shelf.store.files.root} knows no such group: {', '.join(sorted(unknown))}"
        )
    return Overview(
        since_ms=since_ms,
        until_ms=until_ms,
        bin_ms=bin_ms,
        groups=groups,
        commits=span["commits"],
        events=span["events"],
        undecodable=shelf.read(tables.UNDECODABLE).count(),
        summaries=summaries,
    )


def _span(shelf: Shelf) -> dict[str, Any]:
    """From when to when anything is known, and how much there is."""
    row = (
        shelf.read(tables.GROUPS)
        .agg(
            sql.unix_millis(sql.min("from_at")).alias("since_ms"),
            sql.unix_millis(sql.max("to_at")).alias("until_ms"),
            sql.coalesce(sql.sum("commits"), sql.lit(0)).alias("commits"),
            sql.coalesce(sql.sum("events"), sql.lit(0)).alias("events"),
        )
        .first()
    )
    assert row is not None, "an aggregate over nothing is still a row"
    return row.asDict()


def _groups(shelf: Shelf) -> DataFrame:
    """Every group that is known, with its findings, roughly in the order of their pain."""
    found = (
        shelf.read(tables.FINDINGS)
        .groupBy("group_id")
        .agg(
            sql.collect_set(sql.struct("finding", "severity")).alias("findings"),
            sql.min(
                sql.expr("CASE severity WHEN 'critical' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END")
            ).alias("worst"),
        )
    )
    return (
        shelf.read(tables.GROUPS)
        .select("group_id")
        .join(found, "group_id", "left")
        .selectExpr("group_id", "findings", "coalesce(worst, 3) AS order")
    )


def _states(shelf: Shelf, until_ms: int) -> DataFrame:
    by_group = Window.partitionBy("group_id").orderBy("partition", "offset")
    return (
        shelf.read(tables.GENERATIONS)
        .withColumn("next_at", sql.lead("at").over(by_group))
        .selectExpr(
            "*",
            "struct(partition, offset) AS order",
            # A clock that was set back makes no time of less than nothing.
            f"CASE WHEN kind = 'formed' THEN greatest(coalesce(unix_millis(next_at), {until_ms})"
            " - unix_millis(at), 0L) ELSE 0L END AS known_ms",
        )
        .groupBy("group_id")
        .agg(
            sql.max_by("kind", "order").alias("state"),
            sql.expr("max_by(protocol, order) FILTER (WHERE kind = 'formed')").alias("protocol"),
            sql.expr("max_by(coalesce(size(members), 0), order)").alias("members"),
            sql.sum("known_ms").alias("known_ms"),
        )
    )


def _rebalances(shelf: Shelf) -> DataFrame:
    return (
        shelf.read(tables.REBALANCES)
        .groupBy("group_id")
        .agg(
            sql.count("*").alias("rebalances"),
            sql.count_if("is_exact").alias("exact"),
            sql.expr("avg(confidence) FILTER (WHERE NOT is_exact)").alias("confidence"),
            sql.max("partitions").alias("partitions"),
            sql.sum("ownerless_partition_ms").alias("ownerless_ms"),
            sql.sum("moved").alias("moved"),
            sql.sum("moved_needlessly").alias("moved_needlessly"),
            sql.sum("replayed").alias("replayed"),
        )
    )


def _strips(shelf: Shelf, since_ms: int, bin_ms: int) -> DataFrame:
    at = "coalesce(ended_at, started_at)"
    return (
        shelf.read(tables.REBALANCES)
        .selectExpr("*", f"int((unix_millis({at}) - {since_ms}) div {bin_ms}) AS number")
        .groupBy("group_id", "number")
        .agg(
            sql.count("*").alias("rebalances"),
            sql.coalesce(sql.sum("ownerless_partition_ms"), sql.lit(0)).alias("ownerless_ms"),
        )
        .groupBy("group_id")
        .agg(
            sql.sort_array(
                sql.collect_list(sql.struct("number", "rebalances", "ownerless_ms"))
            ).alias("bins")
        )
    )


def _triggers(shelf: Shelf) -> DataFrame:
    return (
        shelf.read(tables.REBALANCES)
        .groupBy("group_id", "trigger")
        .agg(sql.count("*").alias("rebalances"))
        .groupBy("group_id")
        .agg(
            sql.sort_array(
                sql.collect_list(sql.struct("rebalances", "trigger")),
                asc=False,
            ).alias("triggers")
        )
    )


def _starters(shelf: Shelf) -> DataFrame:
    counted = (
        shelf.read(tables.REBALANCES)
        .where("culprit IS NOT NULL")
        .groupBy("group_id", sql.expr(WHO).alias("who"))
        .agg(
            sql.count("*").alias("rebalances"),
            sql.coalesce(sql.sum("ownerless_partition_ms"), sql.lit(0)).alias("ownerless_ms"),
            sql.expr("mode() WITHIN GROUP (ORDER BY trigger)").alias("trigger"),
            sql.max("culprit").alias("party"),
        )
    )
    by_group = Window.partitionBy("group_id")
    most_first = by_group.orderBy(sql.desc("rebalances"), sql.desc("ownerless_ms"), "who")
    return (
        counted.withColumn("place", sql.row_number().over(most_first))
        .withColumn("starters_total", sql.count("*").over(by_group))
        .where(f"place <= {STARTERS_MAX}")
        .groupBy("group_id")
        .agg(
            sql.sort_array(
                sql.collect_list(
                    sql.struct("place", "party", "trigger", "rebalances", "ownerless_ms")
                )
            ).alias("starters"),
            sql.max("starters_total").alias("starters_total"),
        )
    )


def _health(shelf: Shelf) -> DataFrame:
    return (
        shelf.read(tables.GROUP_HEALTH)
        .groupBy("group_id")
        .agg(
            sql.sum("rebalancing_ms").alias("rebalancing_ms"),
        )
    )


def _lag(shelf: Shelf) -> DataFrame:
    return (
        shelf.read(tables.LAG_STATUS)
        .groupBy("group_id", "status")
        .agg(sql.count("*").alias("partitions"), sql.sum("lag_records").alias("lag"))
        .groupBy("group_id")
        .agg(
            sql.sort_array(sql.collect_list(sql.struct("status", "partitions"))).alias("statuses"),
            sql.sum("lag").alias("lag_records"),
        )
    )


def _summary(row: dict[str, Any]) -> Summary:
    numbers: dict[str, Any] = {
        name: row[name] or 0
        for name in (
            *("members", "partitions", "known_ms", "rebalances"),
            *("exact", "rebalancing_ms", "ownerless_ms", "moved", "moved_needlessly"),
            "starters_total",
        )
    }
    return Summary(
        group_id=row["group_id"],
        state=row["state"],
        protocol=row["protocol"],
        confidence=row["confidence"],
        **numbers,
        replayed=row["replayed"],
        lag_records=row["lag_records"],
        statuses=tuple((each["status"], each["partitions"]) for each in row["statuses"] or ()),
        triggers=tuple(
            (each["trigger"] or "unknown", each["rebalances"]) for each in row["triggers"] or ()
        ),
        starters=tuple(
            Starter(
                party=Party(**each["party"]),
                trigger=each["trigger"] or "unknown",
                rebalances=each["rebalances"],
                ownerless_ms=each["ownerless_ms"],
            )
            for each in row["starters"] or ()
        ),
        findings=tuple(
            sorted(
                (Found(**each) for each in row["findings"] or ()),
                key=lambda each: (each.finding, each.severity),
            )
        ),
        bins=tuple(Bin(**each) for each in row["bins"] or () if each["number"] is not None),
    )


def party_of(row: dict[str, Any] | None) -> Party | None:
    return Party(**row) if row is not None else None
