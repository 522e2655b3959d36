"""Every state answers every question as its table says, and changes only as its table allows."""

from collections.abc import Callable, Mapping

import pytest

from kohort.coordinator.commands import (
    CommitTransactionOffsets,
    EndTransaction,
    ListGroups,
    Shutdown,
)
from kohort.coordinator.group import Roster
from kohort.coordinator.notes import RebalanceStarted, StateChanged
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
    Refused,
    Reply,
    Synced,
)
from kohort.coordinator.states import ANSWERS, LEGAL, MEANING, Answer, GroupState, Question
from kohort.types import ErrorCode, Millis, Partition, ProducerEpoch, ProducerId, Topic
from tests.coordinator.stage import (
    COMPLETING,
    DEAD,
    EMPTY,
    GROUP,
    PREPARING,
    STABLE,
    WAYS,
    Stage,
    Way,
)

# Looking at the answer


def find_reply(stage: Stage, outcome: Outcome) -> Reply | None:
    ticket = stage.last_request.ticket
    return next((reply for reply in outcome.replies if reply.ticket == ticket), None)


def error_of(reply: Reply | None) -> ErrorCode | None:
    """The error of a reply about one thing, wherever it stands; None where there is no reply."""
    match reply:
        case None:
            return None
        case Refused():
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
    return not any(isinstance(note, StateChanged) for note in outcome.notes)


def is_accepted(stage: Stage, outcome: Outcome) -> bool:
    return error_of(find_reply(stage, outcome)) is ErrorCode.NONE and is_unmoved(outcome)


def is_accepted_and_rearmed(stage: Stage, outcome: Outcome) -> bool:
    member = stage.asking
    key = TimerKey(TimerKind.SESSION, GROUP, member.member_id)
    until = stage.crowd.driver.now + member.session_ms
    return is_accepted(stage, outcome) and outcome.timers.get(key) == until


def is_parked(stage: Stage, outcome: Outcome) -> bool:
    return stage.last_request.ticket in stage.crowd.open and is_unmoved(outcome)


def is_current(stage: Stage, outcome: Outcome) -> bool:
    """Answered from the present generation: with its number, its assignment or its members."""
    match find_reply(stage, outcome):
        case Joined() as joined:
            is_present = joined.generation == stage.roster.generation == 1
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


def is_rebalancing(stage: Stage, outcome: Outcome) -> bool:
    moves = [(n.before, n.after) for n in outcome.notes if isinstance(n, StateChanged)]
    is_begun = any(isinstance(note, RebalanceStarted) for note in outcome.notes)
    return is_begun and moves == [(stage.state, PREPARING)]


def is_rechecked(stage: Stage, outcome: Outcome) -> bool:
    return is_accepted(stage, outcome) and stage.asking.member_id not in stage.roster.members


def is_nothing(stage: Stage, outcome: Outcome) -> bool:
    match find_reply(stage, outcome):
        case OffsetsFetched(offsets=()):
            return True
        case GroupsDescribed(groups=(group,)):
            return (group.state, group.error) == (DEAD, ErrorCode.GROUP_ID_NOT_FOUND)
        case _:
            return False


LOOKS: Mapping[Answer, Callable[[Stage, Outcome], bool]] = {
    Answer.ACCEPT: is_accepted,
    Answer.ACCEPT_AND_REARM: is_accepted_and_rearmed,
    Answer.PARK: is_parked,
    Answer.CURRENT: is_current,
    Answer.REBALANCE: is_rebalancing,
    Answer.RECHECK: is_rechecked,
    Answer.NOTHING: is_nothing,
}

every_state = pytest.mark.parametrize("state", GroupState)


def test_every_state_has_an_answer_to_every_question() -> None:
    assert set(ANSWERS) == set(Question)
    assert all(set(row) == set(GroupState) for row in ANSWERS.values())


def test_every_question_is_asked_and_every_answer_is_given() -> None:
    given = {answer for row in ANSWERS.values() for answer in row.values()}

    assert {way.question for way in WAYS} == set(Question)
    assert {answer for answer in given if isinstance(answer, Answer)} == set(Answer)
    assert {answer for way in WAYS for answer in way.comes_to} | set(LOOKS) == set(Answer)


