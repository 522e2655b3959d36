"""Which partitions the sticky assignors keep in place, and which claims they accept."""

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations_with_replacement
from operator import add

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.types import MemberId, Topic, TopicPartition
from tests.assignors.group_samples import (
    TOPICS,
    Group,
    count_lost,
    format_assignment,
    group,
    groups,
    names,
    random_group,
    settled_groups,
    subscriber,
    sum_of_squares,
)

STICKY = ["sticky", "cooperative-sticky"]


# Moves


@pytest.mark.parametrize("name", STICKY)
@given(group=settled_groups())
def test_unchanged_group_keeps_its_assignment(name: str, group: Group) -> None:
    assignment = group.assign(name)

    assert assignment == {each.member_id: sorted(each.owned) for each in group.subscribers}


@given(group=settled_groups(are_equal=True), data=st.data())
def test_other_members_keep_their_partitions_when_one_leaves(
    group: Group, data: st.DataObject
) -> None:
    leaver = data.draw(st.sampled_from(group.subscribers))
    left = group.without(leaver.member_id)

    assignment = left.assign("sticky")

    assert count_lost(left, assignment) == 0


@given(group=settled_groups(are_equal=True))
def test_only_partitions_of_the_new_member_move(group: Group) -> None:
    topics = "".join(group.subscribers[0].topics)
    joined = group.joined_by(subscriber("newcomer", topics))

    assignment = joined.assign("sticky")

    assert count_lost(joined, assignment) == len(assignment[MemberId("newcomer")])


@given(group=groups(are_equal=True))
def test_minimum_number_of_partitions_moves(group: Group) -> None:
    owned = single_claims(group)
    assignment = owned.assign("sticky")

    loads = sorted((len(each.owned) for each in owned.subscribers), reverse=True)
    share, larger = divmod(len(owned.everything()), len(loads))
    fewest = sum(max(0, load - share - (place < larger)) for place, load in enumerate(loads))
    assert count_lost(owned, assignment) == fewest


def single_claims(group: Group) -> Group:
    """The group without claims of missing, unsubscribed or already claimed partitions."""
    claimed: set[TopicPartition] = set()
    members = []
    for each in group.subscribers:
        rightful = {p for p in each.owned if p in group.everything() and p.topic in each.topics}
        members.append(
            subscriber(each.member_id, "".join(each.topics), owned=rightful - claimed, generation=1)
        )
        claimed |= rightful
    return replace(group, subscribers=tuple(members))


# Exhaustive search

DRAWN = 250


def test_general_assignment_against_exhaustive_search() -> None:
    rng = random.Random(3)  # noqa: S311  # groups, no secrets
    moved = fewest = 0
    for _ in range(DRAWN):
        drawn = random_group(rng)
        assignment = drawn.assign("sticky")

        most_even, least_moved = search(drawn)

        assert sum_of_squares(assignment) == most_even
        if least_moved == 0:
            assert count_lost(drawn, assignment) == 0
        moved += count_lost(drawn, assignment)
        fewest += least_moved
    assert DRAWN / 4 < fewest <= moved < fewest * 1.02


def search(group: Group) -> tuple[int, int]:
    """The minimum sum of squared loads, and the minimum number of moves for it."""
    members = group.subscribers
    found = {(0,) * len(members): 0}
    for topic, count in group.partitions.items():
        owned = [
            sum(each.topic == topic for each in member.owned) if topic in member.topics else 0
            for member in members
        ]
        added: dict[tuple[int, ...], int] = {}
        for shares in ways_to_distribute(group, topic, count):
            more = sum(max(0, had - share) for had, share in zip(owned, shares, strict=True))
            for loads, moved in found.items():
                together = tuple(map(add, loads, shares))
                added[together] = min(moved + more, added.get(together, moved + more))
        found = added or found
    return min((sum(load**2 for load in loads), moved) for loads, moved in found.items())


