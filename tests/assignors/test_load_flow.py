"""Balancing of partition counts by maximum flow."""

from collections import Counter
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from kohort.assignors.load_flow import PartitionCounts, balance


def test_partitions_move_along_a_chain() -> None:
    holdings = PartitionCounts(subscribers=[[0, 1], [1, 2]], held=[{0: 6}, {1: 2}, {}])

    balance(holdings, fixed=[{}, {}, {}])

    assert sorted(holdings.loads) == [2, 3, 3]
    assert holdings.held[2] == {1: 2}


def test_fixed_partitions_do_not_move() -> None:
    holdings = PartitionCounts(subscribers=[[0, 1], [1, 2]], held=[{0: 6}, {1: 2}, {}])

    balance(holdings, fixed=[{}, {1: 1}, {}])

    assert sorted(holdings.loads) == [1, 3, 4]
    assert holdings.held[2] == {1: 1}


def test_separate_regions_are_balanced_separately() -> None:
    holdings = PartitionCounts(subscribers=[[0, 1], [2, 3]], held=[{0: 10}, {}, {1: 4}, {}])

    balance(holdings, fixed=[{}] * 4)

    assert holdings.loads == [5, 5, 2, 2]


@dataclass(frozen=True, slots=True)
class Drawn:
    subscribers: list[list[int]]
    held: list[dict[int, int]]
    fixed: list[dict[int, int]]


@st.composite
def drawn_holdings(draw: st.DrawFn) -> Drawn:
    members = range(draw(st.integers(1, 6)))
    subscribers = [
        [member for member in members if draw(st.booleans())]
        for _ in range(draw(st.integers(1, 5)))
    ]
    held: list[dict[int, int]] = [{} for _ in members]
    fixed: list[dict[int, int]] = [{} for _ in members]
    for topic, takers in enumerate(subscribers):
        for member in takers:
            count = draw(st.integers(0, 6))
            if count:
                held[member][topic] = count
                fixed[member][topic] = draw(st.integers(0, count))
    return Drawn(subscribers, held, fixed)


def chains_down(holdings: PartitionCounts, fixed: list[dict[int, int]], source: int) -> set[int]:
    """All members that a member can give partitions to, directly or through others."""
    reached, front = {source}, [source]
    while front:
        giver = front.pop()
        for topic, count in holdings.held[giver].items():
            if count > fixed[giver].get(topic, 0):
                found = set(holdings.subscribers[topic]) - reached
                reached |= found
                front += found
    return reached


@given(drawn=drawn_holdings())
def test_no_chain_ends_at_a_member_with_two_fewer(drawn: Drawn) -> None:
    holdings = PartitionCounts(drawn.subscribers, drawn.held)

    balance(holdings, drawn.fixed)

    for member, load in enumerate(holdings.loads):
        reached = chains_down(holdings, drawn.fixed, member)
        assert load <= min(holdings.loads[each] for each in reached) + 1


@given(drawn=drawn_holdings())
def test_partition_counts_and_fixed_partitions_are_kept(drawn: Drawn) -> None:
    holdings = PartitionCounts(drawn.subscribers, drawn.held)

    balance(holdings, drawn.fixed)

    for member, held in enumerate(holdings.held):
        assert all(held.get(topic, 0) >= count for topic, count in drawn.fixed[member].items())
        assert all(count > 0 and member in drawn.subscribers[t] for t, count in held.items())
        assert holdings.loads[member] == sum(held.values())
    assert count_by_topic(holdings.held) == count_by_topic(drawn.held)


def count_by_topic(held: list[dict[int, int]]) -> Counter[int]:
    return sum((Counter(each) for each in held), Counter())
