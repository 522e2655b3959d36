"""From stored tables to a report, with the values of the tables."""

import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kohort.pipeline.forensics.report import Report, details, read_report, summaries, write_report
from kohort.pipeline.forensics.report.summaries import GroupNotInTables
from kohort.pipeline.forensics.store import NoTables, Store
from tests.pipeline.forensics.report.stored_tables import (
    START_MS,
    Rows,
    at,
    generation,
    identity,
    rebalance,
    store_tables,
)

HOUR = 3600


def ownership(second: float, to: float | None, name: str, *numbers: int, gap: Any = None) -> Rows:
    return [
        {
            "group_id": "billing",
            "topic": "t",
            "partition": number,
            "member_id": f"{name}-1",
            "client_id": name,
            "from_at": at(second),
            "to_at": None if to is None else at(to),
            "gap_before_ms": gap,
        }
        for number in numbers
    ]


def reading(second: float, number: int, lag: int | None, **more: Any) -> dict[str, Any]:
    row = {"group_id": "billing", "topic": "t", "partition": number, "at": at(second)}
    return {**row, "lag_records": lag, "committed": 5, "lag_seconds": 1.5, **more}


def random_looks(seed: int) -> Rows:
    rng = random.Random(seed)  # noqa: S311  # not for secrets
    looks = [
        reading(second, number, rng.randrange(1000))
        for number in range(4)
        # Timestamps are unique, so that there is a last reading.
        for second in rng.sample(range(2 * HOUR), 60)
    ]
    commits = [
        reading(rng.randrange(2 * HOUR), 1, 0, log_offset=each, lag_seconds=0.0)
        for each in range(50)
    ]
    removed = [reading(2 * HOUR, 3, None, committed=None, log_offset=99, lag_seconds=None)]
    return looks + commits + removed


FOUND = {
    "group_id": "billing",
    "finding": "rebalance-storm",
    "severity": "critical",
    "subject": "a at /a",
    "from_at": at(10),
    "to_at": at(900),
    "count": 9,
    "what": "9 rebalances within 14 min 50 s.",
    "advice": "Stop it.",
    "setting": "group.instance.id",
    "would_have_saved_ms": 60_000,
    "evidence": "{}",
}

LOOKS = random_looks(7)

TABLES: dict[str, Rows] = {
    "undecodable": [{"topic": "__consumer_offsets", "partition": 0, "offset": 1, "reason": "odd"}],
    "generations": [
        generation("billing", 1, 0, "a", "b"),
        generation("billing", 2, HOUR, "a"),
        generation("billing", 3, HOUR + 600, kind="emptied"),
        generation("billing", 4, HOUR + 1200, "a", "b", "c"),
        generation("gone", 1, 60, "x"),
        generation("gone", 2, 120, kind="deleted"),
    ],
    "memberships": [
        {
            "group_id": "billing",
            **identity(name),
            "from_generation": 1,
            "to_generation": 4,
            "from_at": at(0),
            "is_exact": False,
        }
        for name in ("a", "b")
    ],
    "ownership": [
        *ownership(0, HOUR, "a", 0, 1),
        *ownership(0, HOUR, "b", 2, 3),
        *ownership(HOUR + 2, None, "a", 0, 1, 2, 3, gap=2000),
    ],
    "group_events": [{"group_id": "billing", "at": at(5), "event": "member-joined"}],
    "rebalances": [
        *(rebalance("billing", each, each * 100, "a") for each in range(1, 8)),
        rebalance("billing", 8, 900, "b", trigger="member-left", replayed=5),
        rebalance("billing", 9, 2 * HOUR - 10, None, trigger="over-capacity", is_exact=False),
        rebalance("gone", 1, 60, "x", confidence=0.5, is_exact=False, ownerless_partition_ms=None),
    ],
    "group_health": [
        {"group_id": "billing", "rebalancing_ms": 1000, "members_max": 3, "flapping_members": 1},
        {"group_id": "billing", "rebalancing_ms": 500, "members_max": 2, "flapping_members": 2},
    ],
    "lag": [
        *LOOKS,
        {**reading(30, 0, 3), "group_id": "offsets only", "log_offset": 4},
    ],
    "lag_status": [
        {"group_id": "billing", "topic": "t", "partition": 0, "status": "ok", "lag_records": 1},
        {
            "group_id": "billing",
            "topic": "t",
            "partition": 1,
            "status": "stopped",
            "since": at(60),
            "lag_records": 41,
            "owner": "a-1",
            "reason": "no commit",
        },
    ],
    "findings": [FOUND, {**FOUND, "severity": "notice", "subject": None}],
}


