"""SyncGroup, the second phase of a rebalance: the leader's assignment is stored, then sent to all.

No member gets its assignment before the record is stored. If it cannot be stored the group
rebalances again.
"""

from kohort.coordinator.commands import MemberAssignment, SyncGroup
from kohort.coordinator.events import Departure, RebalanceResult, Trigger
from kohort.coordinator.groups.classic import join_phase
from kohort.coordinator.groups.classic.classic_member import ClassicMember
from kohort.coordinator.groups.classic.group import ClassicGroup
from kohort.coordinator.groups.classic.rebalance_trace import Cause
from kohort.coordinator.groups.classic.states import ACTIONS, GroupRequest, GroupState, StateAction
from kohort.coordinator.outcome import TimerKind
from kohort.coordinator.outcome_builder import OutcomeBuilder
from kohort.coordinator.records import ClassicGroupMember, ClassicGroupMetadata
from kohort.coordinator.replies import Synced
from kohort.types import ErrorCode, MemberId


def sync(builder: OutcomeBuilder, group: ClassicGroup | None, command: SyncGroup) -> None:
    if group is None:
        builder.refuse(command.ticket, ErrorCode.UNKNOWN_MEMBER_ID)
        return
    answer = ACTIONS[GroupRequest.SYNC][group.state]
    error = _find_error(group, answer, command)
    if error is not None:
        builder.refuse(command.ticket, error)
        return
    member = group.members[command.member_id]
    match answer:
        case StateAction.PARK:
            _park(builder, group, member, command)
        case StateAction.CURRENT:
            _mark_synced(builder, group, member)
            builder.reply(
                Synced(command.ticket, group.protocol_type, group.protocol, member.assignment)
            )
        case ErrorCode() as refusal:
            builder.refuse(command.ticket, refusal)
        case other:
            raise AssertionError(f"{group.state} cannot answer a sync with {other}")


def _find_error(
    group: ClassicGroup, answer: StateAction | ErrorCode, command: SyncGroup
) -> ErrorCode | None:
    if group.state in (GroupState.EMPTY, GroupState.DEAD):
        assert isinstance(answer, ErrorCode)
        return answer
    error = group.find_member_error(command.member_id, command.instance_id)
    if error is not None:
        return error
    if command.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if _differs(command.protocol_type, group.protocol_type):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if _differs(command.protocol, group.protocol):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return None


def _differs(requested: str | None, chosen: str | None) -> bool:
    """Older clients send none, and a group in its first join phase has not chosen one yet."""
    return requested is not None and chosen is not None and requested != chosen


def _park(
    builder: OutcomeBuilder, group: ClassicGroup, member: ClassicMember, command: SyncGroup
) -> None:
    """Park a member's sync until the assignment is stored; the leader's sync contains it."""
    if member.sync_ticket is not None:
        # DEVIATION: if a member repeats SyncGroup, Kafka never answers the first request.
        builder.refuse(member.sync_ticket, ErrorCode.REBALANCE_IN_PROGRESS)
    member.sync_ticket = command.ticket
    _mark_synced(builder, group, member)
    if group.leader == member.member_id:
        _append_assignment(builder, group, command.assignments)


def _mark_synced(builder: OutcomeBuilder, group: ClassicGroup, member: ClassicMember) -> None:
    group.pending_sync_members.pop(member.member_id, None)
    if not group.pending_sync_members:
        group.disarm(builder, TimerKind.SYNC)
    if group.trace is not None:
        group.trace.synced_ms.setdefault(member.member_id, builder.now)


def _append_assignment(
    builder: OutcomeBuilder, group: ClassicGroup, assignments: tuple[MemberAssignment, ...]
) -> None:
    """Store the leader's assignment and answer all parked syncs. A member it omits gets nothing."""
    given = {each.member_id: each.assignment for each in assignments}
    builder.append(group_metadata(group, given))
    builder.emit(join_phase.changed(builder, group, GroupState.STABLE))
    if group.trace is not None:
        builder.emit(
            group.trace.end(group.group_id, group, RebalanceResult.STABLE, builder.now, got=given)
        )
    protocol_type, protocol = group.protocol_type, group.protocol
    for member in group.members.values():
        if member.sync_ticket is not None:
            assignment = given.get(member.member_id, b"")
            builder.reply(Synced(member.sync_ticket, protocol_type, protocol, assignment))
            join_phase.rearm_session(builder, group, member)


def group_metadata(group: ClassicGroup, assignments: dict[MemberId, bytes]) -> ClassicGroupMetadata:
    return ClassicGroupMetadata(
        group_id=group.group_id,
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol,
        leader=group.leader,
        state_since_ms=group.state_since_ms,
        members=tuple(
            [
                member_metadata(member, group.protocol, assignments.get(member.member_id, b""))
                for member in group.members.values()
            ]
        ),
    )


def with_member_replaced(
    metadata: ClassicGroupMetadata, old_id: MemberId, new: ClassicGroupMember
) -> ClassicGroupMetadata:
    return ClassicGroupMetadata(
        group_id=metadata.group_id,
        protocol_type=metadata.protocol_type,
        generation=metadata.generation,
        protocol=metadata.protocol,
        leader=new.member_id if metadata.leader == old_id else metadata.leader,
        state_since_ms=metadata.state_since_ms,
        members=tuple(new if m.member_id == old_id else m for m in metadata.members),
    )


def member_metadata(
    member: ClassicMember, protocol: str | None, assignment: bytes
) -> ClassicGroupMember:
    return ClassicGroupMember(
        member.member_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.session_timeout_ms,
        member.metadata(protocol),
        assignment,
        member.instance_id,
    )


def on_sync_timeout(builder: OutcomeBuilder, group: ClassicGroup) -> None:
    """Remove the members that joined but did not sync, static ones included."""
    if group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
        return
    late = [group.members[member_id] for member_id in group.pending_sync_members]
    if not late:
        return
    removals = tuple(
        join_phase.remove_member(builder, group, member, Departure.SYNC_EXPIRED) for member in late
    )
    cause = Cause(trigger=Trigger.SYNC_EXPIRED, initiator=late[0].identity, removals=removals)
    join_phase.begin(builder, group, cause)


def on_assignment_not_stored(
    builder: OutcomeBuilder, group: ClassicGroup, error: ErrorCode
) -> None:
    """The leader's assignment could not be stored: refuse all parked syncs and rebalance."""
    initiator = group.members[group.leader].identity if group.leader is not None else None
    join_phase.refuse_syncs(builder, group, error)
    join_phase.begin(
        builder, group, Cause(trigger=Trigger.ASSIGNMENT_NOT_STORED, initiator=initiator)
    )
