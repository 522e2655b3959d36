"""The start of a rebalance, and its first phase: all members join, or the timeout ends it.

What depends on a stored record only goes into the outcome here. The group changes when the record
is applied.
"""

from kohort.coordinator.events import (
    Departure,
    JoinEnd,
    JoinPhaseExtended,
    MemberGone,
    MemberRemoval,
    RebalanceResult,
    RebalanceStarted,
    StateChanged,
)
from kohort.coordinator.groups.classic.classic_member import ClassicMember
from kohort.coordinator.groups.classic.group import ClassicGroup
from kohort.coordinator.groups.classic.rebalance_trace import Cause, RebalanceTrace
from kohort.coordinator.groups.classic.states import LEGAL, GroupState
from kohort.coordinator.outcome import SESSION, TimerKind
from kohort.coordinator.outcome_builder import OutcomeBuilder
from kohort.coordinator.records import ClassicGroupMember, ClassicGroupMetadata
from kohort.coordinator.replies import Joined, JoinedMember
from kohort.types import ErrorCode, Generation, MemberId


def begin_or_recheck(builder: OutcomeBuilder, group: ClassicGroup, cause: Cause) -> None:
    """Begin a rebalance where the state allows it, else check whether the join phase can end."""
    if GroupState.PREPARING_REBALANCE in LEGAL[group.state]:
        begin(builder, group, cause)
    else:
        recheck(builder, group)


def begin(builder: OutcomeBuilder, group: ClassicGroup, cause: Cause) -> None:
    if group.state is GroupState.COMPLETING_REBALANCE:
        _interrupt(builder, group)
    group.pending_sync_members.clear()
    group.disarm(builder, TimerKind.SYNC)
    _start_trace(builder, group, cause)
    is_initial = group.state is GroupState.EMPTY
    move(builder, group, GroupState.PREPARING_REBALANCE)
    if is_initial:
        _delay(builder, group)
    elif group.has_all_joined:
        complete_join(builder, group, JoinEnd.ALL_JOINED)
    else:
        group.arm(builder, TimerKind.JOIN, group.rebalance_timeout_ms)


def recheck(builder: OutcomeBuilder, group: ClassicGroup) -> None:
    """End the join phase if all members have joined; a new group waits for its initial delay."""
    if group.previous_state is not GroupState.EMPTY:
        end_join_if_all_joined(builder, group)


def end_join_if_all_joined(builder: OutcomeBuilder, group: ClassicGroup) -> None:
    if group.state is GroupState.PREPARING_REBALANCE and group.has_all_joined:
        complete_join(builder, group, JoinEnd.ALL_JOINED)


def _delay(builder: OutcomeBuilder, group: ClassicGroup) -> None:
    delay_ms = builder.config.group_initial_rebalance_delay_ms
    group.initial_delay_ms = delay_ms
    group.initial_remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
    group.arm(builder, TimerKind.INITIAL_DELAY, delay_ms)


def on_initial_delay(builder: OutcomeBuilder, group: ClassicGroup) -> None:
    """Extend the delay if the group is still growing, at most up to its rebalance timeout."""
    if group.state is not GroupState.PREPARING_REBALANCE:
        return
    remaining_ms = group.initial_remaining_ms
    if not group.is_still_growing or remaining_ms == 0:
        complete_join(builder, group, JoinEnd.INITIAL_DELAY)
        return
    group.is_still_growing = False
    group.initial_remaining_ms = max(remaining_ms - group.initial_delay_ms, 0)
    group.initial_delay_ms = min(builder.config.group_initial_rebalance_delay_ms, remaining_ms)
    group.arm(builder, TimerKind.INITIAL_DELAY, group.initial_delay_ms)


def on_join_timeout(builder: OutcomeBuilder, group: ClassicGroup) -> None:
    if group.state is GroupState.PREPARING_REBALANCE:
        complete_join(builder, group, JoinEnd.TIMEOUT)