@pytest.fixture(scope="module")
def directory(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    return store_tables(spark, tmp_path_factory.mktemp("tables"), **TABLES)


@pytest.fixture(scope="module")
def shown(spark: SparkSession, directory: str) -> Report:
    return read_report(spark, directory)


def test_every_group_of_any_table_is_in_the_report(shown: Report) -> None:
    assert [each.group_id for each in shown.groups] == ["billing", "gone", "offsets only"]
    assert shown.headline == "3 groups: 1 critical"
    assert (shown.since_ms, shown.until_ms) == (START_MS, START_MS + 2 * HOUR * 1000)
    assert (shown.groups_total, shown.events, shown.undecodable) == (3, 1, 1)
    assert shown.commits == sum("log_offset" in row for row in TABLES["lag"])


def test_the_metrics_of_a_group_are_those_of_its_tables(shown: Report) -> None:
    billing = shown.groups[0]

    assert (billing.rebalances, billing.exact, billing.confidence) == (9, 8, 1.0)
    assert (billing.ownerless_ms, billing.members, billing.partitions) == (72_000, 3, 4)
    # It had members but for ten minutes.
    assert billing.ownerless_share == pytest.approx(72 / (4 * (2 * HOUR - 600)), rel=1e-4)
    assert billing.rebalancing_share == pytest.approx(1.5 / (2 * HOUR - 600), rel=1e-4)
    assert (billing.initiator, billing.lag_records, billing.lag_status) == (
        "a at /a",
        42,
        "stopped",
    )
    assert billing.findings == ("rebalance-storm",)
    assert sum(each.rebalances for each in billing.bins) == 9
    assert max(each.number for each in billing.bins) < summaries.BINS


def test_deleted_groups_and_groups_without_members_are_described(shown: Report) -> None:
    gone, offsets = shown.groups[1:]

    assert (gone.state, gone.members, gone.rebalances, gone.ownerless_ms) == ("deleted", 0, 1, 0)
    assert (offsets.state, offsets.rebalances, offsets.lag_status) == (None, 0, None)


def test_details_have_the_rows_of_the_tables(shown: Report) -> None:
    details = shown.details[0]

    assert [each.generation for each in details.rebalances] == list(range(1, 10))
    assert details.rebalances[0].initiator is not None
    assert details.rebalances[0].initiator.who == "a at /a"
    assert details.partitions == (("t", 0), ("t", 1), ("t", 2), ("t", 3))
    assert sorted((each.member_id, each.partitions) for each in details.ownership) == [
        ("a-1", (("t", 0), ("t", 1))),
        ("a-1", (("t", 0), ("t", 1), ("t", 2), ("t", 3))),
        ("b-1", (("t", 2), ("t", 3))),
    ]
    assert [(each.from_ms - START_MS) // 1000 for each in details.empty_periods] == [HOUR + 600]
    assert [each.severity for each in details.findings] == ["critical", "notice"]
    assert [each.partition for each in details.lagging_partitions] == [1]
    assert [each.name for each in details.clients] == ["a at /a", "b at /b"]


def test_lag_equals_the_sum_of_the_last_readings(shown: Report) -> None:
    """Computed independently: the last reading of each partition until the end of each step."""
    step_ms = -(-(2 * HOUR * 1000 + 1) // details.LAG_STEPS)
    points = {each.at_ms: each.records for each in shown.details[0].lag}

    expected = {}
    last: dict[int, int] = defaultdict(int)
    looks = [row for row in LOOKS if "log_offset" not in row or row["committed"] is None]
    steps = defaultdict(list)
    for row in looks:
        ms = round((row["at"] - at(0)).total_seconds() * 1000)
        steps[ms // step_ms].append((ms, row.get("log_offset", -1), row))
    for number in sorted(steps):
        for _, _, row in sorted(steps[number], key=lambda each: each[:2]):
            last[row["partition"]] = row["lag_records"] or 0
        expected[START_MS + (number + 1) * step_ms] = sum(last.values())
    assert points == expected


def test_a_report_of_some_groups_has_only_these(spark: SparkSession, directory: str) -> None:
    shown = read_report(spark, directory, groups=["gone"])

    assert [each.group_id for each in shown.groups] == ["gone"]
    assert shown.groups_total == 1
    assert shown.groups[0].has_details


def test_an_unknown_group_is_refused(spark: SparkSession, directory: str) -> None:
    with pytest.raises(GroupNotInTables, match="no such group: missing"):
        read_report(spark, directory, groups=["billing", "missing"])


def test_incomplete_tables_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    directory = store_tables(spark, tmp_path / "tables")
    Store(spark, directory).begin()

    with pytest.raises(NoTables, match="no complete tables"):
        read_report(spark, directory)
    with pytest.raises(NoTables, match="no complete tables"):
        read_report(spark, str(tmp_path / "nowhere"))


def test_empty_tables_give_an_empty_report(spark: SparkSession, tmp_path: Path) -> None:
    shown = write_report(
        spark, store_tables(spark, tmp_path / "tables"), str(tmp_path / "page.html")
    )

    assert shown.headline == "No groups"
    assert (shown.since_ms, shown.groups, shown.details) == (None, (), ())
    assert shown.headline in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert [each.name for each in tmp_path.iterdir() if each.is_file()] == ["page.html"]


def test_lists_are_truncated_and_their_totals_are_not(
    spark: SparkSession, directory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(details, "REBALANCES_MAX", 3)
    monkeypatch.setattr(details, "PARTITIONS_MAX", 2)
    monkeypatch.setattr(summaries, "GROUPS_MAX", 2)

    shown = read_report(spark, directory)

    first = shown.details[0]
    assert (shown.groups_total, len(shown.groups)) == (3, 2)
    assert shown.omitted[0].startswith("1 group with no more severe findings")
    assert [each.generation for each in first.rebalances] == [7, 8, 9]
    assert first.omitted[0] == "3 of 9 rebalances, the latest, are shown."
    assert first.partitions == (("t", 0), ("t", 1))
    assert "2 of 4 partitions, those without an owner for longest, are shown." in first.omitted