@every_state
@pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way.question} ({way.name})")
def test_the_answer_is_the_one_in_the_table(state: GroupState, way: Way) -> None:
    stage = Stage(state, way.type_)

    outcome = way.ask(stage)

    answer = ANSWERS[way.question][state]
    expected = way.comes_to.get(answer, answer) if isinstance(answer, Answer) else answer
    if isinstance(expected, ErrorCode):
        assert error_of(find_reply(stage, outcome)) is expected
        assert is_unmoved(outcome)
        assert not outcome.records
    else:
        assert LOOKS[expected](stage, outcome), (expected, outcome)


@every_state
def test_a_group_is_listed_with_its_state(state: GroupState) -> None:
    stage = Stage(state)

    outcome = stage.crowd.ask(ListGroups(ticket=stage.crowd.next_ticket()))

    listed = find_reply(stage, outcome)
    assert isinstance(listed, GroupsListed)
    assert [group.state for group in listed.groups] == [state]


@every_state
def test_a_transaction_ends_in_every_state(state: GroupState) -> None:
    stage = Stage(state)
    crowd, producer_id = stage.crowd, ProducerId(7)
    pending = CommitTransactionOffsets(
        ticket=crowd.next_ticket(),
        group_id=GROUP,
        producer_id=producer_id,
        producer_epoch=ProducerEpoch(0),
        offsets=(crowd.offset("t3"),),
    )

    crowd.ask(pending)
    crowd.ask(EndTransaction(ticket=crowd.next_ticket(), producer_id=producer_id, is_commit=True))

    book = crowd.driver.machine.groups[GROUP].offsets
    assert (book.find(Topic("t3"), Partition(0)) is not None) == (state is not DEAD)
    assert not book.pending


def test_a_heartbeat_to_a_preparing_group_is_heard_though_it_is_refused() -> None:
    stage = Stage(PREPARING)
    member = stage.follower

    outcome = stage.crowd.heartbeat(member)

    key = TimerKey(TimerKind.SESSION, GROUP, member.member_id)
    assert outcome.timers == {key: stage.crowd.driver.now + member.session_ms}


def test_a_preparing_group_goes_on_when_the_last_one_it_waits_for_leaves() -> None:
    stage = Stage(PREPARING)
    stage.join(stage.leader)
    stage.join(stage.static)

    stage.crowd.leave(stage.follower)

    assert stage.roster.state is COMPLETING


# Changing


def sync_everyone(stage: Stage) -> None:
    for client in stage.members:
        stage.crowd.sync(client)


def join_everyone(stage: Stage) -> None:
    for client in stage.members:
        stage.join(client)


def stop(stage: Stage) -> None:
    stage.crowd.ask(Shutdown())


PATHS: Mapping[tuple[GroupState, GroupState], Callable[[Stage], object]] = {
    (EMPTY, PREPARING): lambda stage: stage.join(stage.newcomer),
    (PREPARING, COMPLETING): join_everyone,
    (PREPARING, EMPTY): lambda stage: stage.crowd.advance(stage.crowd.driver.now + 600_000),
    (COMPLETING, STABLE): sync_everyone,
    (COMPLETING, PREPARING): lambda stage: stage.crowd.leave(stage.follower),
    (STABLE, PREPARING): lambda stage: stage.crowd.leave(stage.follower),
    **{(state, DEAD): stop for state in (EMPTY, PREPARING, COMPLETING, STABLE)},
}


def test_every_legal_change_has_a_cause_and_a_path_here() -> None:
    legal = {(before, after) for before, row in LEGAL.items() for after in row}

    assert set(PATHS) == legal
    assert set(LEGAL) == set(MEANING) == set(GroupState)
    assert all(cause for row in LEGAL.values() for cause in row.values())


@pytest.mark.parametrize(("before", "after"), PATHS)
def test_a_legal_change_can_be_reached(before: GroupState, after: GroupState) -> None:
    stage = Stage(before)
    noted = len(stage.crowd.driver.notes)

    PATHS[before, after](stage)

    notes = stage.crowd.driver.notes[noted:]
    changes = [(note.before, note.after) for note in notes if isinstance(note, StateChanged)]
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
def test_an_illegal_change_is_refused(before: GroupState, after: GroupState) -> None:
    roster = Roster(state=before)

    with pytest.raises(AssertionError, match=f"{before} may not become {after}"):
        roster.move(after, Millis(0))

    assert roster.state is before
