"""Who began a rebalance and what it cost, from generations and commits, and from events."""

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from kohort.pipeline.forensics import tables
from kohort.pipeline.forensics.gold import rebalances
from tests.pipeline.forensics.stories import C, D, G, M, P, R, Row, S, Told, beats, listed, tell

A, B, C_ = M("a", "t0"), M("b", "t1"), M("c", "t2")
AB = G(0, 1, M("a", "t0 t2"), M("b", "t1 t3"))
FOUR = "t0 t1 t2 t3"
COOPERATIVE = "cooperative-sticky"


def silent(member: M, for_: float, *others: M, then: G, before: float = 60) -> list[Row]:
    """Everybody commits for a minute, then only the others do, until the next generation."""
    rows: list[Row] = [G(0, 1, member, *others), *beats(5, before, every=5, of=member.got)]
    for other in others:
        rows += beats(5, before + for_, every=5, of=other.got)
    then.at = before + for_ + 1
    return [*rows, then]


CAUSES: dict[str, tuple[list[Row], str | None, str | None]] = {
    "the first to come leads": ([G(0, 1, A, B, leader="b")], "member-joined", "b"),
    "nobody was there": ([G(0, 1, A), G(5, 2), G(9, 3, B)], "member-joined", "b"),
    "begins in the middle": ([G(0, 7, A)], None, None),
    "somebody is new": ([G(0, 1, A), G(60, 2, A, B)], "member-joined", "b"),
    "left": (silent(B, 2, A, then=G(0, 2, M("a", "t0 t1"))), "member-left", "b"),
    "left and came back": (silent(B, 2, A, then=G(0, 2, A, M("b2", "t1"))), "member-left", "b"),
    "session expired": (silent(B, 10, A, then=G(0, 2, M("a", "t0 t1"))), "session-expired", "b"),
    "did not poll": (silent(B, 60, A, then=G(0, 2, M("a", "t0 t1"))), "member-left", "b"),
    "an instance was removed": (
        silent(M("b", "t1", instance="rack"), 2, A, then=G(0, 2, M("a", "t0 t1"))),
        "member-removed",
        "b",
    ),
    "restarted before its session was over": (
        # a stops at once, for it heard of a join; then all wait for b's session to end.
        [G(0, 1, A, B), *beats(5, 60, every=5, of="t0 t1"), G(71, 2, A, M("b2", "t1"))],
        "member-joined",
        "b2",
    ),
    "never asked for its part": (
        [G(0, 1, A, M("b", "t1", session=90)), *beats(5, 60, every=5, of="t0"), G(62, 2, A)],
        "sync-expired",
        "b",
    ),
    "wants another topic": (
        [G(0, 1, A, B), G(60, 2, A, M("b", "t1", topics="t u"))],
        "subscription-changed",
        "b",
    ),
    "the leader wants another topic": (
        [G(0, 1, A, B), G(60, 2, M("a", "t0", topics="t u"), B)],
        "leader-rejoined",
        "a",
    ),
    "gave up partitions": (
        [
            G(0, 1, A, M("b", "t1", owned="t1 t2"), M("c"), protocol=COOPERATIVE),
            G(3, 2, A, B, C_, protocol=COOPERATIVE),
        ],
        "subscription-changed",
        "b",
    ),
    "an instance turned the protocol": (
        [
            G(0, 1, A, M("b", "t1", instance="rack")),
            G(60, 2, A, M("b2", "t1", instance="rack"), protocol="roundrobin"),
        ],
        "protocol-changed",
        "b2",
    ),
    "an instance restarted in between": (
        [G(0, 1, A, M("b", "t1", instance="r")), G(60, 3, A, M("b2", "t1", instance="r"))],
        "instance-restarted",
        "b2",
    ),
    "nothing has changed": ([G(0, 1, A, B), G(60, 2, A, B)], "leader-rejoined", "a"),
}

COSTS: dict[str, list[Row]] = {
    "moved to who is new": [AB, G(60, 2, M("a", "t0"), M("b", "t1"), M("c", "t2 t3"))],
    "dealt anew for nothing": [AB, G(60, 2, M("a", "t1 t3"), M("b", "t0 t2"))],
    "in two steps": [
        G(0, 1, M("a", "t0 t1 t2 t3"), protocol=COOPERATIVE),
        G(60, 2, M("a", "t0 t1", owned="t0 t1 t2 t3"), M("b"), protocol=COOPERATIVE),
        G(64, 3, M("a", "t0 t1", owned="t0 t1"), M("b", "t2 t3"), protocol=COOPERATIVE),
    ],
    "an instance is itself": [
        G(0, 1, M("a", "t0", instance="x"), B),
        G(9, 1, M("a2", "t0", instance="x"), B),
        G(60, 2, M("a2", "t0", instance="x"), B),
    ],
    "empty in between": [AB, G(60, 2), G(99, 3, M("c", FOUR))],
    "read again": [
        AB,
        *beats(5, 60, every=5, of=FOUR),
        G(63, 2, M("a", FOUR)),
        C(70, "t1", 580),
        C(70, "t3", 700),
    ],
    "made anew": [AB, D(60), G(70, 1, M("c", FOUR))],
}

