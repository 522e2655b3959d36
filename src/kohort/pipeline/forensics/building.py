"""From bronze to gold: every table is built from those before it, and kept before it is used."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kohort.pipeline.forensics import findings, tables
from kohort.pipeline.forensics.gold import group_health, lag, lag_status, rebalances
from kohort.pipeline.forensics.silver import (
    commits,
    generations,
    group_events,
    memberships,
    ownership,
    undecodable,
)
from kohort.pipeline.forensics.store import Store
from kohort.pipeline.forensics.tables import Table

Watch = Callable[[str, int, int], None]
"""Hears of each step: what is being built, which step it is, and of how many."""

STEPS: Final = (
    tables.GENERATIONS,
    tables.GROUP_EVENTS,
    tables.MEMBERSHIPS,
    tables.OWNERSHIP,
    tables.COMMITS,
    tables.UNDECODABLE,
    tables.REBALANCES,
    tables.GROUP_HEALTH,
    tables.LAG,
    tables.LAG_STATUS,
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

    def build(self) -> dict[str, Any]:
        """How much there is, by table, and what was left aside."""
        store = self._store
        store.begin()
        records = self._records()
        self._build_silver(records)
        self._build_gold()
        skipped = undecodable.count_skipped(records).collect()
        summary: dict[str, Any] = {
            "tables": {each.name: store.read(each).count() for each in STEPS},
            "has_events": not store.read(tables.GROUP_EVENTS).isEmpty(),
            "skipped": {str(row.kind): int(row.records) for row in skipped},
            "since": None if self._since is None else self._since.isoformat(),
            "groups": self._groups,
        }
        store.complete(summary)
        return summary

    def _records(self) -> DataFrame:
        records = self._store.read(tables.RECORDS)
        if self._since is not None:
            records = records.where(sql.col("timestamp") >= sql.lit(self._since))
        return records

    def _build_silver(self, records: DataFrame) -> None:
        formed = self._keep(tables.GENERATIONS, self._chosen(generations.build(records)))
        events = self._keep(tables.GROUP_EVENTS, self._chosen(group_events.build(records)))
        self._keep(tables.MEMBERSHIPS, memberships.build(formed, events))
        self._keep(tables.OWNERSHIP, ownership.build(formed, events))
        self._keep(tables.COMMITS, self._chosen(commits.build(records, formed)))
        self._keep(tables.UNDECODABLE, undecodable.build(records))

    def _build_gold(self) -> None:
        read = self._store.read
        formed, events = read(tables.GENERATIONS), read(tables.GROUP_EVENTS)
        kept, held, ends = read(tables.COMMITS), read(tables.OWNERSHIP), read(tables.ENDS)
        found = self._keep(
            tables.REBALANCES,
            rebalances.build(generations=formed, ownership=held, commits=kept, group_events=events),
        )
        self._keep(tables.GROUP_HEALTH, group_health.build(rebalances=found, generations=formed))
        behind = self._keep(tables.LAG, lag.build(commits=kept, ends=ends))
        status = self._keep(
            tables.LAG_STATUS,
            lag_status.build(lag=behind, ownership=held, generations=formed, ends=ends),
        )
        evidence = findings.Evidence(
            generations=formed,
            memberships=read(tables.MEMBERSHIPS),
            commits=kept,
            ends=ends,
            group_events=events,
            rebalances=found,
            lag_status=status,
        )
        self._keep(tables.FINDINGS, findings.build(evidence))

    def _chosen(self, frame: DataFrame) -> DataFrame:
        """Only groups that were asked for, and never the one that reads all this."""
        if self._groups:
            frame = frame.where(sql.col("group_id").isin(self._groups))
        if self._without:
            frame = frame.where(~sql.col("group_id").isin(self._without))
        return frame

    def _keep(self, table: Table, frame: DataFrame) -> DataFrame:
        self._step += 1
        self._watch(table.name, self._step, len(STEPS))
        return self._store.write(table, frame)
