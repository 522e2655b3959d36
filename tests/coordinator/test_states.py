"""Every state handles every request as its table says; only legal transitions happen."""

from collections.abc import Callable, Mapping

import pytest

from kohort.coordinator.commands import (
    CommitTransactionOffsets,
    EndTransaction,
    ListGroups,
    Shutdown,
)
from kohort.coordinator.events import RebalanceStarted, StateChanged
from kohort.coordinator.groups.classic.group import ClassicGroup
from kohort.coordinator.groups.classic.states import (
    ACTIONS,
    LEGAL,
    MEANING,
    GroupRequest,
    GroupState,
    StateAction,
)
from kohort.coordinator.outcome import Outcome, TimerKey, TimerKind
from kohort.coordinator.replies import (
    CommitAnswered,
    DeleteGroupsAnswered,
    DeleteOffsetsAnswered,
    GroupsDescribed,
    GroupsListed,
    Joined,
    LeaveAnswered,
    OffsetsFetched,
    Reply,
    RequestRefused,
    Synced,
)
from kohort.types import ErrorCode, GroupId, Millis, Partition, ProducerEpoch, ProducerId, Topic
from tests.coordinator.group_states import (
    COMPLETING,
    DEAD,
    EMPTY,
    GROUP,
    PREPARING,
    REQUEST_CASES,
    STABLE,
    GroupInState,
    RequestCase,
)

# Looking at the answer


def find_reply(stage: GroupInState, outcome: Outcome) -> Reply | None:
    ticket = stage.last_request.ticket
    return next((reply for reply in outcome.replies if reply.ticket == ticket), None)


def error_of(reply: Reply | None) -> ErrorCode | None:
    """The error of a reply about one thing, wherever it stands; None where there is no reply."""
    match reply:
        case None:
            return None
        case RequestRefused():
            return reply.error
        case LeaveAnswered():
            return reply.members[0].error
        case CommitAnswered() | DeleteOffsetsAnswered() | DeleteGroupsAnswered():
            return reply.results[0].error
        case GroupsDescribed():
            return reply.groups[0].error
        case _:
            return ErrorCode.NONE


def is_unmoved(outcome: Outcome) -> bool:
    return not any(isinstance(event, StateChanged) for event in outcome.events)


def is_accepted(stage: GroupInState, outcome: Outcome) -> bool:
    return error_of(find_reply(stage, outcome)) is ErrorCode.NONE and is_unmoved(outcome)


def is_accepted_and_rearmed(stage: GroupInState, outcome: Outcome) -> bool:
    member = stage.requester
    key = TimerKey(TimerKind.SESSION, GROUP, member.member_id)
    return is_accepted(stage, outcome) and outcome.timers.get(key) == member.session_ms


def is_parked(stage: GroupInState, outcome: Outcome) -> bool:
    return stage.last_request.ticket in stage.crowd.open and is_unmoved(outcome)


def is_current(stage: GroupInState, outcome: Outcome) -> bool:
    """Answered from the present generation: with its number, its assignment or its members."""
    match find_reply(stage, outcome):
        case Joined() as joined:
            is_present = joined.generation == stage.group.generation == 1
        case Synced() as synced:
            is_present = synced.assignment == b"share-1"
        case GroupsDescribed() as described:
            is_present = {m.assignment for m in described.groups[0].members} == {
                b"share-0",
                b"share-1",
                b"share-2",
            }
        case _:
            is_present = False
    return is_present and is_unmoved(outcome)


def is_rebalancing(stage: GroupInState, outcome: Outcome) -> bool:
    moves = [(n.before, n.after) for n in outcome.events if isinstance(n, StateChanged)]
    is_begun = any(isinstance(event, RebalanceStarted) for event in outcome.events)
    return is_begun and moves == [(stage.state, PREPARING)]


def is_rechecked(stage: GroupInState, outcome: Outcome) -> bool:
    return is_accepted(stage, outcome) and stage.requester.member_id not in stage.group.members


def is_nothing(stage: GroupInState, outcome: Outcome) -> bool:
    match find_reply(stage, outcome):
        case OffsetsFetched(offsets=()):
            return True
        case GroupsDescribed(groups=(group,)):
            return (group.state, group.error) == (DEAD, ErrorCode.GROUP_ID_NOT_FOUND)
        case _:
            return False


LOOKS: Mapping[StateAction, Callable[[GroupInState, Outcome], bool]] = {
    StateAction.ACCEPT: is_accepted,
    StateAction.ACCEPT_AND_REARM: is_accepted_and_rearmed,
    StateAction.PARK: is_parked,
    StateAction.CURRENT: is_current,
    StateAction.REBALANCE: is_rebalancing,
    StateAction.RECHECK: is_rechecked,
    StateAction.NOTHING: is_nothing,
}

every_state = pytest.mark.parametrize("state", GroupState)


def test_table_has_every_state_and_request() -> None:
    assert set(ACTIONS) == set(GroupRequest)
    assert all(set(row) == set(GroupState) for row in ACTIONS.values())


