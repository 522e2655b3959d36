"""One row per group, computed in Spark: the figures by which the report ranks all groups.

The tables may be of any size. The driver collects one small row for each of at most GROUPS_MAX
groups, and the number of all groups.
"""

from collections.abc import Sequence
from functools import reduce
from typing import Any, Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from kohort.pipeline.errors import PipelineError
from kohort.pipeline.forensics import tables
from kohort.pipeline.forensics.report.report_model import (
    Bin,
    ClientIdentity,
    FindingKind,
    GroupSummary,
    Initiator,
    ReportOverview,
)
from kohort.pipeline.forensics.store import Store
from kohort.types import value

GROUPS_MAX: Final = 10_000
"""Limits the memory of the driver. The page lists fewer."""

BINS: Final = 48
"""Time bins of a group, over the whole time of the report."""

INITIATORS_MAX: Final = 5

WHO: Final = (
    "coalesce(initiator.instance_id, concat(initiator.client_id, ' at ', initiator.client_host))"
)


class GroupNotInTables(PipelineError):
    """A report was requested for a group that is in no table."""


@value
class GroupTables:
    """The tables, restricted to some groups or not."""

    store: Store
    groups: tuple[str, ...] = ()
    """Empty: all groups."""

    def read(self, table: tables.TableSpec) -> DataFrame:
        frame = self.store.read(table)
        if self.groups and "group_id" in frame.columns:
            return frame.where(frame.group_id.isin(list(self.groups)))
        return frame

    def only(self, groups: Sequence[str]) -> "GroupTables":
        return GroupTables(store=self.store, groups=tuple(groups))