def complete_join(builder: OutcomeBuilder, group: ClassicGroup, ended_by: JoinEnd) -> None:
    group_id = group.group_id
    group.disarm(builder, TimerKind.JOIN)
    group.disarm(builder, TimerKind.INITIAL_DELAY)
    # DEVIATION: Kafka does not clear this flag, and may extend the next initial delay needlessly.
    group.is_still_growing = False
    _remove_absent(builder, group)
    if not group.members:
        _append_empty(builder, group, ended_by)
    elif not _elect_leader(group):
        builder.emit(JoinPhaseExtended(at=builder.now, group_id=group_id))
        # DEVIATION: if no member has joined again, Kafka waits for another rebalance timeout, and
        # repeats this without a pause if that is 0. Here the wait is at least
        # group.min.session.timeout.ms.
        shortest_ms = builder.config.group_min_session_timeout_ms
        group.arm(builder, TimerKind.JOIN, max(group.rebalance_timeout_ms, shortest_ms))
    else:
        _form_generation(builder, group, ended_by)


def _remove_absent(builder: OutcomeBuilder, group: ClassicGroup) -> None:
    """Remove dynamic members that did not rejoin; static members stay in the group."""
    if group.joined_count == len(group.members):
        return
    for member in list(group.members.values()):
        if member.join_ticket is None and member.instance_id is None:
            remove_member(builder, group, member, Departure.NOT_REJOINED)


def _elect_leader(group: ClassicGroup) -> bool:
    """Keep the leader if it rejoined, else choose the first member that did. False if none did."""
    if group.leader is not None and group.members[group.leader].join_ticket is not None:
        return True
    for member in group.members.values():
        if member.join_ticket is not None:
            group.leader = member.member_id
            return True
    return False


def _form_generation(builder: OutcomeBuilder, group: ClassicGroup, ended_by: JoinEnd) -> None:
    group.generation = Generation(group.generation + 1)
    group.protocol = group.choose_protocol()
    group.recompute_subscribed_topics()
    move(builder, group, GroupState.COMPLETING_REBALANCE)
    if group.trace is not None:
        group.trace.end_join(group, ended_by, builder.now)
    for member in group.members.values():
        answer_join(builder, group, member)
        rearm_session(builder, group, member)
        member.is_new = False
    group.pending_sync_members = dict.fromkeys(group.members)
    group.arm(builder, TimerKind.SYNC, group.rebalance_timeout_ms)


def answer_join(builder: OutcomeBuilder, group: ClassicGroup, member: ClassicMember) -> None:
    """Answer a parked join with the current generation; only the leader gets the member list."""
    ticket = group.park_join(member, None)
    if ticket is None:
        return
    is_leader = group.leader == member.member_id
    builder.reply(
        Joined(
            ticket,
            member.member_id,
            group.generation,
            group.protocol_type,
            group.protocol,
            group.leader or MemberId(""),
            skip_assignment=False,
            members=listed_members(group) if is_leader else (),
        )
    )


def listed_members(
    group: ClassicGroup, old: ClassicMember | None = None, new: ClassicMember | None = None
) -> tuple[JoinedMember, ...]:
    """Return the member list for the leader, with `new` in the place of `old` if they are given."""
    members = [new if m is old and new else m for m in group.members.values()]
    protocol = group.protocol
    return tuple([JoinedMember(m.member_id, m.instance_id, m.metadata(protocol)) for m in members])


def _append_empty(builder: OutcomeBuilder, group: ClassicGroup, ended_by: JoinEnd) -> None:
    generation = Generation(group.generation + 1)
    builder.append(
        ClassicGroupMetadata(
            group_id=group.group_id,
            protocol_type=group.protocol_type or "",
            generation=generation,
            protocol=None,
            leader=None,
            state_since_ms=builder.now,
            members=(),
        )
    )
    builder.emit(changed(builder, group, GroupState.EMPTY))
    if group.trace is not None:
        group.trace.end_join(group, ended_by, builder.now)
        builder.emit(
            group.trace.end(
                group.group_id, group, RebalanceResult.EMPTY, builder.now, generation=generation
            )
        )


# Shared with the other files of this package


