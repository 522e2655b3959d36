"""How a classic group is created, resumed after loading, shut down, and what its timers do.

`undo` handles the one failure that is specific to it: a group metadata record was not stored.
"""

from typing import assert_never

from kohort.coordinator.events import Departure, RebalanceResult, Trigger
from kohort.coordinator.groups.classic import heartbeat, join_phase, static_members, sync_phase
from kohort.coordinator.groups.classic.group import ClassicGroup
from kohort.coordinator.groups.classic.rebalance_trace import Cause
from kohort.coordinator.groups.classic.states import GroupState
from kohort.coordinator.outcome import Outcome, TimerKind
from kohort.coordinator.outcome_builder import OutcomeBuilder
from kohort.coordinator.records import ClassicGroupMetadata
from kohort.types import ErrorCode, Generation, GroupId, MemberId


def create(builder: OutcomeBuilder, group_id: GroupId) -> ClassicGroup:
    """Create an empty group and store it, whatever becomes of the join that needs it."""
    builder.append(
        ClassicGroupMetadata(
            group_id=group_id,
            protocol_type="",
            generation=Generation(0),
            protocol=None,
            leader=None,
            state_since_ms=builder.now,
            members=(),
        )
    )
    return ClassicGroup(group_id, state_since_ms=builder.now)


def resume(builder: OutcomeBuilder, group: ClassicGroup) -> None:
    """Start the sessions of a restored group; rebalance it if it has too many members."""
    for member in group.members.values():
        join_phase.rearm_session(builder, group, member)
    if len(group.members) > builder.config.group_max_size:
        join_phase.begin(builder, group, Cause(trigger=Trigger.OVER_CAPACITY))


def force_rebalance(builder: OutcomeBuilder, group: ClassicGroup | None) -> None:
    """Do nothing if the group has no members, or if a rebalance waits for them already."""
    if group is not None and group.members:
        join_phase.begin_or_recheck(builder, group, Cause(trigger=Trigger.FORCED))


def shut_down(builder: OutcomeBuilder, group: ClassicGroup) -> None:
    """Refuse all parked requests, so that their clients look for the coordinator again."""
    for member in group.members.values():
        ticket = group.park_join(member, None)
        if ticket is not None:
            builder.refuse(ticket, ErrorCode.NOT_COORDINATOR, member.member_id)
        if member.sync_ticket is not None:
            builder.refuse(member.sync_ticket, ErrorCode.NOT_COORDINATOR)
            member.sync_ticket = None
    if group.trace is not None:
        builder.emit(group.trace.end(group.group_id, group, RebalanceResult.ABANDONED, builder.now))
    join_phase.move(builder, group, GroupState.DEAD)


def remove_members(builder: OutcomeBuilder, group: ClassicGroup) -> None:
    """Remove all members of a group that is deleted in spite of them."""
    if group.trace is not None:
        builder.emit(group.trace.end(group.group_id, group, RebalanceResult.ABANDONED, builder.now))
        group.trace = None
    for member in tuple(group.members.values()):
        join_phase.remove_member(builder, group, member, Departure.REMOVED)
    for kind in tuple(group.armed_timers):
        group.disarm(builder, kind)


def on_timer(
    builder: OutcomeBuilder, group: ClassicGroup, kind: TimerKind, member_id: MemberId
) -> None:
    group.armed_timers.discard(kind)
    match kind:
        case TimerKind.SESSION:
            heartbeat.on_session_timeout(builder, group, member_id)
        case TimerKind.PENDING:
            heartbeat.on_pending_timeout(builder, group, member_id)
        case TimerKind.INITIAL_DELAY:
            join_phase.on_initial_delay(builder, group)
        case TimerKind.JOIN:
            join_phase.on_join_timeout(builder, group)
        case TimerKind.SYNC:
            sync_phase.on_sync_timeout(builder, group)
        case TimerKind.EXPIRY:
            raise AssertionError("the expiry timer belongs to no group")
        case _:
            assert_never(kind)


def undo(
    builder: OutcomeBuilder,
    group: ClassicGroup,
    failed: Outcome,
    record: ClassicGroupMetadata,
    error: ErrorCode,
) -> bool:
    """A group metadata record was not stored. Return whether the group still exists."""
    if group.stored is None and record.generation == 0:
        for member in group.members.values():
            if member.join_ticket is not None:
                builder.refuse(member.join_ticket, error)
        return False
    if group.state is GroupState.COMPLETING_REBALANCE:
        builder.outcome.timers = failed.timers
        sync_phase.on_assignment_not_stored(builder, group, error)
    elif group.state is GroupState.PREPARING_REBALANCE:
        # The new generation has no members, so nothing is lost if only memory knows of it.
        builder.outcome.timers, builder.outcome.events = failed.timers, failed.events
        group.follow(record)
    else:
        static_members.undo_replacement(builder, group)
    return True
