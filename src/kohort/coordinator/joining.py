"""Joining: the full order of checks, and what each kind of newcomer is told.

The order is Kafka's; a client may rely on which error it meets first.
"""

from kohort.coordinator import instances, rebalance
from kohort.coordinator.commands import NO_MEMBER, JoinGroup
from kohort.coordinator.group import Group, Member, Roster
from kohort.coordinator.notes import Departure, MemberIdIssued, MemberJoined, Party, Trigger
from kohort.coordinator.outcome import TimerKind
from kohort.coordinator.states import ANSWERS, Answer, GroupState, Question
from kohort.coordinator.story import Cause
from kohort.coordinator.turn import Turn
from kohort.types import ErrorCode, MemberId


def join(turn: Turn, group: Group, command: JoinGroup) -> None:
    roster = group.roster
    refusal = ANSWERS[Question.JOIN_NEW][roster.state]
    if isinstance(refusal, ErrorCode):
        turn.refuse(command.ticket, refusal, command.member_id)
    elif not _has_room(turn, roster, command.member_id):
        _turn_away(turn, group, command)
    elif not roster.supports(command.protocol_type, command.protocols):
        turn.refuse(command.ticket, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, command.member_id)
    elif command.member_id == NO_MEMBER:
        _join_without_id(turn, group, command)
    elif command.member_id in roster.pending:
        _join_with_issued_id(turn, group, command)
    else:
        _join_with_known_id(turn, group, command)


def _has_room(turn: Turn, roster: Roster, member_id: MemberId) -> bool:
    """While a rebalance prepares, the joined count: it lets the last ones be turned away."""
    room = turn.limits.group_max_size
    if roster.state is GroupState.EMPTY:
        return True
    member = roster.members.get(member_id)
    if roster.state is GroupState.PREPARING_REBALANCE:
        is_in = member is not None and member.join_ticket is not None
        return is_in or roster.joined_count < room
    return member is not None or len(roster.members) < room


def _turn_away(turn: Turn, group: Group, command: JoinGroup) -> None:
    member = group.roster.members.get(command.member_id)
    if member is not None:
        rebalance.expel(turn, group, member, Departure.GROUP_FULL)
    if command.member_id in group.roster.pending:
        del group.roster.pending[command.member_id]
        turn.disarm(TimerKind.PENDING, group.group_id, command.member_id)
    turn.refuse(command.ticket, ErrorCode.GROUP_MAX_SIZE_REACHED)
    # DEVIATION: Kafka 4 lets the others wait for the timeout, even when nobody else is missing.
    rebalance.recheck(turn, group)


def _join_without_id(turn: Turn, group: Group, command: JoinGroup) -> None:
    roster = group.roster
    if command.instance_id is not None:
        if command.instance_id in roster.instances:
            instances.replace(turn, group, command)
        else:
            _add(turn, group, command, command.fresh_member_id)
    elif command.knows_member_id_required:
        _issue_id(turn, group, command)
    else:
        _add(turn, group, command, command.fresh_member_id)


def _issue_id(turn: Turn, group: Group, command: JoinGroup) -> None:
    """Give an id and ask to come back with it: a client that gives up leaves no ghost (KIP-394)."""
    fresh = command.fresh_member_id
    party = group.roster.pending[fresh] = _party(command, fresh)
    turn.arm(TimerKind.PENDING, group.group_id, command.session_timeout_ms, fresh)
    turn.note(MemberIdIssued(at=turn.now, group_id=group.group_id, party=party))
    turn.refuse(command.ticket, ErrorCode.MEMBER_ID_REQUIRED, fresh)


def _join_with_issued_id(turn: Turn, group: Group, command: JoinGroup) -> None:
    if command.instance_id is not None:
        # DEVIATION: Kafka fails with an internal error; ids are only issued to dynamic members.
        turn.refuse(command.ticket, ErrorCode.UNKNOWN_MEMBER_ID, command.member_id)
        return
    turn.disarm(TimerKind.PENDING, group.group_id, command.member_id)
    _add(turn, group, command, command.member_id)