def test_every_request_and_action_is_tested() -> None:
    given = {answer for row in ACTIONS.values() for answer in row.values()}

    assert {case.request for case in REQUEST_CASES} == set(GroupRequest)
    assert {answer for answer in given if isinstance(answer, StateAction)} == set(StateAction)
    assert {answer for case in REQUEST_CASES for answer in case.results} | set(LOOKS) == set(
        StateAction
    )


@every_state
@pytest.mark.parametrize("case", REQUEST_CASES, ids=lambda case: f"{case.request} ({case.name})")
def test_request_is_handled_as_in_the_table(state: GroupState, case: RequestCase) -> None:
    stage = GroupInState(state, case.type_)

    outcome = case.send(stage)

    answer = ACTIONS[case.request][state]
    expected = case.results.get(answer, answer) if isinstance(answer, StateAction) else answer
    if isinstance(expected, ErrorCode):
        assert error_of(find_reply(stage, outcome)) is expected
        assert is_unmoved(outcome)
        assert not outcome.records
    else:
        assert LOOKS[expected](stage, outcome), (expected, outcome)


@every_state
def test_list_groups_returns_the_state(state: GroupState) -> None:
    stage = GroupInState(state)

    outcome = stage.crowd.send(ListGroups(ticket=stage.crowd.next_ticket()))

    listed = find_reply(stage, outcome)
    assert isinstance(listed, GroupsListed)
    assert [group.state for group in listed.groups] == [state]


@every_state
def test_transaction_can_end_in_every_state(state: GroupState) -> None:
    stage = GroupInState(state)
    crowd, producer_id = stage.crowd, ProducerId(7)
    pending = CommitTransactionOffsets(
        ticket=crowd.next_ticket(),
        group_id=GROUP,
        producer_id=producer_id,
        producer_epoch=ProducerEpoch(0),
        offsets=(crowd.offset("t3"),),
    )

    crowd.send(pending)
    crowd.send(EndTransaction(ticket=crowd.next_ticket(), producer_id=producer_id, is_commit=True))

    book = crowd.driver.coordinator.groups[GROUP].offsets
    assert (book.find(Topic("t3"), Partition(0)) is not None) == (state is not DEAD)
    assert not book.pending


def test_refused_heartbeat_in_preparing_rebalance_restarts_the_session() -> None:
    stage = GroupInState(PREPARING)
    member = stage.follower

    outcome = stage.crowd.heartbeat(member)

    key = TimerKey(TimerKind.SESSION, GROUP, member.member_id)
    assert outcome.timers == {key: member.session_ms}


def test_join_phase_ends_when_the_last_missing_member_leaves() -> None:
    stage = GroupInState(PREPARING)
    stage.join(stage.leader)
    stage.join(stage.static)

    stage.crowd.leave(stage.follower)

    assert stage.group.state is COMPLETING


# Changing


def sync_everyone(stage: GroupInState) -> None:
    for client in stage.members:
        stage.crowd.sync(client)


def join_everyone(stage: GroupInState) -> None:
    for client in stage.members:
        stage.join(client)


def stop(stage: GroupInState) -> None:
    stage.crowd.send(Shutdown())


PATHS: Mapping[tuple[GroupState, GroupState], Callable[[GroupInState], object]] = {
    (EMPTY, PREPARING): lambda stage: stage.join(stage.new_member),
    (PREPARING, COMPLETING): join_everyone,
    (PREPARING, EMPTY): lambda stage: stage.crowd.advance(stage.crowd.driver.now + 600_000),
    (COMPLETING, STABLE): sync_everyone,
    (COMPLETING, PREPARING): lambda stage: stage.crowd.leave(stage.follower),
    (STABLE, PREPARING): lambda stage: stage.crowd.leave(stage.follower),
    **{(state, DEAD): stop for state in (EMPTY, PREPARING, COMPLETING, STABLE)},
}


def test_every_legal_transition_is_tested() -> None:
    legal = {(before, after) for before, row in LEGAL.items() for after in row}

    assert set(PATHS) == legal
    assert set(LEGAL) == set(MEANING) == set(GroupState)
    assert all(cause for row in LEGAL.values() for cause in row.values())


@pytest.mark.parametrize(("before", "after"), PATHS)
def test_legal_transition_is_reachable(before: GroupState, after: GroupState) -> None:
    stage = GroupInState(before)
    noted = len(stage.crowd.driver.events)

    PATHS[before, after](stage)

    notes = stage.crowd.driver.events[noted:]
    changes = [(event.before, event.after) for event in notes if isinstance(event, StateChanged)]
    assert (before, after) in changes


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (before, after)
        for before in GroupState
        for after in GroupState
        if after not in LEGAL[before]
    ],
)
def test_illegal_transition_is_an_assertion_error(before: GroupState, after: GroupState) -> None:
    group = ClassicGroup(GroupId("g"), state=before)

    with pytest.raises(AssertionError, match=f"{before} may not become {after}"):
        group.move(after, Millis(0))

    assert group.state is before
