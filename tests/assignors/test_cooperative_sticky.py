"""No partition has two owners: the old owner revokes it before the new one gets it."""

from hypothesis import given
from hypothesis import strategies as st

from kohort.assignors import Assignment
from kohort.types import MemberId, TopicPartition
from tests.assignors.group_samples import (
    Group,
    assigned,
    count_lost,
    format_assignment,
    group,
    groups,
    names,
    settled_groups,
    subscriber,
    sum_of_squares,
)

COOPERATIVE = "cooperative-sticky"


def newest_claims(group: Group, partition: TopicPartition) -> list[MemberId]:
    claims = [each for each in group.subscribers if partition in each.owned]
    newest = max((each.generation for each in claims), default=None)
    return [each.member_id for each in claims if each.generation == newest]


def is_safe(group: Group, assignment: Assignment) -> bool:
    """Whether no member gets a partition that another one claims in the newest generation."""
    return all(
        newest_claims(group, each) in ([], [member_id])
        for member_id, partitions in assignment.items()
        for each in partitions
    )


def test_moved_partition_is_unassigned_in_the_first_rebalance() -> None:
    first = group(
        {"a": 4},
        subscriber("m1", "a", owned=names("a0 a1 a2 a3"), generation=1),
        subscriber("m2", "a"),
    )

    one = first.assign(COOPERATIVE)
    two = first.rejoined(one, generation=2).assign(COOPERATIVE)

    assert format_assignment(one) == {"m1": "a0 a1", "m2": ""}
    assert format_assignment(two) == {"m1": "a0 a1", "m2": "a2 a3"}


def test_unsubscribed_partition_is_revoked_first() -> None:
    first = group(
        {"a": 2},
        subscriber("m1", "b", owned=names("a0"), generation=1),
        subscriber("m2", "a", owned=names("a1"), generation=1),
    )

    one = first.assign(COOPERATIVE)
    two = first.rejoined(one, generation=2).assign(COOPERATIVE)

    assert format_assignment(one) == {"m1": "", "m2": "a1"}
    assert format_assignment(two) == {"m1": "", "m2": "a0 a1"}


def test_outdated_claim_does_not_withhold_a_partition() -> None:
    here = group(
        {"a": 2},
        subscriber("m1", "a", owned=names("a0"), generation=3),
        subscriber("m2", "a", owned=names("a0"), generation=4),
    )

    assignment = here.assign(COOPERATIVE)

    assert format_assignment(assignment) == {"m1": "a1", "m2": "a0"}


@given(group=groups())
def test_two_rebalances_suffice_without_shared_ownership(group: Group) -> None:
    one = group.assign(COOPERATIVE)
    second = group.rejoined(one, generation=10)
    two = second.assign(COOPERATIVE)
    third = second.rejoined(two, generation=11)
    three = third.assign(COOPERATIVE)

    assert is_safe(group, one)
    assert is_safe(second, two)
    assert assigned(two) == group.everything()
    assert three == two


@given(group=groups())
def test_second_rebalance_revokes_nothing(group: Group) -> None:
    second = group.rejoined(group.assign(COOPERATIVE), generation=10)

    assignment = second.assign(COOPERATIVE)

    assert count_lost(second, assignment) == 0


@given(group=groups())
def test_final_balance_equals_the_sticky_assignor(group: Group) -> None:
    second = group.rejoined(group.assign(COOPERATIVE), generation=10)

    assignment = second.assign(COOPERATIVE)

    assert sum_of_squares(assignment) == sum_of_squares(group.assign("sticky"))


@given(group=settled_groups(), data=st.data())
def test_partitions_of_a_left_member_are_assigned_immediately(
    group: Group, data: st.DataObject
) -> None:
    leaver = data.draw(st.sampled_from(group.subscribers))
    left = group.without(leaver.member_id)

    assignment = left.assign(COOPERATIVE)

    assert set(leaver.owned) & left.everything() <= assigned(assignment)
