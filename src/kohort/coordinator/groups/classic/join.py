"""JoinGroup: the order of the checks, and the response to each kind of member.

The order is Kafka's: a client may rely on which error it gets first.
"""

from kohort.coordinator.commands import NO_MEMBER, JoinGroup
from kohort.coordinator.events import (
    Departure,
    MemberIdIssued,
    MemberInfo,
    MemberJoined,
    Trigger,
)
from kohort.coordinator.groups.classic import join_phase, static_members
from kohort.coordinator.groups.classic.classic_member import ClassicMember
from kohort.coordinator.groups.classic.group import ClassicGroup
from kohort.coordinator.groups.classic.rebalance_trace import Cause
from kohort.coordinator.groups.classic.states import ACTIONS, GroupRequest, GroupState, StateAction
from kohort.coordinator.outcome import TimerKind
from kohort.coordinator.outcome_builder import OutcomeBuilder
from kohort.types import ErrorCode, MemberId


def join(builder: OutcomeBuilder, group: ClassicGroup, command: JoinGroup) -> None:
    refusal = ACTIONS[GroupRequest.JOIN_NEW][group.state]
    if isinstance(refusal, ErrorCode):
        builder.refuse(command.ticket, refusal, command.member_id)
    elif not _has_room(builder, group, command.member_id):
        _refuse_full(builder, group, command)
    elif not group.supports(command.protocol_type, command.protocols):
        builder.refuse(command.ticket, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, command.member_id)
    elif command.member_id == NO_MEMBER:
        _join_without_id(builder, group, command)
    elif command.member_id in group.pending_join_members:
        _join_with_issued_id(builder, group, command)
    else:
        _join_with_known_id(builder, group, command)


def _has_room(builder: OutcomeBuilder, group: ClassicGroup, member_id: MemberId) -> bool:
    """In PreparingRebalance only members that have rejoined count, so late members are refused."""
    size_max = builder.config.group_max_size
    if group.state is GroupState.EMPTY:
        return True
    member = group.members.get(member_id)
    if group.state is GroupState.PREPARING_REBALANCE:
        has_joined = member is not None and member.join_ticket is not None
        return has_joined or group.joined_count < size_max
    return member is not None or len(group.members) < size_max


def _refuse_full(builder: OutcomeBuilder, group: ClassicGroup, command: JoinGroup) -> None:
    member = group.members.get(command.member_id)
    if member is not None:
        join_phase.remove_member(builder, group, member, Departure.GROUP_FULL)
    if command.member_id in group.pending_join_members:
        del group.pending_join_members[command.member_id]
        builder.disarm(TimerKind.PENDING, group.group_id, command.member_id)
    builder.refuse(command.ticket, ErrorCode.GROUP_MAX_SIZE_REACHED)
    # DEVIATION: Kafka 4 waits for the rebalance timeout here, even if all others have joined.
    join_phase.recheck(builder, group)


def _join_without_id(builder: OutcomeBuilder, group: ClassicGroup, command: JoinGroup) -> None:
    if command.instance_id is not None:
        if command.instance_id in group.static_members:
            static_members.replace(builder, group, command)
        else:
            _add(builder, group, command, command.fresh_member_id)
    elif command.knows_member_id_required:
        _issue_id(builder, group, command)
    else:
        _add(builder, group, command, command.fresh_member_id)


def _issue_id(builder: OutcomeBuilder, group: ClassicGroup, command: JoinGroup) -> None:
    """Send a new member id and expect a join with it, so that retries add no member (KIP-394)."""
    fresh = command.fresh_member_id
    identity = group.pending_join_members[fresh] = _identity_of(command, fresh)
    builder.arm(TimerKind.PENDING, group.group_id, command.session_timeout_ms, fresh)
    builder.emit(MemberIdIssued(at=builder.now, group_id=group.group_id, party=identity))
    builder.refuse(command.ticket, ErrorCode.MEMBER_ID_REQUIRED, fresh)


