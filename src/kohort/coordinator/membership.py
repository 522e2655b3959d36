"""Being in a group: syncing, being heard of, leaving, and being given up."""

from typing import Final

from kohort.coordinator import assignment, rebalance
from kohort.coordinator.commands import NO_MEMBER, Heartbeat, LeaveGroup, Leaver, SyncGroup
from kohort.coordinator.group import Group, Roster
from kohort.coordinator.notes import (
    Departure,
    MemberGone,
    PendingExpired,
    Removal,
    Trigger,
)
from kohort.coordinator.outcome import SESSION, Outcome, TimerKey, TimerKind, make_outcome
from kohort.coordinator.replies import HeartbeatHeard, LeaveAnswered, Left
from kohort.coordinator.states import ANSWERS, STABLE, Answer, GroupState, Question
from kohort.coordinator.story import Cause
from kohort.coordinator.turn import Turn
from kohort.types import ErrorCode, MemberId, Millis, maker

# Syncing and being heard of


def sync(turn: Turn, group: Group | None, command: SyncGroup) -> None:
    if group is None:
        turn.refuse(command.ticket, ErrorCode.UNKNOWN_MEMBER_ID)
        return
    roster = group.roster
    answer = ANSWERS[Question.SYNC][roster.state]
    fault = _find_sync_fault(roster, answer, command)
    if fault is not None:
        turn.refuse(command.ticket, fault)
        return
    member = roster.members[command.member_id]
    match answer:
        case Answer.PARK:
            assignment.park_sync(turn, group, member, command)
        case Answer.CURRENT:
            assignment.mark_synced(turn, group, member)
            assignment.answer_sync(turn, roster, member, command)
        case ErrorCode() as error:
            turn.refuse(command.ticket, error)
        case other:
            raise AssertionError(f"{roster.state} cannot answer a sync with {other}")


def _find_sync_fault(
    roster: Roster, answer: Answer | ErrorCode, command: SyncGroup
) -> ErrorCode | None:
    if roster.state in (GroupState.EMPTY, GroupState.DEAD):
        assert isinstance(answer, ErrorCode)
        return answer
    fault = roster.find_fault(command.member_id, command.instance_id)
    if fault is not None:
        return fault
    if command.generation != roster.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if _differs(command.protocol_type, roster.protocol_type):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if _differs(command.protocol, roster.protocol):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return None


def _differs(asked: str | None, chosen: str | None) -> bool:
    """Older clients do not say, and a group in its first join phase has not chosen yet."""
    return asked is not None and chosen is not None and asked != chosen


def heartbeat(turn: Turn, group: Group | None, command: Heartbeat) -> None:
    if group is None:
        turn.refuse(command.ticket, ErrorCode.UNKNOWN_MEMBER_ID)
        return
    roster = group.roster
    answer = ANSWERS[Question.HEARTBEAT][roster.state]
    if roster.state is GroupState.DEAD:
        assert isinstance(answer, ErrorCode)
        turn.refuse(command.ticket, answer)
        return
    fault = roster.find_fault(command.member_id, command.instance_id)
    if fault is None and command.generation != roster.generation:
        fault = ErrorCode.ILLEGAL_GENERATION
    if fault is not None:
        turn.refuse(command.ticket, fault)
        return
    rebalance.rearm_session(turn, group, roster.members[command.member_id])
    if isinstance(answer, ErrorCode):
        turn.refuse(command.ticket, answer)
    else:
        turn.reply(HeartbeatHeard(ticket=command.ticket))


def find_heard(group: Group | None, command: Heartbeat, now: Millis) -> Outcome | None:
    """What `heartbeat` comes to for a member in good standing, found with less ado; else None."""
    if group is None:
        return None
    roster = group.roster
    member = roster.members.get(command.member_id)
    if (
        member is None
        or roster.state is not STABLE
        or command.generation != roster.generation
        or command.instance_id is not None
    ):
        return None
    key = _new(TimerKey, (SESSION, group.group_id, member.member_id))
    return make_outcome([], [_heard(command.ticket)], {key: now + member.session_timeout_ms}, [])


_new: Final = tuple.__new__
_heard: Final = maker(HeartbeatHeard)


