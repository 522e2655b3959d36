"""LeaveGroup: members leave, or an administrator removes static members by instance id."""

from kohort.coordinator.commands import NO_MEMBER, LeaveGroup, LeavingMember
from kohort.coordinator.events import Departure, MemberGone, MemberRemoval, Trigger
from kohort.coordinator.groups.classic import join_phase
from kohort.coordinator.groups.classic.group import ClassicGroup
from kohort.coordinator.groups.classic.rebalance_trace import Cause
from kohort.coordinator.groups.classic.states import ACTIONS, GroupRequest, GroupState
from kohort.coordinator.outcome import TimerKind
from kohort.coordinator.outcome_builder import OutcomeBuilder
from kohort.coordinator.replies import LeaveAnswered, Left
from kohort.types import ErrorCode


def leave(builder: OutcomeBuilder, group: ClassicGroup | None, command: LeaveGroup) -> None:
    """Every leaving member gets its own result; together they cause one rebalance."""
    if group is None:
        unknown = (_result(leaving, ErrorCode.UNKNOWN_MEMBER_ID) for leaving in command.members)
        builder.reply(LeaveAnswered(ticket=command.ticket, members=tuple(unknown)))
        return
    refusal = ACTIONS[GroupRequest.LEAVE][group.state]
    if group.state is GroupState.DEAD:
        assert isinstance(refusal, ErrorCode)
        builder.refuse(command.ticket, refusal)
        return
    results: list[Left] = []
    removed: list[tuple[LeavingMember, MemberRemoval]] = []
    for leaving in command.members:
        error, removal = _remove(builder, group, leaving)
        results.append(_result(leaving, error))
        if removal is not None:
            removed.append((leaving, removal))
    builder.reply(LeaveAnswered(ticket=command.ticket, members=tuple(results)))
    if all(result.error is not ErrorCode.NONE for result in results):
        return
    if group.state is GroupState.PREPARING_REBALANCE:
        join_phase.recheck(builder, group)
    elif removed:
        # DEVIATION: Kafka 4 also rebalances when only pending members leave, which have a member id
        # and have not joined yet.
        join_phase.begin(builder, group, _find_cause(removed))


def _find_cause(removed: list[tuple[LeavingMember, MemberRemoval]]) -> Cause:
    leaving, removal = removed[0]
    is_by_administrator = removal.departure is Departure.REMOVED
    return Cause(
        trigger=Trigger.MEMBER_REMOVED if is_by_administrator else Trigger.MEMBER_LEFT,
        initiator=removal.party,
        client_reason=leaving.reason,
        removals=tuple(removal for _, removal in removed),
    )


def _result(leaving: LeavingMember, error: ErrorCode) -> Left:
    return Left(member_id=leaving.member_id, instance_id=leaving.instance_id, error=error)


def _remove(
    builder: OutcomeBuilder, group: ClassicGroup, leaving: LeavingMember
) -> tuple[ErrorCode, MemberRemoval | None]:
    if leaving.member_id == NO_MEMBER:
        instance_id = leaving.instance_id
        member_id = None if instance_id is None else group.static_members.get(instance_id)
        if member_id is None:
            return ErrorCode.UNKNOWN_MEMBER_ID, None
        member, departure = group.members[member_id], Departure.REMOVED
    elif leaving.member_id in group.pending_join_members:
        _remove_pending(builder, group, leaving)
        return ErrorCode.NONE, None
    else:
        error = group.find_member_error(leaving.member_id, leaving.instance_id)
        if error is not None:
            return error, None
        member, departure = group.members[leaving.member_id], Departure.LEFT
    removal = join_phase.remove_member(builder, group, member, departure, leaving.reason)
    return ErrorCode.NONE, removal


def _remove_pending(builder: OutcomeBuilder, group: ClassicGroup, leaving: LeavingMember) -> None:
    builder.disarm(TimerKind.PENDING, group.group_id, leaving.member_id)
    builder.emit(
        MemberGone(
            at=builder.now,
            group_id=group.group_id,
            party=group.pending_join_members.pop(leaving.member_id),
            departure=Departure.LEFT,
            client_reason=leaving.reason,
        )
    )