def _join_with_issued_id(builder: OutcomeBuilder, group: ClassicGroup, command: JoinGroup) -> None:
    if command.instance_id is not None:
        # DEVIATION: Kafka fails with an internal error. Member ids are only issued in advance to
        # dynamic members, so a static member cannot have one.
        builder.refuse(command.ticket, ErrorCode.UNKNOWN_MEMBER_ID, command.member_id)
        return
    builder.disarm(TimerKind.PENDING, group.group_id, command.member_id)
    _add(builder, group, command, command.member_id)


def _add(
    builder: OutcomeBuilder, group: ClassicGroup, command: JoinGroup, member_id: MemberId
) -> None:
    if group.state is GroupState.PREPARING_REBALANCE:
        group.is_still_growing |= group.previous_state is GroupState.EMPTY
    if not group.members:
        group.protocol_type = command.protocol_type
    member = ClassicMember(
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
    group.add(member)
    # A new member does not know its id yet and sends no heartbeats, so its join has a timeout.
    join_ms = builder.config.group_new_member_join_timeout_ms
    builder.arm(TimerKind.SESSION, group.group_id, join_ms, member_id)
    builder.emit(
        MemberJoined(
            at=builder.now,
            group_id=group.group_id,
            party=member.identity,
            client_reason=command.reason,
        )
    )
    join_phase.trace_join(builder, group, member)
    _rebalance(builder, group, member, Trigger.MEMBER_JOINED, command)


def _join_with_known_id(builder: OutcomeBuilder, group: ClassicGroup, command: JoinGroup) -> None:
    member_error = group.find_member_error(command.member_id, command.instance_id)
    if member_error is not None:
        builder.refuse(command.ticket, member_error, command.member_id)
        return
    member = group.members[command.member_id]
    answer = ACTIONS[GroupRequest.JOIN_KNOWN][group.state]
    if answer is StateAction.PARK:
        _rejoin(builder, group, member, command, Trigger.SUBSCRIPTION_CHANGED)
        return
    is_changed = member.protocols != command.protocols
    is_leader = group.leader == member.member_id
    match answer:
        case StateAction.REBALANCE_IF_LEADER if is_leader:
            _rejoin(builder, group, member, command, Trigger.LEADER_REJOINED)
        case StateAction.REBALANCE_IF_LEADER | StateAction.REBALANCE_IF_CHANGED if is_changed:
            _rejoin(builder, group, member, command, Trigger.SUBSCRIPTION_CHANGED)
        case StateAction.REBALANCE_IF_LEADER | StateAction.REBALANCE_IF_CHANGED:
            group.park_join(member, command.ticket)
            join_phase.answer_join(builder, group, member)
        case ErrorCode() as error:
            builder.refuse(command.ticket, error, command.member_id)
        case other:
            raise AssertionError(f"{group.state} cannot answer a join with {other}")


def _rejoin(
    builder: OutcomeBuilder,
    group: ClassicGroup,
    member: ClassicMember,
    command: JoinGroup,
    trigger: Trigger,
) -> None:
    if member.protocols != command.protocols:
        group.update_protocols(member, command.protocols)
    member.rebalance_timeout_ms = command.rebalance_timeout_ms
    member.session_timeout_ms = command.session_timeout_ms
    repeated = group.park_join(member, command.ticket)
    if repeated is not None:
        # DEVIATION: If a member repeats JoinGroup, Kafka never responds to the first request. Here
        # the first request gets an error.
        builder.refuse(repeated, ErrorCode.REBALANCE_IN_PROGRESS, member.member_id)
    join_phase.trace_join(builder, group, member)
    _rebalance(builder, group, member, trigger, command)


def _rebalance(
    builder: OutcomeBuilder,
    group: ClassicGroup,
    member: ClassicMember,
    trigger: Trigger,
    command: JoinGroup,
) -> None:
    if group.state is GroupState.PREPARING_REBALANCE:
        join_phase.recheck(builder, group)
        return
    cause = Cause(trigger=trigger, initiator=member.identity, client_reason=command.reason)
    join_phase.begin_or_recheck(builder, group, cause)


def _identity_of(command: JoinGroup, member_id: MemberId) -> MemberInfo:
    return MemberInfo(
        member_id=member_id,
        instance_id=command.instance_id,
        client_id=command.client_id,
        client_host=command.client_host,
    )
