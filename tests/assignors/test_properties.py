"""Properties of every assignment, for any group and any claims of its members."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.assignors import BUILT_IN
from tests.assignors.group_samples import Group, assigned, format_assignments, groups, is_valid
from tests.tidy.repository import ROOT

EAGER = ["range", "roundrobin", "sticky"]
every_assignor = pytest.mark.parametrize("name", BUILT_IN)


@pytest.mark.parametrize("name", EAGER)
@given(group=groups())
def test_every_partition_is_assigned_to_one_subscriber(name: str, group: Group) -> None:
    assignment = group.assign(name)

    assert is_valid(group, assignment)
    assert assigned(assignment) == group.everything()


@given(group=groups())
def test_only_claimed_partitions_are_withheld(group: Group) -> None:
    assignment = group.assign("cooperative-sticky")

    assert is_valid(group, assignment)
    claimed = {each for member in group.subscribers for each in member.owned}
    assert assigned(assignment) <= group.everything() <= assigned(assignment) | claimed


@every_assignor
@given(group=groups(), data=st.data())
def test_assignment_does_not_depend_on_input_order(
    name: str, group: Group, data: st.DataObject
) -> None:
    topics = data.draw(st.permutations(list(group.partitions)))
    members = data.draw(st.permutations(group.subscribers))
    shuffled = Group(
        partitions={topic: group.partitions[topic] for topic in topics},
        subscribers=tuple(replace(each, owned=each.owned[::-1]) for each in members),
    )

    assert shuffled.assign(name) == group.assign(name)


@every_assignor
@given(group=groups())
def test_partitions_of_a_member_are_sorted(name: str, group: Group) -> None:
    assignment = group.assign(name)

    assert all(partitions == sorted(partitions) for partitions in assignment.values())


def test_assignments_do_not_depend_on_the_hash_seed() -> None:
    decoded = [assignments_with_hash_seed(hash_seed) for hash_seed in (1, 2, 3)]

    assert decoded[0] == decoded[1] == decoded[2]
    assert decoded[0].splitlines() == list(format_assignments(seed=7, count=100))


def assignments_with_hash_seed(hash_seed: int) -> str:
    finished = subprocess.run(
        [sys.executable, "-m", "tests.assignors.group_samples"],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        check=True,
        encoding="utf-8",
    )
    return finished.stdout


@given(group=groups())
def test_range_assigns_contiguous_runs_that_differ_by_one(group: Group) -> None:
    assignment = group.assign("range")

    for topic, count in group.partitions.items():
        takers = [each.member_id for each in group.subscribers if topic in each.topics]
        runs = [[each.partition for each in assignment[m] if each.topic == topic] for m in takers]
        assert all(run == list(range(run[0], run[0] + len(run))) for run in runs if run)
        assert not runs or count // len(runs) <= min(map(len, runs))
        assert not runs or max(map(len, runs)) <= -(-count // len(runs))


@pytest.mark.parametrize("name", ["roundrobin", "sticky"])
@given(group=groups(are_equal=True))
def test_equal_subscriptions_get_balanced_counts(name: str, group: Group) -> None:
    loads = [len(partitions) for partitions in group.assign(name).values()]

    assert max(loads) - min(loads) <= 1


@given(group=groups())
def test_no_single_move_improves_the_balance(group: Group) -> None:
    assignment = group.assign("sticky")

    loads = {member_id: len(partitions) for member_id, partitions in assignment.items()}
    for member_id, partitions in assignment.items():
        for topic in {each.topic for each in partitions}:
            takers = [each.member_id for each in group.subscribers if topic in each.topics]
            assert loads[member_id] <= min(loads[taker] for taker in takers) + 1
