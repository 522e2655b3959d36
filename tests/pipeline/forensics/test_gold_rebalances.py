"""The initiators and costs of rebalances, inferred and from events."""

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from kohort.pipeline.forensics import tables
from kohort.pipeline.forensics.gold import rebalances_table
from tests.pipeline.forensics.row_histories import (
    C,
    D,
    G,
    M,
    P,
    R,
    Row,
    S,
    SilverTables,
    beats,
    build_silver,
    listed,
)

A, B, C_ = M("a", "t0"), M("b", "t1"), M("c", "t2")
AB = G(0, 1, M("a", "t0 t2"), M("b", "t1 t3"))
FOUR = "t0 t1 t2 t3"
COOPERATIVE = "cooperative-sticky"


def silent(member: M, for_: float, *others: M, then: G, before: float = 60) -> list[Row]:
    """All members commit for a minute, then only the others, until the next generation."""
    rows: list[Row] = [G(0, 1, member, *others), *beats(5, before, every=5, of=member.got)]
    for other in others:
        rows += beats(5, before + for_, every=5, of=other.got)
    then.at = before + for_ + 1
    return [*rows, then]


CAUSES: dict[str, tuple[list[Row], str | None, str | None]] = {
    "the first member is the leader": ([G(0, 1, A, B, leader="b")], "member-joined", "b"),
    "the group was empty": ([G(0, 1, A), G(5, 2), G(9, 3, B)], "member-joined", "b"),
    "the history starts in the middle": ([G(0, 7, A)], None, None),
    "a member is new": ([G(0, 1, A), G(60, 2, A, B)], "member-joined", "b"),
    "left": (silent(B, 2, A, then=G(0, 2, M("a", "t0 t1"))), "member-left", "b"),
    "left and rejoined": (silent(B, 2, A, then=G(0, 2, A, M("b2", "t1"))), "member-left", "b"),
    "session expired": (silent(B, 10, A, then=G(0, 2, M("a", "t0 t1"))), "session-expired", "b"),
    "did not poll": (silent(B, 60, A, then=G(0, 2, M("a", "t0 t1"))), "member-left", "b"),
    "a static member was removed": (
        silent(M("b", "t1", instance="rack"), 2, A, then=G(0, 2, M("a", "t0 t1"))),
        "member-removed",
        "b",
    ),
    "restarted before its session expired": (
        # a stops because of the join; then the group waits until b's session expires.
        [G(0, 1, A, B), *beats(5, 60, every=5, of="t0 t1"), G(71, 2, A, M("b2", "t1"))],
        "member-joined",
        "b2",
    ),
    "never synced": (
        [G(0, 1, A, M("b", "t1", session=90)), *beats(5, 60, every=5, of="t0"), G(62, 2, A)],
        "sync-expired",
        "b",
    ),
    "subscription changed": (
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
    "a static member restarted in between": (
        [G(0, 1, A, M("b", "t1", instance="r")), G(60, 3, A, M("b2", "t1", instance="r"))],
        "instance-restarted",
        "b2",
    ),
    "nothing has changed": ([G(0, 1, A, B), G(60, 2, A, B)], "leader-rejoined", "a"),
}

COSTS: dict[str, list[Row]] = {
    "moved to a new member": [AB, G(60, 2, M("a", "t0"), M("b", "t1"), M("c", "t2 t3"))],
    "reassigned needlessly": [AB, G(60, 2, M("a", "t1 t3"), M("b", "t0 t2"))],
    "in two steps": [
        G(0, 1, M("a", "t0 t1 t2 t3"), protocol=COOPERATIVE),
        G(60, 2, M("a", "t0 t1", owned="t0 t1 t2 t3"), M("b"), protocol=COOPERATIVE),
        G(64, 3, M("a", "t0 t1", owned="t0 t1"), M("b", "t2 t3"), protocol=COOPERATIVE),
    ],
    "a static member restarted": [
        G(0, 1, M("a", "t0", instance="x"), B),
        G(9, 1, M("a2", "t0", instance="x"), B),
        G(60, 2, M("a2", "t0", instance="x"), B),
    ],
    "empty in between": [AB, G(60, 2), G(99, 3, M("c", FOUR))],
    "replayed": [
        AB,
        *beats(5, 60, every=5, of=FOUR),
        G(63, 2, M("a", FOUR)),
        C(70, "t1", 580),
        C(70, "t3", 700),
    ],
    "deleted and created again": [AB, D(60), G(70, 1, M("c", FOUR))],
}

RECORDED: dict[str, list[Row]] = {
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
    "abandoned, then in progress": [
        AB,
        S(60, 1, "member-joined", C_),
        S(99, 1, "member-left", B),
    ],
}


@pytest.fixture(scope="module")
def known(spark: SparkSession) -> dict[str, list[dict[str, Any]]]:
    causes = {name: rows for name, (rows, _, _) in CAUSES.items()}
    rows = listed(
        build(build_silver(spark, {**causes, **COSTS, **RECORDED})).orderBy(
            "started_at", "ended_at"
        )
    )
    return {
        name: sorted(
            (row for row in rows if row["group_id"] == name),
            key=lambda row: (
                row["ended_at"] is None,
                max(row["ended_at"] or 0, row["started_at"] or 0),
            ),
        )
        for name in (*CAUSES, *COSTS, *RECORDED)
    }


def build(recorded: SilverTables) -> DataFrame:
    return rebalances_table.build(
        generations=recorded.generations,
        ownership=recorded.ownership,
        commit_runs=recorded.commit_runs,
        group_events=recorded.group_events,
    )


Known = dict[str, list[dict[str, Any]]]


@pytest.mark.parametrize("name", CAUSES)
def test_a_cause_is_inferred_from_two_generations(known: Known, name: str) -> None:
    _, trigger, initiator = CAUSES[name]

    last = known[name][-1]

    assert last["trigger"] == trigger
    assert (last["initiator"] and last["initiator"]["member_id"]) == initiator
    assert not last["is_exact"]
    assert (last["confidence"] == 0) == (trigger is None)


@pytest.mark.parametrize(
    ("name", "moved", "needlessly"),
    [
        ("moved to a new member", [0, 2], [0, 1]),
        ("reassigned needlessly", [0, 4], [0, 4]),
        ("in two steps", [0, 0, 2], [0, 0, 0]),
        ("a static member restarted", [0, 0], [0, 0]),
        ("empty in between", [0, 0, 0], [0, 0, 0]),
        ("deleted and created again", [0, 0], [0, 0]),
    ],
)
def test_partitions_that_moved_are_counted(
    known: Known, name: str, moved: list[int], needlessly: list[int]
) -> None:
    assert [row["moved"] for row in known[name]] == moved
    assert [row["moved_needlessly"] for row in known[name]] == needlessly


def test_time_without_owner_is_the_sum_of_the_gaps(known: Known) -> None:
    assert [row["ownerless_partition_ms"] for row in known["in two steps"]] == [0, 0, 2 * 4000]
    assert known["stable"][-1]["ownerless_partition_ms"] == 4 * 4000
    assert known["empty in between"][-1]["ownerless_partition_ms"] == 0


def test_records_are_replayed_if_the_new_owner_starts_lower(known: Known) -> None:
    first, second = known["replayed"]

    assert first["replayed"] is None
    assert second["replayed"] == 600 - 580


def test_a_deleted_group_starts_again(known: Known) -> None:
    assert [row["generation_before"] for row in known["deleted and created again"]] == [None, None]


def test_events_take_precedence(known: Known) -> None:
    (_, recorded) = known["stable"]

    assert (recorded["is_exact"], recorded["confidence"]) == (True, 1.0)
    assert (recorded["started_at"], recorded["ended_at"], recorded["duration_ms"]) == (
        60.0,
        64.5,
        4500,
    )
    assert (recorded["join_ms"], recorded["sync_ms"]) == (4000, 500)
    assert recorded["client_reason"] == "the consumer is being closed"
    assert (recorded["slowest"]["member_id"], recorded["slowest_join_ms"]) == ("a", 4000)
    assert [party["member_id"] for party in recorded["departed"]] == ["b"]
    assert (recorded["members_before"], recorded["members_after"], recorded["moved"]) == (2, 1, 2)


def test_every_result_of_a_rebalance_has_its_row(known: Known) -> None:
    interrupted = [(r["generation"], r["ending"], r["trigger"]) for r in known["interrupted"][1:]]
    emptied = [(r["generation"], r["ending"], r["members_after"]) for r in known["emptied"][1:]]
    cut_off = [(r["started_at"], r["ending"]) for r in known["abandoned, then in progress"][1:]]

    assert interrupted == [(2, "interrupted", "leader-rejoined"), (3, "stable", "member-joined")]
    assert emptied == [(2, "empty", 0)]
    assert cut_off == [(60.0, "abandoned"), (99.0, None)]


def test_the_table_has_exactly_its_columns(spark: SparkSession) -> None:
    schema = StructType.fromDDL(tables.REBALANCES.ddl)

    assert build(build_silver(spark)).schema.simpleString() == schema.simpleString()