TOLD: dict[str, list[Row]] = {
    "stable": [
        AB,
        S(60, 1, "member-left", M("b"), "the consumer is being closed"),
        G(64, 2, M("a", FOUR)),
        R(
            64.5,
            2,
            "member-left",
            M("b"),
            P(M("a", FOUR), 4, "t0 t2"),
            started=60,
            reason="the consumer is being closed",
            out=[(M("b"), "left")],
        ),
    ],
    "interrupted": [
        AB,
        S(60, 1, "leader-rejoined", A),
        R(62, 2, "leader-rejoined", A, P(A, 1), P(B, 2), started=60, ending="interrupted"),
        S(62, 2, "member-joined", C_),
        G(65, 3, A, B, C_),
        R(65, 3, "member-joined", C_, P(A, 1), P(B, 2), P(C_), started=62),
    ],
    "emptied": [
        G(0, 1, A),
        S(9, 1, "session-expired", A),
        G(9, 2),
        R(9, 2, "session-expired", A, started=9, ending="empty", out=[(A, "session-expired")]),
    ],
    "cut off, then under way": [
        AB,
        S(60, 1, "member-joined", C_),
        S(99, 1, "member-left", B),
    ],
}


@pytest.fixture(scope="module")
def known(spark: SparkSession) -> dict[str, list[dict[str, Any]]]:
    causes = {name: rows for name, (rows, _, _) in CAUSES.items()}
    rows = listed(build(tell(spark, {**causes, **COSTS, **TOLD})).orderBy("started_at", "ended_at"))
    return {
        name: sorted(
            (row for row in rows if row["group_id"] == name),
            key=lambda row: (
                row["ended_at"] is None,
                max(row["ended_at"] or 0, row["started_at"] or 0),
            ),
        )
        for name in (*CAUSES, *COSTS, *TOLD)
    }


def build(told: Told) -> DataFrame:
    return rebalances.build(
        generations=told.generations,
        ownership=told.ownership,
        stints=told.stints,
        group_events=told.group_events,
    )


Known = dict[str, list[dict[str, Any]]]


@pytest.mark.parametrize("name", CAUSES)
def test_a_cause_is_inferred_from_two_generations(known: Known, name: str) -> None:
    _, trigger, culprit = CAUSES[name]

    last = known[name][-1]

    assert last["trigger"] == trigger
    assert (last["culprit"] and last["culprit"]["member_id"]) == culprit
    assert not last["is_exact"]
    assert (last["confidence"] == 0) == (trigger is None)


@pytest.mark.parametrize(
    ("name", "moved", "needlessly"),
    [
        ("moved to who is new", [0, 2], [0, 1]),
        ("dealt anew for nothing", [0, 4], [0, 4]),
        ("in two steps", [0, 0, 2], [0, 0, 0]),
        ("an instance is itself", [0, 0], [0, 0]),
        ("empty in between", [0, 0, 0], [0, 0, 0]),
        ("made anew", [0, 0], [0, 0]),
    ],
)
def test_partitions_that_moved_are_counted(
    known: Known, name: str, moved: list[int], needlessly: list[int]
) -> None:
    assert [row["moved"] for row in known[name]] == moved
    assert [row["moved_needlessly"] for row in known[name]] == needlessly


def test_time_without_an_owner_is_that_of_the_gaps(known: Known) -> None:
    assert [row["ownerless_partition_ms"] for row in known["in two steps"]] == [0, 0, 2 * 4000]
    assert known["stable"][-1]["ownerless_partition_ms"] == 4 * 4000
    assert known["empty in between"][-1]["ownerless_partition_ms"] == 0


def test_records_are_read_again_where_the_new_owner_commits_less(known: Known) -> None:
    first, second = known["read again"]

    assert first["replayed"] is None
    assert second["replayed"] == 600 - 580


def test_a_deleted_group_begins_anew(known: Known) -> None:
    assert [row["generation_before"] for row in known["made anew"]] == [None, None]


def test_events_are_believed(known: Known) -> None:
    (_, told) = known["stable"]

    assert (told["is_exact"], told["confidence"]) == (True, 1.0)
    assert (told["started_at"], told["ended_at"], told["duration_ms"]) == (60.0, 64.5, 4500)
    assert (told["join_ms"], told["sync_ms"]) == (4000, 500)
    assert told["client_reason"] == "the consumer is being closed"
    assert (told["slowest"]["member_id"], told["slowest_join_ms"]) == ("a", 4000)
    assert [party["member_id"] for party in told["departed"]] == ["b"]
    assert (told["members_before"], told["members_after"], told["moved"]) == (2, 1, 2)


def test_every_end_of_a_rebalance_has_its_row(known: Known) -> None:
    interrupted = [(r["generation"], r["ending"], r["trigger"]) for r in known["interrupted"][1:]]
    emptied = [(r["generation"], r["ending"], r["members_after"]) for r in known["emptied"][1:]]
    cut_off = [(r["started_at"], r["ending"]) for r in known["cut off, then under way"][1:]]

    assert interrupted == [(2, "interrupted", "leader-rejoined"), (3, "stable", "member-joined")]
    assert emptied == [(2, "empty", 0)]
    assert cut_off == [(60.0, "abandoned"), (99.0, None)]


def test_the_table_has_exactly_its_columns(spark: SparkSession) -> None:
    schema = StructType.fromDDL(tables.REBALANCES.ddl)

    assert build(tell(spark)).schema.simpleString() == schema.simpleString()