def on_session_timeout(turn: Turn, group: Group, member_id: MemberId) -> None:
    """Nobody has heard of the member in time. A parked one is excused, a dead one is out."""
    roster = group.roster
    member = roster.members.get(member_id)
    if member is None or member.is_excused:
        return
    is_new = member.is_new
    departure = Departure.JOIN_EXPIRED if is_new else Departure.SESSION_EXPIRED
    trigger = Trigger.JOIN_EXPIRED if is_new else Trigger.SESSION_EXPIRED
    removal = rebalance.expel(turn, group, member, departure)
    if roster.state is GroupState.PREPARING_REBALANCE:
        rebalance.end_join_if_all_joined(turn, group)
    else:
        cause = Cause(trigger=trigger, culprit=member.party, removals=(removal,))
        rebalance.begin(turn, group, cause)


def on_pending_timeout(turn: Turn, group: Group, member_id: MemberId) -> None:
    if member_id not in group.roster.pending:
        return
    del group.roster.pending[member_id]
    turn.note(PendingExpired(at=turn.now, group_id=group.group_id, member_id=member_id))
    rebalance.end_join_if_all_joined(turn, group)


# Leaving


def leave(turn: Turn, group: Group | None, command: LeaveGroup) -> None:
    """Every leaver gets its own answer; together they cause one rebalance."""
    if group is None:
        strangers = (_left(leaver, ErrorCode.UNKNOWN_MEMBER_ID) for leaver in command.leavers)
        turn.reply(LeaveAnswered(ticket=command.ticket, members=tuple(strangers)))
        return
    roster = group.roster
    refusal = ANSWERS[Question.LEAVE][roster.state]
    if roster.state is GroupState.DEAD:
        assert isinstance(refusal, ErrorCode)
        turn.refuse(command.ticket, refusal)
        return
    results: list[Left] = []
    gone: list[tuple[Leaver, Removal]] = []
    for leaver in command.leavers:
        error, removal = _remove_leaver(turn, group, leaver)
        results.append(_left(leaver, error))
        if removal is not None:
            gone.append((leaver, removal))
    turn.reply(LeaveAnswered(ticket=command.ticket, members=tuple(results)))
    if all(result.error is not ErrorCode.NONE for result in results):
        return
    if roster.state is GroupState.PREPARING_REBALANCE:
        rebalance.recheck(turn, group)
    elif gone:
        # DEVIATION: Kafka 4 also rebalances when only an id that was handed out is given back.
        leaver, removal = gone[0]
        is_removed = removal.departure is Departure.REMOVED
        cause = Cause(
            trigger=Trigger.MEMBER_REMOVED if is_removed else Trigger.MEMBER_LEFT,
            culprit=removal.party,
            client_reason=leaver.reason,
            removals=tuple(removal for _, removal in gone),
        )
        rebalance.begin(turn, group, cause)


def _left(leaver: Leaver, error: ErrorCode) -> Left:
    return Left(member_id=leaver.member_id, instance_id=leaver.instance_id, error=error)


def _remove_leaver(turn: Turn, group: Group, leaver: Leaver) -> tuple[ErrorCode, Removal | None]:
    roster = group.roster
    if leaver.member_id == NO_MEMBER:
        holder = None if leaver.instance_id is None else roster.instances.get(leaver.instance_id)
        if holder is None:
            return ErrorCode.UNKNOWN_MEMBER_ID, None
        member, departure = roster.members[holder], Departure.REMOVED
    elif leaver.member_id in roster.pending:
        _drop_pending(turn, group, leaver)
        return ErrorCode.NONE, None
    else:
        fault = roster.find_fault(leaver.member_id, leaver.instance_id)
        if fault is not None:
            return fault, None
        member, departure = roster.members[leaver.member_id], Departure.LEFT
    return ErrorCode.NONE, rebalance.expel(turn, group, member, departure, leaver.reason)


def _drop_pending(turn: Turn, group: Group, leaver: Leaver) -> None:
    turn.disarm(TimerKind.PENDING, group.group_id, leaver.member_id)
    turn.note(
        MemberGone(
            at=turn.now,
            group_id=group.group_id,
            party=group.roster.pending.pop(leaver.member_id),
            departure=Departure.LEFT,
            client_reason=leaver.reason,
        )
    )
