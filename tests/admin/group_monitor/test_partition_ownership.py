"""Partition owners over time, derived from rebalances."""

from kohort.admin.group_monitor import ClusterState
from kohort.admin.group_monitor.partition_ownership import find_moves, ownership_intervals
from kohort.types import Millis
from tests.admin.group_monitor.cluster_records import (
    BILLING,
    NOW,
    at,
    fold_event,
    fold_generation,
    rebalance_ended,
)


def intervals(state: ClusterState) -> list[tuple[str, int, int | None, int | None]]:
    view = state.find_group(BILLING, NOW)
    assert view is not None
    return sorted(
        (each.party.member_id, each.partition.partition, each.from_ms, each.to_ms)
        for each in ownership_intervals(view.rebalances)
    )


def test_an_owner_that_keeps_its_partition_has_one_interval() -> None:
    state = ClusterState()
    fold_event(state, rebalance_ended(1, {"a": ((), (0, 1))}, ms=NOW - 9000))

    fold_event(
        state,
        rebalance_ended(2, {"a": ((0, 1), (0,)), "b": ((), (1,))}, ms=NOW - 5000, took_ms=1000),
    )

    assert intervals(state) == [
        ("a", 0, NOW - 9000, None),
        ("a", 1, NOW - 9000, NOW - 6000),
        ("b", 1, NOW - 5000, None),
    ]


def test_ownership_before_the_first_known_rebalance_has_no_start() -> None:
    state = ClusterState()

    fold_event(state, rebalance_ended(7, {"a": ((0, 1), (0,)), "b": ((), (1,))}, took_ms=1000))

    assert intervals(state) == [
        ("a", 0, None, None),
        ("a", 1, None, NOW - 1000),
        ("b", 1, NOW, None),
    ]


def test_an_interrupted_rebalance_moves_nothing() -> None:
    state = ClusterState()
    fold_event(state, rebalance_ended(1, {"a": ((), (0,))}, ms=NOW - 9000))

    fold_event(state, rebalance_ended(2, {"a": ((0,), ())}, ms=NOW - 5000, ending="interrupted"))

    assert intervals(state) == [("a", 0, NOW - 9000, None)]


def test_an_empty_group_ends_all_intervals() -> None:
    state = ClusterState()
    fold_event(state, rebalance_ended(1, {"a": ((), (0,))}, ms=NOW - 9000))

    fold_event(state, rebalance_ended(2, {}, ms=NOW - 5000, took_ms=0, ending="empty"))

    assert intervals(state) == [("a", 0, NOW - 9000, NOW - 5000)]


def test_without_events_an_interval_ends_when_the_next_generation_is_formed() -> None:
    state = ClusterState()
    fold_generation(state, 1, {"a": (0, 1)}, ms=NOW - 9000)

    fold_generation(state, 2, {"a": (0,), "b": (1,)}, ms=NOW - 5000)

    assert intervals(state) == [
        ("a", 0, NOW - 9000, None),
        ("a", 1, NOW - 9000, NOW - 5000),
        ("b", 1, NOW - 5000, None),
    ]


def test_a_static_member_that_restarts_is_the_same_owner() -> None:
    state = ClusterState()
    fold_generation(state, 1, {"a": (0,)}, ms=NOW - 9000, instances={"a": "rack-1"})

    fold_generation(state, 2, {"b": (0,)}, ms=NOW - 5000, instances={"b": "rack-1"})

    ((_, _, since, until),) = intervals(state)
    assert (since, until) == (NOW - 9000, None)


def test_moves_are_partitions_whose_owner_changed() -> None:
    state = ClusterState()
    fold_event(state, rebalance_ended(2, {"a": ((0, 1, 2), (0,)), "b": ((), (1, 2))}))
    found = state.find_rebalance(BILLING, str(NOW - 500))
    assert found is not None

    moves = find_moves(found)

    assert [each.partition for each in moves] == [at(1), at(2)]
    assert {each.after and each.after.member_id for each in moves} == {"b"}
    assert Millis(NOW) == found.ended_ms
