"""From bronze to gold: every table is built from those before it, and kept before it is used."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from functools import reduce
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kohort.pipeline.forensics import findings, tables
from kohort.pipeline.forensics.gold import group_health, groups, lag, lag_status, rebalances
from kohort.pipeline.forensics.silver import (
    commits,
    generations,
    group_events,
    memberships,
    ownership,
    stints,
    undecodable,
)
from kohort.pipeline.forensics.silver.choosing import sort_out
from kohort.pipeline.forensics.store import Store
from kohort.pipeline.forensics.tables import Table
from kohort.pipeline.forensics.tuning import settings_for, tuned

Watch = Callable[[str, int, int], None]
"""Hears of each step: what is being built, which step it is, and of how many."""

STEPS: Final = (
    tables.GENERATIONS,
    tables.GROUP_EVENTS,
    tables.MEMBERSHIPS,
    tables.OWNERSHIP,
    tables.COMMITS,
    tables.STINTS,
    tables.UNDECODABLE,
    tables.REBALANCES,
    tables.GROUP_HEALTH,
    tables.LAG,
    tables.LAG_STATUS,
    tables.GROUPS,
    tables.FINDINGS,
)


class Builder:
    """Builds all tables of one store anew, from its bronze."""

    def __init__(
        self,
        store: Store,
        *,
        since: datetime | None = None,
        groups: Sequence[str] = (),
        without: Sequence[str] = (),
        watch: Watch = lambda *_: None,
    ) -> None:
        self._store = store
        self._since = since
        self._groups = list(groups)
        self._without = list(without)
        self._watch = watch
        self._step = 0
        self._counting = threading.Lock()

    def build(self) -> dict[str, Any]:
        """How much there is, by table, and what was left aside."""
        self._store.begin()
        records = self._store.read(tables.RECORDS)
        spark = records.sparkSession
        with tuned(spark, settings_for(spark, records.count())):
            skipped = self._build_silver(self._new(records))
            self._build_gold()
            counts = self._count()
        summary: dict[str, Any] = {
            "tables": counts,
            "has_events": counts[tables.GROUP_EVENTS.name] > 0,
            "skipped": skipped,
            "since": None if self._since is None else self._since.isoformat(),
            "groups": self._groups,
        }
        self._store.complete(summary)
        return summary

    def _new(self, records: DataFrame) -> DataFrame:
        if self._since is None:
            return records
        return records.where(sql.col("timestamp") >= sql.lit(self._since))

    def _build_silver(self, new: DataFrame) -> dict[str, int]:
        """How many records of each kind were left alone."""
        records = sort_out(new)
        with _remembered(records.keys, records.others):
            formed = self._keep(tables.GENERATIONS, self._chosen(generations.build(records.others)))
            events = self._keep(
                tables.GROUP_EVENTS, self._chosen(group_events.build(records.others))
            )

            def build_large() -> None:
                kept = self._keep(tables.COMMITS, self._chosen(commits.build(records, formed)))
                self._keep(tables.STINTS, stints.build(kept))

            def build_small() -> None:
                self._keep(tables.MEMBERSHIPS, memberships.build(formed, events))
                self._keep(tables.OWNERSHIP, ownership.build(formed, events))
                self._keep(tables.UNDECODABLE, undecodable.build(records))

            _side_by_side(build_large, build_small)
            skipped = undecodable.count_skipped(records).collect()
        return {str(row.kind): int(row.records) for row in skipped}

    def _build_gold(self) -> None:
        read = self._store.read
        formed, events = read(tables.GENERATIONS), read(tables.GROUP_EVENTS)
        kept, worked = read(tables.COMMITS), read(tables.STINTS)
        held, ends = read(tables.OWNERSHIP), read(tables.ENDS)

        def build_small() -> None:
            found = rebalances.build(
                generations=formed, ownership=held, stints=worked, group_events=events
            )
            found = self._keep(tables.REBALANCES, found)
            health = group_health.build(rebalances=found, generations=formed)
            self._keep(tables.GROUP_HEALTH, health)

        def build_large() -> None:
            self._keep(tables.LAG, lag.build(commits=kept, ends=ends))

        _side_by_side(build_large, build_small)
        found, lately = read(tables.REBALANCES), lag_status.lately(read(tables.LAG))
        with _remembered(lately):
            status = lag_status.build(lately=lately, ownership=held, generations=formed, ends=ends)
            status = self._keep(tables.LAG_STATUS, status)
            known = groups.build(
                generations=formed, rebalances=found, group_events=events, lately=lately
            )
            known = self._keep(tables.GROUPS, known)
        evidence = findings.Evidence(
            generations=formed,
            memberships=read(tables.MEMBERSHIPS),
            commits=kept,
            stints=worked,
            ends=ends,
            group_events=events,
            rebalances=found,
            lag_status=status,
            groups=known,
        )
        self._keep(tables.FINDINGS, findings.build(evidence))

    def _count(self) -> dict[str, int]:
        """The rows of each table, by one query about all of them."""
        counted = (self._store.read(each).agg(sql.lit(each.name), sql.count("*")) for each in STEPS)
        rows = reduce(DataFrame.union, counted).collect()
        return {str(name): int(count) for name, count in rows}

    def _chosen(self, frame: DataFrame) -> DataFrame:
        """Only groups that were asked for, and never the one that reads all this."""
        if self._groups:
            frame = frame.where(sql.col("group_id").isin(self._groups))
        if self._without:
            frame = frame.where(~sql.col("group_id").isin(self._without))
        return frame

    def _keep(self, table: Table, frame: DataFrame) -> DataFrame:
        with self._counting:
            self._step += 1
            self._watch(table.name, self._step, len(STEPS))
        return self._store.write(table, frame)


@contextmanager
def _remembered(*frames: DataFrame) -> Iterator[None]:
    """What is little and is read again and again is worked out once."""
    for frame in frames:
        frame.persist()
    try:
        yield
    finally:
        for frame in frames:
            frame.unpersist()


def _side_by_side(*works: Callable[[], None]) -> None:
    """While workers are at one table, the driver plans the next: most tables are small."""
    with ThreadPoolExecutor(len(works)) as lanes:
        for lane in [lanes.submit(work) for work in works]:
            lane.result()