def ways_to_distribute(group: Group, topic: Topic, count: int) -> Iterator[tuple[int, ...]]:
    places = [place for place, each in enumerate(group.subscribers) if topic in each.topics]
    if places:
        for chosen in combinations_with_replacement(places, count):
            yield tuple(chosen.count(place) for place in range(len(group.subscribers)))


# Claims


@pytest.mark.parametrize("name", STICKY)
def test_newest_generation_wins(name: str) -> None:
    here = group(
        {"a": 2},
        subscriber("m1", "a", owned=names("a0"), generation=4),
        subscriber("m2", "a", owned=names("a0 a1"), generation=5),
        subscriber("m3", "a", owned=names("a1"), generation=4),
    )

    assignment = here.assign(name)

    kept = set(assignment[MemberId("m2")])
    assert len(kept) == 1
    assert kept < set(names("a0 a1"))


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (2, 0, 1), (2, 1, 0)])
def test_conflict_of_older_claims_does_not_affect_a_newer_one(order: tuple[int, ...]) -> None:
    members = (
        subscriber("m1", "ab", owned=names("a0"), generation=4),
        subscriber("m2", "ab", owned=names("a0"), generation=4),
        subscriber("m3", "ab", owned=names("a0"), generation=5),
    )
    here = group({"a": 1, "b": 2}, *(members[place] for place in order))

    assignment = here.assign("sticky")

    assert format_assignment(assignment) == {"m1": "b0", "m2": "b1", "m3": "a0"}


def test_two_claims_of_one_generation_are_both_ignored() -> None:
    here = group(
        {"a": 2},
        subscriber("m1", "a"),
        subscriber("m2", "a", owned=names("a0"), generation=4),
        subscriber("m3", "a", owned=names("a0 a1"), generation=4),
    )

    assignment = here.assign("sticky")

    assert format_assignment(assignment) == {"m1": "a0", "m2": "", "m3": "a1"}


def test_two_claims_of_one_generation_are_revoked_first() -> None:
    here = group(
        {"a": 2},
        subscriber("m1", "a"),
        subscriber("m2", "a", owned=names("a0"), generation=4),
        subscriber("m3", "a", owned=names("a0 a1"), generation=4),
    )

    assignment = here.assign("cooperative-sticky")

    assert format_assignment(assignment) == {"m1": "", "m2": "", "m3": "a1"}


@pytest.mark.parametrize("name", STICKY)
def test_undisputed_old_claim_is_accepted(name: str) -> None:
    here = group(
        {"a": 3},
        subscriber("m1", "a", owned=names("a2"), generation=0),
        subscriber("m2", "a", owned=names("a1"), generation=9),
        subscriber("m3", "a"),
    )

    assignment = here.assign(name)

    assert format_assignment(assignment) == {"m1": "a2", "m2": "a1", "m3": "a0"}


@pytest.mark.parametrize("name", STICKY)
def test_claim_of_a_missing_partition_is_ignored(name: str) -> None:
    here = group(
        {"a": 2},
        subscriber("m1", "a", owned=names("a2 a3 b0 a-1"), generation=4),
        subscriber("m2", "a", owned=names("a0"), generation=4),
    )

    assignment = here.assign(name)

    assert format_assignment(assignment) == {"m1": "a1", "m2": "a0"}


@pytest.mark.parametrize("name", STICKY)
def test_partition_named_twice_is_one_claim(name: str) -> None:
    here = group(
        {"a": 2},
        subscriber("m1", "a", owned=names("a1 a1"), generation=4),
        subscriber("m2", "a"),
    )

    assignment = here.assign(name)

    assert format_assignment(assignment) == {"m1": "a1", "m2": "a0"}


@given(group=settled_groups(), topics=TOPICS)
def test_unsubscribed_partitions_are_reassigned(group: Group, topics: str) -> None:
    first, *others = group.subscribers
    changed = replace(first, topics=frozenset(map(Topic, topics)))
    after = replace(group, subscribers=(changed, *others))

    assignment = after.assign("sticky")

    assert {each.topic for each in assignment[first.member_id]} <= changed.topics
