"""The tables lag and lag_status."""

from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from kohort.pipeline.forensics import tables
from kohort.pipeline.forensics.gold import lag_status_table, lag_table
from tests.pipeline.forensics.row_histories import (
    C,
    D,
    G,
    L,
    M,
    Row,
    X,
    beats,
    build_silver,
    listed,
)


def looks(of: str, *, rate: float = 10, until: int = 600) -> list[Row]:
    return [L(at, of, round(at * rate)) for at in range(0, until + 1, 20)]


def owned(topic: str) -> G:
    return G(0, 1, M("a", f"{topic}0", topics=topic))


STORIES: dict[str, tuple[list[Row], str | None]] = {
    "level": ([owned("a"), *beats(5, 600, every=5, of="a0"), *looks("a0")], "ok"),
    "catching up": (
        [owned("b"), *beats(5, 600, every=5, of="b0", rate=9), *looks("b0", rate=8, until=300)]
        + [L(at, "b0", 8000) for at in range(320, 601, 20)],
        "ok",
    ),
    "stopped": ([owned("c"), *beats(5, 300, every=5, of="c0"), *looks("c0")], "stopped"),
    "stopped with nothing to read": (
        [owned("d"), *beats(5, 300, every=5, of="d0"), L(0, "d0", 0), L(310, "d0", 3000)],
        "ok",
    ),
    "rewound": (
        [owned("e"), *beats(5, 580, every=5, of="e0"), C(590, "e0", 100), *looks("e0", rate=20)],
        "rewound",
    ),
    "regained": (
        [
            owned("f"),
            *beats(5, 580, every=5, of="f0"),
            *(C(590, "f0", 100), C(600, "f0", 6000)),
            *looks("f0"),
        ],
        "ok",
    ),
    "stalled": (
        [owned("g"), *beats(5, 600, every=5, of="g0", rate=0, start=70), *looks("g0")],
        "stalled",
    ),
    "falling behind": (
        [owned("h"), *beats(5, 600, every=5, of="h0"), *looks("h0", rate=20)],
        "warning",
    ),
    "log end unknown": ([owned("i"), *beats(5, 600, every=5, of="i0")], "ok"),
    "removed": ([owned("j"), *beats(5, 300, every=5, of="j0"), X(310, "j0")], None),
    "deleted": ([owned("k"), *beats(5, 300, every=5, of="k0"), D(310)], None),
    "set back by a clock": (
        # The second commit is the later one, whatever its time says.
        [owned("l"), C(500, "l0", 4000), C(499, "l0", 5000), L(0, "l0", 0), L(600, "l0", 5000)],
        "ok",
    ),
}


@pytest.fixture(scope="module")
def statuses(spark: SparkSession) -> dict[str, dict[str, Any]]:
    told = build_silver(spark, {name: rows for name, (rows, _) in STORIES.items()}, in_order=False)
    lags = lag_table.build(commits=told.commits, ends=told.ends)
    built = lag_status_table.build(
        recent_lag=lag_status_table.recent_lag(lags),
        ownership=told.ownership,
        generations=told.generations,
        ends=told.ends,
    )
    for frame, table in ((lags, tables.LAG), (built, tables.LAG_STATUS)):
        assert frame.schema.simpleString() == StructType.fromDDL(table.ddl).simpleString()
    return {row["group_id"]: row for row in listed(built)}


@pytest.mark.parametrize("name", STORIES)
def test_a_partition_has_its_lag_status(statuses: dict[str, dict[str, Any]], name: str) -> None:
    _, status = STORIES[name]

    assert (statuses[name]["status"] if name in statuses else None) == status


def test_a_status_has_its_numbers_and_its_reason(statuses: dict[str, dict[str, Any]]) -> None:
    stopped = statuses["stopped"]

    assert (stopped["since"], stopped["committed"], stopped["log_end"]) == (300.0, 3000, 6000)
    assert (stopped["lag_records"], stopped["owner"]) == (3000, "a")
    assert stopped["reason"] == "no commit for 5 min, lag 3,000 records"


def test_lag_in_seconds_is_the_time_since_the_log_end_was_there(spark: SparkSession) -> None:
    told = build_silver(
        spark,
        behind=[L(0, "t0", 0), L(100, "t0", 1000), C(110, "t0", 500), L(120, "t0", 1000)],
        level=[L(0, "u0", 0), L(100, "u0", 1000), C(110, "u0", 1000)],
        before_all_looks=[L(50, "v0", 400), L(100, "v0", 1000), C(110, "v0", 10)],
        unseen=[C(110, "w0", 10)],
    )

    rows = listed(lag_table.build(commits=told.commits, ends=told.ends).orderBy("group_id", "at"))

    known = [(r["group_id"], r["at"], r["lag_records"], r["lag_seconds"]) for r in rows]
    assert known == [
        ("before_all_looks", 110.0, 990, None),
        ("behind", 110.0, 500, 60.0),
        ("behind", 120.0, 500, 70.0),
        ("level", 110.0, 0, 0.0),
        ("unseen", 110.0, None, None),
    ]
