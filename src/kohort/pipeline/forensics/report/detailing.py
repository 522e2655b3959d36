"""The few groups that a report shows in full, each in some hundreds of rows.

Everything that could be many is made less in Spark: commits become a lag in steps of time,
partitions that changed hands together become one row, and of what is left the latest rows stay.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as sql

from kohort.pipeline.forensics import tables
from kohort.pipeline.forensics.report.gathering import party_of
from kohort.pipeline.forensics.report.material import (
    Absence,
    Detail,
    Finding,
    Laggard,
    LagStep,
    Life,
    Rebalance,
    Stretch,
)
from kohort.pipeline.forensics.report.reading import Shelf

REBALANCES_MAX: Final = 300
LIVES_MAX: Final = 300
STRETCHES_MAX: Final = 3_000
PLACES_MAX: Final = 48
"""Partitions on a timeline: those that were without an owner for longest."""
ABSENCES_MAX: Final = 200
LAGGARDS_MAX: Final = 24
FINDINGS_MAX: Final = 40
PARTIES_MAX: Final = 6
"""Of those who came or went in one rebalance, by name."""
LAG_STEPS: Final = 160

T = TypeVar("T")

Rows = dict[str, list[Row]]


def detail(shelf: Shelf, *, since_ms: int, until_ms: int) -> list[Detail]:
    """In the order of the shelf's groups."""
    lag_step_ms = max(-(-(until_ms - since_ms + 1) // LAG_STEPS), 1)
    rebalances = _collect(_rebalances(shelf))
    lives = _collect(_lives(shelf))
    stretches = _collect(_stretches(shelf))
    absences = _collect(_absences(shelf))
    lag = _collect(_lag(shelf, since_ms, lag_step_ms))
    laggards = _collect(_laggards(shelf))
    findings = _collect(_findings(shelf))
    return [
        Detail(
            group_id=group,
            rebalances=_each(_rebalance, rebalances[group]),
            lives=_each(_life, lives[group]),
            lives_total=_total(lives[group]),
            stretches=_each(_stretch, stretches[group]),
            stretches_total=_total(stretches[group]),
            places_total=stretches[group][0].places_total if stretches[group] else 0,
            absences=_each(lambda row: Absence(**row), absences[group]),
            lag=_each(lambda row: LagStep(**row), lag[group]),
            lag_step_ms=lag_step_ms,
            laggards=_each(lambda row: Laggard(**row), laggards[group]),
            findings=_each(lambda row: Finding(**row), findings[group]),
            findings_total=_total(findings[group]),
        )
        for group in shelf.groups
    ]


def _rebalances(shelf: Shelf) -> DataFrame:
    few = f"slice(coalesce({{0}}, array()), 1, {PARTIES_MAX}) AS {{0}}"
    rows = shelf.read(tables.REBALANCES).selectExpr(
        *("group_id", "generation_before", "generation", "duration_ms", "join_ms", "sync_ms"),
        *("ending", "trigger", "culprit", "client_reason", "confidence", "is_exact"),
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


def _lives(shelf: Shelf) -> DataFrame:
    rows = shelf.read(tables.MEMBERSHIPS).selectExpr(
        "group_id",
        "struct(member_id, instance_id, client_id, client_host) AS party",
        *("from_generation", "to_generation", "ending", "is_exact"),
        "unix_millis(from_at) AS from_ms",
        "unix_millis(to_at) AS to_ms",
    )
    return _first(rows, LIVES_MAX, sql.desc("from_ms"), sql.desc("party.member_id"))


def _stretches(shelf: Shelf) -> DataFrame:
    ownership = shelf.read(tables.OWNERSHIP)
    longest_first = Window.partitionBy("group_id").orderBy(
        sql.desc_nulls_last("gap_ms"), "topic", "partition"
    )
    by_group = Window.partitionBy("group_id")
    places = (
        ownership.groupBy("group_id", "topic", "partition")
        .agg(sql.sum("gap_before_ms").alias("gap_ms"))
        .withColumn("place", sql.row_number().over(longest_first))
        .withColumn("places_total", sql.count("*").over(by_group))
        .where(f"place <= {PLACES_MAX}")
    )
    together = ["group_id", "member_id", "from_ms", "to_ms", "gap_before_ms"]
    rows = (
        ownership.join(places, ["group_id", "topic", "partition"])
        .selectExpr("*", "unix_millis(from_at) AS from_ms", "unix_millis(to_at) AS to_ms")
        .groupBy(*together)
        .agg(
            sql.max("client_id").alias("client_id"),
            sql.max("instance_id").alias("instance_id"),
            sql.max("places_total").alias("places_total"),
            sql.sort_array(sql.collect_set(sql.struct("topic", "partition"))).alias("places"),
        )
    )
    return _first(rows, STRETCHES_MAX, sql.desc("from_ms"), "member_id", "to_ms")


def _absences(shelf: Shelf) -> DataFrame:
    by_group = Window.partitionBy("group_id").orderBy("partition", "offset")
    rows = (
        shelf.read(tables.GENERATIONS)
        .withColumn("next_at", sql.lead("at").over(by_group))
        .where("kind IN ('emptied', 'deleted')")
        .selectExpr("group_id", "unix_millis(at) AS from_ms", "unix_millis(next_at) AS to_ms")
    )
    return _first(rows, ABSENCES_MAX, sql.desc("from_ms")).drop("total")


def _lag(shelf: Shelf, since_ms: int, step_ms: int) -> DataFrame:
    """What changed from step to step, summed over partitions; the sum of changes is the lag.

    A partition that nothing is told of in a step keeps the lag it had, without a row for it. Only
    looks at the logs' ends count: a commit between two looks is measured by an old end, and would
    always seem to have caught up.
    """
    place = ("group_id", "topic", "partition")
    in_time = Window.partitionBy(*place).orderBy("number")
    return (
        shelf.read(tables.LAG)
        # One without a committed offset has none any more, and is not behind.
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


def _laggards(shelf: Shelf) -> DataFrame:
    rows = (
        shelf.read(tables.LAG_STATUS)
        .where("status <> 'ok'")
        .selectExpr(
            *("group_id", "topic", "partition", "status", "lag_records", "owner", "reason"),
            "unix_millis(since) AS since_ms",
        )
    )
    return _first(
        rows, LAGGARDS_MAX, sql.desc_nulls_last("lag_records"), "topic", "partition"
    ).drop("total")


def _findings(shelf: Shelf) -> DataFrame:
    rows = shelf.read(tables.FINDINGS).selectExpr(
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
    """So many of each group, in that order, and the `total` there are."""
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


def _rebalance(row: dict[str, Any]) -> Rebalance:
    parties = {
        name: tuple(party for each in row.pop(name) if (party := party_of(each)))
        for name in ("joined", "departed")
    }
    return Rebalance(
        **row | parties | {name: party_of(row[name]) for name in ("culprit", "slowest")}
    )


def _life(row: dict[str, Any]) -> Life:
    party = party_of(row.pop("party"))
    assert party is not None, "it was made of columns"
    return Life(party=party, **row)


def _stretch(row: dict[str, Any]) -> Stretch:
    places = tuple((each["topic"], each["partition"]) for each in row.pop("places"))
    row.pop("places_total")
    return Stretch(places=places, **row)
