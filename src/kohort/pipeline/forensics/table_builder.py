"""Build all silver and gold tables from bronze. Each table is stored before others use it."""

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
from kohort.pipeline.forensics.gold import (
    group_health_table,
    groups_table,
    lag_status_table,
    lag_table,
    rebalances_table,
)
from kohort.pipeline.forensics.silver import (
    commit_runs_table,
    commits_table,
    generations_table,
    group_events_table,
    memberships_table,
    ownership_table,
    undecodable_table,
)
from kohort.pipeline.forensics.silver.record_kinds import split_by_kind
from kohort.pipeline.forensics.store import Store
from kohort.pipeline.forensics.tables import TableSpec
from kohort.pipeline.forensics.tuning import settings_for, tuned

ProgressCallback = Callable[[str, int, int], None]
"""Called with a text, the number of the step and the number of steps (0 if unknown)."""

STEPS: Final = (
    tables.GENERATIONS,
    tables.GROUP_EVENTS,
    tables.MEMBERSHIPS,
    tables.OWNERSHIP,
    tables.COMMITS,
    tables.COMMIT_RUNS,
    tables.UNDECODABLE,
    tables.REBALANCES,
    tables.GROUP_HEALTH,
    tables.LAG,
    tables.LAG_STATUS,
    tables.GROUPS,
    tables.FINDINGS,
)


class TableBuilder:
    """Rebuilds all tables of a store from its bronze."""

    def __init__(
        self,
        store: Store,
        *,
        since: datetime | None = None,
        groups: Sequence[str] = (),
        excluded: Sequence[str] = (),
        on_progress: ProgressCallback = lambda *_: None,
    ) -> None:
        self._store = store
        self._since = since
        self._groups = list(groups)
        self._excluded = list(excluded)
        self._on_progress = on_progress
        self._step = 0
        self._counting = threading.Lock()

    def build(self) -> dict[str, Any]:
        """Returns the row counts of the tables and the counts of skipped records."""
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
        """Returns the number of skipped records of each kind."""
        records = split_by_kind(new)
        with _persisted(records.keys, records.others):
            generations = self._write(
                tables.GENERATIONS, self._chosen(generations_table.build(records.others))
            )
            events = self._write(
                tables.GROUP_EVENTS, self._chosen(group_events_table.build(records.others))
            )

            def build_large() -> None:
                commits = self._write(
                    tables.COMMITS, self._chosen(commits_table.build(records, generations))
                )
                self._write(tables.COMMIT_RUNS, commit_runs_table.build(commits))

            def build_small() -> None:
                self._write(tables.MEMBERSHIPS, memberships_table.build(generations, events))
                self._write(tables.OWNERSHIP, ownership_table.build(generations, events))
                self._write(tables.UNDECODABLE, undecodable_table.build(records))

            _in_parallel(build_large, build_small)
            skipped = undecodable_table.count_skipped(records).collect()
        return {str(row.kind): int(row.records) for row in skipped}

    def _build_gold(self) -> None:
        read = self._store.read
        generations, events = read(tables.GENERATIONS), read(tables.GROUP_EVENTS)
        commits, commit_runs = read(tables.COMMITS), read(tables.COMMIT_RUNS)
        ownership, ends = read(tables.OWNERSHIP), read(tables.ENDS)

        def build_small() -> None:
            rebalances = rebalances_table.build(
                generations=generations,
                ownership=ownership,
                commit_runs=commit_runs,
                group_events=events,
            )
            rebalances = self._write(tables.REBALANCES, rebalances)
            health = group_health_table.build(rebalances=rebalances, generations=generations)
            self._write(tables.GROUP_HEALTH, health)

        def build_large() -> None:
            self._write(tables.LAG, lag_table.build(commits=commits, ends=ends))

        _in_parallel(build_large, build_small)
        rebalances, recent_lag = (
            read(tables.REBALANCES),
            lag_status_table.recent_lag(read(tables.LAG)),
        )
        with _persisted(recent_lag):
            status = lag_status_table.build(
                recent_lag=recent_lag, ownership=ownership, generations=generations, ends=ends
            )
            status = self._write(tables.LAG_STATUS, status)
            groups = groups_table.build(
                generations=generations,
                rebalances=rebalances,
                group_events=events,
                recent_lag=recent_lag,
            )
            groups = self._write(tables.GROUPS, groups)
        evidence = findings.Evidence(
            generations=generations,
            memberships=read(tables.MEMBERSHIPS),
            commits=commits,
            commit_runs=commit_runs,
            ends=ends,
            group_events=events,
            rebalances=rebalances,
            lag_status=status,
            groups=groups,
        )
        self._write(tables.FINDINGS, findings.build(evidence))

    def _count(self) -> dict[str, int]:
        """The row counts of all tables, with one query."""
        counted = (self._store.read(each).agg(sql.lit(each.name), sql.count("*")) for each in STEPS)
        rows = reduce(DataFrame.union, counted).collect()
        return {str(name): int(count) for name, count in rows}

    def _chosen(self, frame: DataFrame) -> DataFrame:
        """The requested groups, without the group of this run."""
        if self._groups:
            frame = frame.where(sql.col("group_id").isin(self._groups))
        if self._excluded:
            frame = frame.where(~sql.col("group_id").isin(self._excluded))
        return frame

    def _write(self, table: TableSpec, frame: DataFrame) -> DataFrame:
        with self._counting:
            self._step += 1
            self._on_progress(table.name, self._step, len(STEPS))
        return self._store.write(table, frame)


@contextmanager
def _persisted(*frames: DataFrame) -> Iterator[None]:
    """Compute small frames once that are read several times."""
    for frame in frames:
        frame.persist()
    try:
        yield
    finally:
        for frame in frames:
            frame.unpersist()


def _in_parallel(*tasks: Callable[[], None]) -> None:
    """While executors compute one table, the driver plans the next: most tables are small."""
    with ThreadPoolExecutor(len(tasks)) as pool:
        for future in [pool.submit(task) for task in tasks]:
            future.result()
