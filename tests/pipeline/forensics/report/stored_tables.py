"""Store tables with a few rows: missing columns are null, missing tables are empty."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

from pyspark.sql import SparkSession

from kohort.pipeline.forensics import tables
from kohort.pipeline.forensics.gold import groups_table, lag_status_table
from kohort.pipeline.forensics.store import Store

DAWN = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
START_MS = round(DAWN.timestamp() * 1000)

Rows: TypeAlias = list[dict[str, Any]]

READ = (
    tables.UNDECODABLE,
    tables.GENERATIONS,
    tables.MEMBERSHIPS,
    tables.OWNERSHIP,
    tables.GROUP_EVENTS,
    tables.REBALANCES,
    tables.GROUP_HEALTH,
    tables.LAG,
    tables.LAG_STATUS,
    tables.FINDINGS,
)
"""The tables that a report reads, and those that the table of groups is built from."""


def at(seconds: float) -> datetime:
    return DAWN + timedelta(seconds=seconds)


def store_tables(spark: SparkSession, directory: Path, **rows: Rows) -> str:
    unknown = set(rows) - {table.name for table in READ}
    assert not unknown, unknown
    store = Store(spark, str(directory))
    for table in READ:
        names = [column.name for column in table.columns]
        whole = [{name: row.get(name) for name in names} for row in rows.get(table.name, [])]
        store.write(table, spark.createDataFrame(whole, table.ddl).coalesce(1))
    known = groups_table.build(
        generations=store.read(tables.GENERATIONS),
        rebalances=store.read(tables.REBALANCES),
        group_events=store.read(tables.GROUP_EVENTS),
        recent_lag=lag_status_table.recent_lag(store.read(tables.LAG)),
    )
    store.write(tables.GROUPS, known)
    store.complete({})
    return str(directory)


def identity(name: str, membership: int = 1) -> dict[str, Any]:
    return {
        "member_id": f"{name}-{membership}",
        "instance_id": None,
        "client_id": name,
        "client_host": f"/{name}",
    }


def generation(group: str, number: int, second: float, *names: str, kind: str = "formed") -> Any:
    members = [
        {"member_id": f"{name}-1", "client_id": name, "topics": ["t"], "assigned": []}
        for name in names
    ]
    return {
        "group_id": group,
        "generation": number,
        "at": at(second),
        "partition": 0,
        "offset": number,
        "kind": kind,
        "protocol_type": "consumer",
        "protocol": "range" if names else None,
        "members": members,
    }


def rebalance(group: str, number: int, second: float, initiator: str | None, **more: Any) -> Any:
    return {
        "group_id": group,
        "generation_before": number - 1,
        "generation": number,
        "started_at": at(second),
        "ended_at": at(second + 2),
        "duration_ms": 2000,
        "ending": "stable",
        "trigger": "member-joined",
        "initiator": initiator and identity(initiator),
        "confidence": 1.0,
        "is_exact": True,
        "partitions": 4,
        "moved": 1,
        "moved_needlessly": 0,
        "ownerless_partition_ms": 8000,
        **more,
    }
