"""The rows of the few groups that a report shows in detail, some hundreds for each group.

Spark reduces what could be many rows: commits become lag per time step, partitions that were
reassigned together become one row, and of all lists only the latest rows are collected.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as sql

from kohort.pipeline.forensics import tables
from kohort.pipeline.forensics.report.report_model import (
    ClientIdentity,
    DetailRows,
    EmptyPeriod,
    FindingRow,
    LaggingPartition,
    LagStep,
    MembershipPeriod,
    OwnershipPeriod,
    RebalanceRow,
)
from kohort.pipeline.forensics.report.summaries import GroupTables, identity_of

REBALANCES_MAX: Final = 300
MEMBERSHIPS_MAX: Final = 300
OWNERSHIP_MAX: Final = 3_000
PARTITIONS_MAX: Final = 48
"""Partitions on a timeline: those without an owner for longest."""
EMPTY_PERIODS_MAX: Final = 200
LAGGING_PARTITIONS_MAX: Final = 24
FINDINGS_MAX: Final = 40
NAMES_MAX: Final = 6
"""Members that joined or departed in one rebalance, by name."""
LAG_STEPS: Final = 160

T = TypeVar("T")

Rows = dict[str, list[Row]]


def read_details(group_tables: GroupTables, *, since_ms: int, until_ms: int) -> list[DetailRows]:
    """Ordered as the groups of the group_tables."""
    lag_step_ms = max(-(-(until_ms - since_ms + 1) // LAG_STEPS), 1)
    rebalances = _collect(_rebalances(group_tables))
    memberships = _collect(_memberships(group_tables))
    ownership = _collect(_ownership(group_tables))
    empty_periods = _collect(_empty_periods(group_tables))
    lag = _collect(_lag(group_tables, since_ms, lag_step_ms))
    lagging_partitions = _collect(_lagging_partitions(group_tables))
    findings = _collect(_findings(group_tables))
    return [
        DetailRows(
            group_id=group,
            rebalances=_each(_rebalance, rebalances[group]),
            memberships=_each(_membership, memberships[group]),
            memberships_total=_total(memberships[group]),
            ownership=_each(_ownership_period, ownership[group]),
            ownership_total=_total(ownership[group]),
            partitions_total=ownership[group][0].partitions_total if ownership[group] else 0,
            empty_periods=_each(lambda row: EmptyPeriod(**row), empty_periods[group]),
            lag=_each(lambda row: LagStep(**row), lag[group]),
            lag_step_ms=lag_step_ms,
            lagging_partitions=_each(
                lambda row: LaggingPartition(**row), lagging_partitions[group]
            ),
            findings=_each(lambda row: FindingRow(**row), findings[group]),
            findings_total=_total(findings[group]),
        )
        for group in group_tables.groups
    ]


def _rebalances(group_tables: GroupTables) -> DataFrame:
    few = f"slice(coalesce({{0}}, array()), 1, {NAMES_MAX}) AS {{0}}"
    rows = group_tables.read(tables.REBALANCES).selectExpr(
        *("group_id", "generation_before", "generation", "duration_ms", "join_ms", "sync_ms"),
        *("ending", "trigger", "initiator", "client_reason", "confidence", "is_exact"),
        *("is_cooperative", "members_before", "members_after", "slowest", "slowest_join_ms"),
        *("moved", "moved_needlessly", "ownerless_partition_ms AS ownerless_ms", "replayed"),
        "unix_millis(started_at) AS started_ms",
        "unix_millis(ended_at) AS ended_ms",
        "size(coalesce(joined, array())) AS joined_total",
        "size(coalesce(departed, array())) AS departed_total",
        few.format("joined"),
        few.format("departed"),
    )
    at = sql.expr("struct(coalesce(ended_ms, started_ms), generation)")
    return _first(rows, REBALANCES_MAX, at.desc())


def _memberships(group_tables: GroupTables) -> DataFrame:
    rows = group_tables.read(tables.MEMBERSHIPS).selectExpr(
        "group_id",
        "struct(member_id, instance_id, client_id, client_host) AS identity",
        *("from_generation", "to_generation", "ending", "is_exact"),
        "unix_millis(from_at) AS from_ms",
        "unix_millis(to_at) AS to_ms",
    )
    return _first(rows, MEMBERSHIPS_MAX, sql.desc("from_ms"), sql.desc("identity.member_id"))


def _ownership(group_tables: GroupTables) -> DataFrame:
    ownership = group_tables.read(tables.OWNERSHIP)
    longest_first = Window.partitionBy("group_id").orderBy(
        sql.desc_nulls_last("gap_ms"), "topic", "partition"
    )
    by_group = Window.partitionBy("group_id")
    partitions = (
        ownership.groupBy("group_id", "topic", "partition")
        .agg(sql.sum("gap_before_ms").alias("gap_ms"))
        .withColumn("place", sql.row_number().over(longest_first))
        .withColumn("partitions_total", sql.count("*").over(by_group))
        .where(f"place <= {PARTITIONS_MAX}")
    )
    together = ["group_id", "member_id", "from_ms", "to_ms", "gap_before_ms"]
    rows = (
        ownership.join(partitions, ["group_id", "topic", "partition"])
        .selectExpr("*", "unix_millis(from_at) AS from_ms", "unix_millis(to_at) AS to_ms")
        .groupBy(*together)
        .agg(
            sql.max("client_id").alias("client_id"),
            sql.max("instance_id").alias("instance_id"),
            sql.max("partitions_total").alias("partitions_total"),
            sql.sort_array(sql.collect_set(sql.struct("topic", "partition"))).alias("partitions"),
        )
    )
    return _first(rows, OWNERSHIP_MAX, sql.desc("from_ms"), "member_id", "to_ms")


def _empty_periods(group_tables: GroupTables) -> DataFrame:
    by_group = Window.partitionBy("group_id").orderBy("partition", "offset")
    rows = (
        group_tables.read(tables.GENERATIONS)
        .withColumn("next_at", sql.lead("at").over(by_group))
        .where("kind IN ('emptied', 'deleted')")
        .selectExpr("group_id", "unix_millis(at) AS from_ms", "unix_millis(next_at) AS to_ms")
    )
    return _first(rows, EMPTY_PERIODS_MAX, sql.desc("from_ms")).drop("total")


def _lag(group_tables: GroupTables, since_ms: int, step_ms: int) -> DataFrame:
    """The change of the lag in each step, summed over partitions; the sum of changes is the lag.

    A partition without a row in a step keeps its lag. Only readings of end offsets count: a commit
    between two readings is compared with an old end offset and always seems to have caught up.
    """
    place = ("group_id", "topic", "partition")
    in_time = Window.partitionBy(*place).orderBy("number")
    return (
        group_tables.read(tables.LAG)
        # If the committed offset was removed, the lag is 0.
        .where("(log_offset IS NULL AND lag_records IS NOT NULL) OR committed IS NULL")
        .selectExpr("*", f"int((unix_millis(at) - {since_ms}) div {step_ms}) AS number")
        .groupBy(*place, "number")
        .agg(
            sql.expr(
                "max_by(coalesce(lag_records, 0L), struct(at, coalesce(log_offset, -1L)))"
            ).alias("last"),
            sql.max("lag_seconds").alias("seconds"),
        )
        .withColumn("change", sql.expr("last") - sql.lag("last", 1, 0).over(in_time))
        .groupBy("group_id", "number")
        .agg(sql.sum("change").alias("change"), sql.max("seconds").alias("seconds"))
        .orderBy("group_id", "number")
    )


def _lagging_partitions(group_tables: GroupTables) -> DataFrame:
    rows = (
        group_tables.read(tables.LAG_STATUS)
        .where("status <> 'ok'")
        .selectExpr(
            *("group_id", "topic", "partition", "status", "lag_records", "owner", "reason"),
            "unix_millis(since) AS since_ms",
        )
    )
    return _first(
        rows, LAGGING_PARTITIONS_MAX, sql.desc_nulls_last("lag_records"), "topic", "partition"
    ).drop("total")


def _findings(group_tables: GroupTables) -> DataFrame:
    rows = group_tables.read(tables.FINDINGS).selectExpr(
        *("group_id", "finding", "severity", "subject", "count", "what", "advice", "setting"),
        *("would_have_saved_ms", "evidence"),
        "unix_millis(from_at) AS from_ms",
        "unix_millis(to_at) AS to_ms",
    )
    grave = sql.expr("CASE severity WHEN 'critical' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END")
    return _first(
        rows,
        FINDINGS_MAX,
        grave,
        sql.desc_nulls_last("would_have_saved_ms"),
        sql.desc_nulls_last("count"),
        "finding",
        "subject",
    )


def _first(rows: DataFrame, most: int, *order: Any) -> DataFrame:
    """The first `most` rows of each group in that order, and the `total` number of its rows."""
    by_group = Window.partitionBy("group_id")
    return (
        rows.withColumn("total", sql.count("*").over(by_group))
        .withColumn("place", sql.row_number().over(by_group.orderBy(*order)))
        .where(f"place <= {most}")
        .orderBy("group_id", "place")
        .drop("place")
    )


def _collect(frame: DataFrame) -> Rows:
    rows: Rows = defaultdict(list)
    for row in frame.collect():
        rows[row.group_id].append(row)
    return rows


def _total(rows: Sequence[Row]) -> int:
    return int(rows[0].total) if rows else 0


def _each(make: Callable[[dict[str, Any]], T], rows: Iterable[Row]) -> tuple[T, ...]:
    made = []
    for row in rows:
        fields = row.asDict(recursive=True)
        made.append(
            make({name: fields[name] for name in fields if name not in {"group_id", "total"}})
        )
    return tuple(made)


def _rebalance(row: dict[str, Any]) -> RebalanceRow:
    identities = {
        name: tuple(identity for each in row.pop(name) if (identity := identity_of(each)))
        for name in ("joined", "departed")
    }
    return RebalanceRow(
        **row | identities | {name: identity_of(row[name]) for name in ("initiator", "slowest")}
    )


def _membership(row: dict[str, Any]) -> tuple[ClientIdentity, MembershipPeriod]:
    identity = ClientIdentity(**row.pop("identity"))
    return identity, MembershipPeriod(member_id=identity.member_id or "", **row)


def _ownership_period(row: dict[str, Any]) -> OwnershipPeriod:
    partitions = tuple((each["topic"], each["partition"]) for each in row.pop("partitions"))
    row.pop("partitions_total")
    return OwnershipPeriod(partitions=partitions, **row)