def move(builder: OutcomeBuilder, group: ClassicGroup, state: GroupState) -> None:
    builder.emit(changed(builder, group, state))
    group.move(state, builder.now)


def rearm_session(builder: OutcomeBuilder, group: ClassicGroup, member: ClassicMember) -> None:
    builder.arm(SESSION, group.group_id, member.session_timeout_ms, member.member_id)


def remove_member(
    builder: OutcomeBuilder,
    group: ClassicGroup,
    member: ClassicMember,
    departure: Departure,
    client_reason: str | None = None,
) -> MemberRemoval:
    """Remove a member and its timer, and refuse its parked requests."""
    ticket = group.park_join(member, None)
    if ticket is not None:
        # The response carries no member id, so the client joins as a new member.
        builder.refuse(ticket, ErrorCode.UNKNOWN_MEMBER_ID)
    if member.sync_ticket is not None:
        # DEVIATION: Kafka never answers the parked SyncGroup of a removed member.
        builder.refuse(member.sync_ticket, ErrorCode.UNKNOWN_MEMBER_ID)
        member.sync_ticket = None
    group.remove(member.member_id)
    builder.disarm(TimerKind.SESSION, group.group_id, member.member_id)
    removal = MemberRemoval(party=member.identity, departure=departure)
    if group.state is GroupState.PREPARING_REBALANCE and group.trace is not None:
        group.trace.removals.append(removal)
    builder.emit(
        MemberGone(
            at=builder.now,
            group_id=group.group_id,
            party=member.identity,
            departure=departure,
            client_reason=client_reason,
        )
    )
    return removal


def _interrupt(builder: OutcomeBuilder, group: ClassicGroup) -> None:
    """Give up the generation being completed: refuse parked syncs and clear assignments."""
    refuse_syncs(builder, group, ErrorCode.REBALANCE_IN_PROGRESS)
    for member in group.members.values():
        member.assignment = b""
    if group.trace is not None:
        builder.emit(
            group.trace.end(group.group_id, group, RebalanceResult.INTERRUPTED, builder.now)
        )


def refuse_syncs(builder: OutcomeBuilder, group: ClassicGroup, error: ErrorCode) -> None:
    for member in group.members.values():
        if member.sync_ticket is not None:
            builder.refuse(member.sync_ticket, error)
            member.sync_ticket = None
            rearm_session(builder, group, member)


def _start_trace(builder: OutcomeBuilder, group: ClassicGroup, cause: Cause) -> None:
    stored_members = group.stored.members if group.stored is not None else ()
    group.trace = RebalanceTrace(
        cause=cause,
        state_before=group.state,
        generation_before=group.generation,
        started_ms=builder.now,
        had={_current_id(group, stored): stored.assignment for stored in stored_members},
        joined_ms={
            member.member_id: builder.now
            for member in group.members.values()
            if member.join_ticket is not None
        },
        removals=list(cause.removals),
    )
    waited_for = (m.member_id for m in group.members.values() if m.join_ticket is None)
    builder.emit(
        RebalanceStarted(
            at=builder.now,
            group_id=group.group_id,
            generation=group.generation,
            trigger=cause.trigger,
            initiator=cause.initiator,
            client_reason=cause.client_reason,
            state_before=group.state,
            waited_for=tuple(waited_for),
        )
    )


def _current_id(group: ClassicGroup, stored: ClassicGroupMember) -> MemberId:
    """A restarted static member has another member id than the stored one."""
    if stored.instance_id is None:
        return stored.member_id
    return group.static_members.get(stored.instance_id, stored.member_id)


def trace_join(builder: OutcomeBuilder, group: ClassicGroup, member: ClassicMember) -> None:
    """Record in the trace when a member joined."""
    if group.state is GroupState.PREPARING_REBALANCE and group.trace is not None:
        group.trace.joined_ms[member.member_id] = builder.now


def changed(builder: OutcomeBuilder, group: ClassicGroup, after: GroupState) -> StateChanged:
    return StateChanged(at=builder.now, group_id=group.group_id, before=group.state, after=after)
