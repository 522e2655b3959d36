"""Nothing is read by two members at once: what changes hands is first given up, then given."""

from hypothesis import given
from hypothesis import strategies as st

from kohort.client.assignors import Assignment
from kohort.client.topic_partition import TopicPartition
from kohort.types import MemberId
from tests.client.assignor_groups import (
    Group,
    assigned,
    group,
    groups,
    lost,
    names,
    settled_groups,
    spell,
    squares,
    subscriber,
)

COOPERATIVE = "cooperative-sticky"


def newest_claims(group: Group, partition: TopicPartition) -> list[MemberId]:
    claims = [each for each in group.subscribers if partition in each.owned]
    newest = max((each.generation for each in claims), default=None)
    return [each.member_id for each in claims if each.generation == newest]


def is_safe(group: Group, assignment: Assignment) -> bool:
    """Whether nobody is given what another member holds by a claim as good as its own."""
    return all(
        newest_claims(group, each) in ([], [member_id])
        for member_id, partitions in assignment.items()
        for each in partitions
    )


def test_what_changes_hands_is_given_to_nobody_and_then_to_its_new_owner() -> None:
    first = group(
        {"a": 4},
        subscriber("m1", "a", owned=names("a0 a1 a2 a3"), generation=1),
        subscriber("m2", "a"),
    )

    one = first.assign(COOPERATIVE)
    two = first.rejoined(one, generation=2).assign(COOPERATIVE)

    assert spell(one) == {"m1": "a0 a1", "m2": ""}
    assert spell(two) == {"m1": "a0 a1", "m2": "a2 a3"}


def test_what_a_member_subscribes_to_no_more_it_must_first_give_up() -> None:
    first = group(
        {"a": 2},
        subscriber("m1", "b", owned=names("a0"), generation=1),
        subscriber("m2", "a", owned=names("a1"), generation=1),
    )

    one = first.assign(COOPERATIVE)
    two = first.rejoined(one, generation=2).assign(COOPERATIVE)

    assert spell(one) == {"m1": "", "m2": "a1"}
    assert spell(two) == {"m1": "", "m2": "a0 a1"}


def test_what_its_owner_keeps_is_not_withheld_for_a_stale_claim() -> None:
    here = group(
        {"a": 2},
        subscriber("m1", "a", owned=names("a0"), generation=3),
        subscriber("m2", "a", owned=names("a0"), generation=4),
    )

    assignment = here.assign(COOPERATIVE)

    assert spell(assignment) == {"m1": "a1", "m2": "a0"}


@given(group=groups())
def test_two_rounds_are_enough_and_no_partition_ever_has_two_owners(group: Group) -> None:
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
def test_nobody_gives_up_anything_in_the_second_round(group: Group) -> None:
    second = group.rejoined(group.assign(COOPERATIVE), generation=10)

    assignment = second.assign(COOPERATIVE)

    assert lost(second, assignment) == 0


@given(group=groups())
def test_in_the_end_it_is_as_even_as_the_eager_one(group: Group) -> None:
    second = group.rejoined(group.assign(COOPERATIVE), generation=10)

    assignment = second.assign(COOPERATIVE)

    assert squares(assignment) == squares(group.assign("sticky"))


@given(group=settled_groups(), data=st.data())
def test_when_a_member_leaves_nothing_of_its_waits_for_a_second_round(
    group: Group, data: st.DataObject
) -> None:
    leaver = data.draw(st.sampled_from(group.subscribers))
    left = group.without(leaver.member_id)

    assignment = left.assign(COOPERATIVE)

    assert set(leaver.owned) & left.everything() <= assigned(assignment)