def read_overview(group_tables: GroupTables) -> ReportOverview:
    span = _span(group_tables)
    since_ms, until_ms = span["since_ms"], span["until_ms"]
    bin_ms = max(-(-((until_ms or 0) - (since_ms or 0) + 1) // BINS), 1)
    known = _groups(group_tables).cache()
    try:
        groups = known.count()
        parts = [
            known.orderBy("order", "group_id").limit(GROUPS_MAX),
            _states(group_tables, until_ms or 0),
            _rebalances(group_tables),
            _bins(group_tables, since_ms or 0, bin_ms),
            _triggers(group_tables),
            _initiators(group_tables),
            _health(group_tables),
            _lag(group_tables),
        ]
        joined = reduce(lambda one, other: one.join(other, "group_id", "left"), parts)
        summaries = tuple(_summary(row.asDict(recursive=True)) for row in joined.collect())
    finally:
        known.unpersist()
    unknown = set(group_tables.groups) - {each.group_id for each in summaries}
    if unknown and groups < len(set(group_tables.groups)):
        raise GroupNotInTables(
            f"{group_tables.store.files.root} has no such group: {', '.join(sorted(unknown))}"
        )
    return ReportOverview(
        since_ms=since_ms,
        until_ms=until_ms,
        bin_ms=bin_ms,
        groups=groups,
        commits=span["commits"],
        events=span["events"],
        undecodable=group_tables.read(tables.UNDECODABLE).count(),
        summaries=summaries,
    )


def _span(group_tables: GroupTables) -> dict[str, Any]:
    """The time that the tables cover, and how many rows there are."""
    row = (
        group_tables.read(tables.GROUPS)
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


def _groups(group_tables: GroupTables) -> DataFrame:
    """All groups with their findings, roughly ordered by severity."""
    found = (
        group_tables.read(tables.FINDINGS)
        .groupBy("group_id")
        .agg(
            sql.collect_set(sql.struct("finding", "severity")).alias("findings"),
            sql.min(
                sql.expr("CASE severity WHEN 'critical' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END")
            ).alias("worst"),
        )
    )
    return (
        group_tables.read(tables.GROUPS)
        .select("group_id")
        .join(found, "group_id", "left")
        .selectExpr("group_id", "findings", "coalesce(worst, 3) AS order")
    )


def _states(group_tables: GroupTables, until_ms: int) -> DataFrame:
    by_group = Window.partitionBy("group_id").orderBy("partition", "offset")
    return (
        group_tables.read(tables.GENERATIONS)
        .withColumn("next_at", sql.lead("at").over(by_group))
        .selectExpr(
            "*",
            "struct(partition, offset) AS order",
            # A clock that was set back must not make a negative time.
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


def _rebalances(group_tables: GroupTables) -> DataFrame:
    return (
        group_tables.read(tables.REBALANCES)
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


def _bins(group_tables: GroupTables, since_ms: int, bin_ms: int) -> DataFrame:
    at = "coalesce(ended_at, started_at)"
    return (
        group_tables.read(tables.REBALANCES)
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


def _triggers(group_tables: GroupTables) -> DataFrame:
    return (
        group_tables.read(tables.REBALANCES)
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


def _initiators(group_tables: GroupTables) -> DataFrame:
    counted = (
        group_tables.read(tables.REBALANCES)
        .where("initiator IS NOT NULL")
        .groupBy("group_id", sql.expr(WHO).alias("who"))
        .agg(
            sql.count("*").alias("rebalances"),
            sql.coalesce(sql.sum("ownerless_partition_ms"), sql.lit(0)).alias("ownerless_ms"),
            sql.expr("mode() WITHIN GROUP (ORDER BY trigger)").alias("trigger"),
            sql.max("initiator").alias("identity"),
        )
    )
    by_group = Window.partitionBy("group_id")
    most_first = by_group.orderBy(sql.desc("rebalances"), sql.desc("ownerless_ms"), "who")
    return (
        counted.withColumn("place", sql.row_number().over(most_first))
        .withColumn("initiators_total", sql.count("*").over(by_group))
        .where(f"place <= {INITIATORS_MAX}")
        .groupBy("group_id")
        .agg(
            sql.sort_array(
                sql.collect_list(
                    sql.struct("place", "identity", "trigger", "rebalances", "ownerless_ms")
                )
            ).alias("initiators"),
            sql.max("initiators_total").alias("initiators_total"),
        )
    )


def _health(group_tables: GroupTables) -> DataFrame:
    return (
        group_tables.read(tables.GROUP_HEALTH)
        .groupBy("group_id")
        .agg(sql.sum("rebalancing_ms").alias("rebalancing_ms"))
    )


def _lag(group_tables: GroupTables) -> DataFrame:
    return (
        group_tables.read(tables.LAG_STATUS)
        .groupBy("group_id", "status")
        .agg(sql.count("*").alias("partitions"), sql.sum("lag_records").alias("lag"))
        .groupBy("group_id")
        .agg(
            sql.sort_array(sql.collect_list(sql.struct("status", "partitions"))).alias("statuses"),
            sql.sum("lag").alias("lag_records"),
        )
    )


def _summary(row: dict[str, Any]) -> GroupSummary:
    numbers: dict[str, Any] = {
        name: row[name] or 0
        for name in (
            *("members", "partitions", "known_ms", "rebalances"),
            *("exact", "rebalancing_ms", "ownerless_ms", "moved", "moved_needlessly"),
            "initiators_total",
        )
    }
    return GroupSummary(
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
        initiators=tuple(
            Initiator(
                identity=ClientIdentity(**each["identity"]),
                trigger=each["trigger"] or "unknown",
                rebalances=each["rebalances"],
                ownerless_ms=each["ownerless_ms"],
            )
            for each in row["initiators"] or ()
        ),
        findings=tuple(
            sorted(
                (FindingKind(**each) for each in row["findings"] or ()),
                key=lambda each: (each.finding, each.severity),
            )
        ),
        bins=tuple(Bin(**each) for each in row["bins"] or () if each["number"] is not None),
    )


def identity_of(row: dict[str, Any] | None) -> ClientIdentity | None:
    return ClientIdentity(**row) if row is not None else None