def _add(turn: Turn, group: Group, command: JoinGroup, member_id: MemberId) -> None:
    roster = group.roster
    if roster.state is GroupState.PREPARING_REBALANCE:
        roster.is_still_growing |= roster.previous_state is GroupState.EMPTY
    if not roster.members:
        roster.protocol_type = command.protocol_type
    member = Member(
        member_id=member_id,
        instance_id=command.instance_id,
        client_id=command.client_id,
        client_host=command.client_host,
        rebalance_timeout_ms=command.rebalance_timeout_ms,
        session_timeout_ms=command.session_timeout_ms,
        protocols=command.protocols,
        join_ticket=command.ticket,
        is_new=True,
    )
    roster.add(member)
    # A new member does not know its id yet and cannot heartbeat: only its patience is bounded.
    join_ms = turn.limits.group_new_member_join_timeout_ms
    turn.arm(TimerKind.SESSION, group.group_id, join_ms, member_id)
    turn.note(
        MemberJoined(
            at=turn.now,
            group_id=group.group_id,
            party=member.party,
            client_reason=command.reason,
        )
    )
    rebalance.note_joined(turn, roster, member)
    _rebalance(turn, group, member, Trigger.MEMBER_JOINED, command)


def _join_with_known_id(turn: Turn, group: Group, command: JoinGroup) -> None:
    roster = group.roster
    fault = roster.find_fault(command.member_id, command.instance_id)
    if fault is not None:
        turn.refuse(command.ticket, fault, command.member_id)
        return
    member = roster.members[command.member_id]
    answer = ANSWERS[Question.JOIN_KNOWN][roster.state]
    if answer is Answer.PARK:
        _rejoin(turn, group, member, command, Trigger.SUBSCRIPTION_CHANGED)
        return
    is_changed = member.protocols != command.protocols
    is_leader = roster.leader == member.member_id
    match answer:
        case Answer.REBALANCE_IF_LEADER if is_leader:
            _rejoin(turn, group, member, command, Trigger.LEADER_REJOINED)
        case Answer.REBALANCE_IF_LEADER | Answer.REBALANCE_IF_CHANGED if is_changed:
            _rejoin(turn, group, member, command, Trigger.SUBSCRIPTION_CHANGED)
        case Answer.REBALANCE_IF_LEADER | Answer.REBALANCE_IF_CHANGED:
            roster.park_join(member, command.ticket)
            rebalance.answer_join(turn, group, member)
        case ErrorCode() as error:
            turn.refuse(command.ticket, error, command.member_id)
        case other:
            raise AssertionError(f"{roster.state} cannot answer a join with {other}")


def _rejoin(turn: Turn, group: Group, member: Member, command: JoinGroup, trigger: Trigger) -> None:
    roster = group.roster
    if member.protocols != command.protocols:
        roster.update_protocols(member, command.protocols)
    member.rebalance_timeout_ms = command.rebalance_timeout_ms
    member.session_timeout_ms = command.session_timeout_ms
    repeated = roster.park_join(member, command.ticket)
    if repeated is not None:
        # DEVIATION: Kafka forgets a join that its own member has repeated; here it is answered.
        turn.refuse(repeated, ErrorCode.REBALANCE_IN_PROGRESS, member.member_id)
    rebalance.note_joined(turn, roster, member)
    _rebalance(turn, group, member, trigger, command)


def _rebalance(
    turn: Turn, group: Group, member: Member, trigger: Trigger, command: JoinGroup
) -> None:
    if group.roster.state is GroupState.PREPARING_REBALANCE:
        rebalance.recheck(turn, group)  # of all that join, one begins it
        return
    cause = Cause(trigger=trigger, culprit=member.party, client_reason=command.reason)
    rebalance.begin_or_recheck(turn, group, cause)


def _party(command: JoinGroup, member_id: MemberId) -> Party:
    return Party(
        member_id=member_id,
        instance_id=command.instance_id,
        client_id=command.client_id,
        client_host=command.client_host,
    )
