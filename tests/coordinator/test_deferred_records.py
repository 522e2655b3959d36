"""Records of deferrable outcomes may be applied later: no reply, timer or state changes by it."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.coordinator.commands import (
    Command,
    CommitOffsets,
    Heartbeat,
    OffsetColumns,
    OffsetToCommit,
    PartitionColumns,
    Ticket,
)
from kohort.coordinator.coordinator import Coordinator
from kohort.coordinator.groups.classic.states import GroupState
from kohort.coordinator.outcome import Outcome
from kohort.coordinator.records import Record
from kohort.types import (
    ZERO_UUID,
    Generation,
    GroupId,
    InstanceId,
    MemberId,
    Millis,
    Offset,
    Partition,
    Topic,
)
from tests.coordinator.group_states import GROUP, GroupInState

ABSENT = GroupId("absent")

PLACES = PartitionColumns((Topic("t1"),) * 2, (Partition(0), Partition(1)), (ZERO_UUID,) * 2)

numbers = st.integers(0, 99).map(Offset)
offsets_to_commit = st.builds(
    OffsetToCommit,
    topic=st.sampled_from(["t1", "t2"]).map(Topic),
    partition=st.integers(0, 1).map(Partition),
    offset=numbers,
    metadata=st.sampled_from(["", "event", "x" * 5_000]),
)
columns = st.builds(
    OffsetColumns,
    partition_columns=st.just(PLACES),
    offsets=st.tuples(numbers, numbers),
    leader_epochs=st.just((-1, -1)),
)
tickets = st.integers(1_000, 9_999).map(Ticket)
group_ids = st.sampled_from([GROUP, GROUP, GROUP, ABSENT])
member_ids = st.sampled_from(["leader-4", "follower-5", "static-6", "unknown", ""]).map(MemberId)
instance_ids = st.sampled_from([None, None, None, InstanceId("i")])
generations = st.sampled_from([1, 1, 1, 2, 0, -1]).map(Generation)

commits = st.builds(
    CommitOffsets,
    ticket=tickets,
    group_id=group_ids,
    member_id=member_ids,
    instance_id=instance_ids,
    generation=generations,
    offsets=st.one_of(st.lists(offsets_to_commit, min_size=1, max_size=3).map(tuple), columns),
    retention_ms=st.sampled_from([None, None, Millis(5_000)]),
)
heartbeats = st.builds(
    Heartbeat,
    ticket=tickets,
    group_id=group_ids,
    member_id=member_ids,
    instance_id=instance_ids,
    generation=generations,
)
commands = st.lists(st.one_of(commits, commits, heartbeats), max_size=12)


def decide_and_apply_each(
    coordinator: Coordinator, asked: list[Command], now: Millis
) -> list[Outcome]:
    outcomes = []
    for command in asked:
        outcome = coordinator.decide(command, now)
        coordinator.apply_all(outcome.records)
        outcomes.append(outcome)
    return outcomes


def decide_and_defer(coordinator: Coordinator, asked: list[Command], now: Millis) -> list[Outcome]:
    """Defer what may be deferred; a record that may not is appended after the deferred ones."""
    outcomes = []
    deferred: list[Record] = []
    for command in asked:
        assert not command.sees_deferred
        outcome = coordinator.decide(command, now)
        outcomes.append(outcome)
        deferred += outcome.records
        if not outcome.is_deferrable:
            coordinator.apply_all(deferred)
            deferred = []
    coordinator.apply_all(deferred)
    return outcomes


@given(st.sampled_from(GroupState), commands)
def test_applying_deferred_records_at_the_end_gives_the_same_replies_and_state(
    state: GroupState, asked: list[Command]
) -> None:
    at_once, deferring = GroupInState(state).crowd.driver, GroupInState(state).crowd.driver
    now = Millis(at_once.now + 5)

    expected = decide_and_apply_each(at_once.coordinator, asked, now)
    outcomes = decide_and_defer(deferring.coordinator, asked, now)

    assert outcomes == expected
    assert deferring.coordinator.hard_state() == at_once.coordinator.hard_state()
    assert deferring.coordinator.groups == at_once.coordinator.groups


def test_the_generated_commands_reach_the_members_of_the_group() -> None:
    members = [client.member_id for client in GroupInState(GroupState.STABLE).members]

    assert members == ["leader-4", "follower-5", "static-6"]


def test_a_commit_to_an_existing_group_is_deferrable() -> None:
    stage = GroupInState(GroupState.STABLE)

    outcome = stage.crowd.commit(stage.leader)

    assert outcome.records
    assert outcome.is_deferrable


def test_the_first_commit_of_a_simple_group_is_not_deferrable() -> None:
    crowd = GroupInState(GroupState.STABLE).crowd

    first = crowd.commit_simply(ABSENT, crowd.offset("t1"))
    second = crowd.commit_simply(ABSENT, crowd.offset("t1"))

    assert not first.is_deferrable
    assert second.is_deferrable


@pytest.mark.parametrize("command", get_args(Command), ids=lambda command: command.__name__)
def test_only_commits_and_heartbeats_do_not_see_deferred_records(command: type[Command]) -> None:
    assert command.sees_deferred is (command not in (CommitOffsets, Heartbeat))
