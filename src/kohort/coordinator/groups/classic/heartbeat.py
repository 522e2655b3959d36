"""Heartbeats, and the timeouts of members that stop sending them."""

from kohort.coordinator.commands import Heartbeat
from kohort.coordinator.events import Departure, PendingExpired, Trigger
from kohort.coordinator.groups.classic import join_phase
from kohort.coordinator.groups.classic.group import ClassicGroup
from kohort.coordinator.groups.classic.rebalance_trace import Cause
from kohort.coordinator.groups.classic.states import ACTIONS, STABLE, GroupRequest, GroupState
from kohort.coordinator.outcome import SESSION, Outcome, TimerKey
from kohort.coordinator.outcome_builder import OutcomeBuilder
from kohort.coordinator.replies import HeartbeatAccepted
from kohort.types import ErrorCode, MemberId


def heartbeat(builder: OutcomeBuilder, group: ClassicGroup | None, command: Heartbeat) -> None:
    if group is None:
        builder.refuse(command.ticket, ErrorCode.UNKNOWN_MEMBER_ID)
        return
    answer = ACTIONS[GroupRequest.HEARTBEAT][group.state]
    if group.state is GroupState.DEAD:
        assert isinstance(answer, ErrorCode)
        builder.refuse(command.ticket, answer)
        return
    error = group.find_member_error(command.member_id, command.instance_id)
    if error is None and command.generation != group.generation:
        error = ErrorCode.ILLEGAL_GENERATION
    if error is not None:
        builder.refuse(command.ticket, error)
        return
    group.restart_session(builder, command.member_id)
    if isinstance(answer, ErrorCode):
        builder.refuse(command.ticket, answer)
    else:
        builder.reply(HeartbeatAccepted(command.ticket))


def find_usual_outcome(group: ClassicGroup | None, command: Heartbeat) -> Outcome | None:
    """A short path for the usual heartbeat: a member of a stable group in its current generation.

    Returns the same outcome as `heartbeat`, or None where the general path must decide.
    """
    if group is None:
        return None
    member = group.members.get(command.member_id)
    if (
        member is None
        or group.state is not STABLE
        or command.generation != group.generation
        or command.instance_id is not None
    ):
        return None
    key = member.session_timer
    if key is None:
        key = member.session_timer = TimerKey(SESSION, group.group_id, member.member_id)
    return Outcome([], [HeartbeatAccepted(command.ticket)], {key: member.session_timeout_ms}, [])


def on_session_timeout(builder: OutcomeBuilder, group: ClassicGroup, member_id: MemberId) -> None:
    """Remove a member that sent no heartbeat in time, unless its session is suspended."""
    member = group.members.get(member_id)
    if member is None or member.is_session_suspended:
        return
    is_new = member.is_new
    departure = Departure.JOIN_EXPIRED if is_new else Departure.SESSION_EXPIRED
    trigger = Trigger.JOIN_EXPIRED if is_new else Trigger.SESSION_EXPIRED
    removal = join_phase.remove_member(builder, group, member, departure)
    if group.state is GroupState.PREPARING_REBALANCE:
        join_phase.end_join_if_all_joined(builder, group)
    else:
        cause = Cause(trigger=trigger, initiator=member.identity, removals=(removal,))
        join_phase.begin(builder, group, cause)


def on_pending_timeout(builder: OutcomeBuilder, group: ClassicGroup, member_id: MemberId) -> None:
    """Forget an issued member id that no join used in time (KIP-394)."""
    if member_id not in group.pending_join_members:
        return
    del group.pending_join_members[member_id]
    builder.emit(PendingExpired(at=builder.now, group_id=group.group_id, member_id=member_id))
    join_phase.end_join_if_all_joined(builder, group)
