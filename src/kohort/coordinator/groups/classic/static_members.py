"""Static members (KIP-345): a restarted instance takes the place of its earlier member.

It gets a new member id, and requests with the old member id are fenced.
"""

from kohort.coordinator.commands import NO_MEMBER, JoinGroup
from kohort.coordinator.events import InstanceReplaced, Trigger
from kohort.coordinator.groups.classic import join_phase, sync_phase
from kohort.coordinator.groups.classic.classic_member import ClassicMember
from kohort.coordinator.groups.classic.group import ClassicGroup
from kohort.coordinator.groups.classic.rebalance_trace import Cause
from kohort.coordinator.groups.classic.states import ACTIONS, GroupRequest, StateAction
from kohort.coordinator.outcome import TimerKind
from kohort.coordinator.outcome_builder import OutcomeBuilder
from kohort.coordinator.replies import Joined
from kohort.types import ErrorCode


def replace(builder: OutcomeBuilder, group: ClassicGroup, command: JoinGroup) -> None:
    """A known instance joins without a member id: a new member takes the place of the old one."""
    assert command.instance_id is not None
    old = group.members[group.static_members[command.instance_id]]
    new = _new_member(old, command)
    answer = ACTIONS[GroupRequest.JOIN_INSTANCE][group.state]
    if answer is StateAction.REBALANCE_IF_PROTOCOL and not _changes_protocol(group, old, new):
        _append_replacement(builder, group, old, new, command)
        return
    _fence(builder, old)
    group.replace(old, new)
    group.park_join(new, command.ticket)
    if group.trace is not None and answer is StateAction.PARK:
        group.trace.replaced(old.member_id, new.member_id)
    join_phase.trace_join(builder, group, new)
    _start_session(builder, group, old, new)
    _emit_replaced(builder, group, old, new, is_quiet=False)
    is_protocol_changed = answer is StateAction.REBALANCE_IF_PROTOCOL
    trigger = Trigger.PROTOCOL_CHANGED if is_protocol_changed else Trigger.INSTANCE_RESTARTED
    cause = Cause(trigger=trigger, initiator=new.identity, client_reason=command.reason)
    join_phase.begin_or_recheck(builder, group, cause)


def _new_member(old: ClassicMember, command: JoinGroup) -> ClassicMember:
    # As in Kafka, client id and host stay those of the first member of this instance.
    return ClassicMember(
        member_id=command.fresh_member_id,
        instance_id=old.instance_id,
        client_id=old.client_id,
        client_host=old.client_host,
        rebalance_timeout_ms=command.rebalance_timeout_ms,
        session_timeout_ms=command.session_timeout_ms,
        protocols=command.protocols,
        assignment=old.assignment,
    )


def _changes_protocol(group: ClassicGroup, old: ClassicMember, new: ClassicMember) -> bool:
    """Whether the group would choose another protocol with the new member."""
    protocols = old.protocols
    group.update_protocols(old, new.protocols)
    chosen = group.choose_protocol()
    group.update_protocols(old, protocols)
    return chosen != group.protocol


def _fence(builder: OutcomeBuilder, old: ClassicMember) -> None:
    """Refuse parked requests under the old member id: another process runs the instance now."""
    if old.join_ticket is not None:
        builder.refuse(old.join_ticket, ErrorCode.FENCED_INSTANCE_ID, old.member_id)
    if old.sync_ticket is not None:
        builder.refuse(old.sync_ticket, ErrorCode.FENCED_INSTANCE_ID)


def _append_replacement(
    builder: OutcomeBuilder,
    group: ClassicGroup,
    old: ClassicMember,
    new: ClassicMember,
    command: JoinGroup,
) -> None:
    """A stable group replaces the member without a rebalance, once the new id is stored."""
    group.pending_replacement = new
    was_leader = group.leader == old.member_id
    metadata = sync_phase.group_metadata(
        group, {m.member_id: m.assignment for m in group.members.values()}
    )
    builder.append(
        sync_phase.with_member_replaced(
            metadata, old.member_id, sync_phase.member_metadata(new, group.protocol, new.assignment)
        )
    )
    knows_skip = command.knows_skip_assignment
    leader = group.leader or NO_MEMBER
    builder.reply(
        Joined(
            ticket=command.ticket,
            member_id=new.member_id,
            generation=group.generation,
            protocol_type=group.protocol_type,
            protocol=group.protocol,
            # Clients that do not support skip_assignment get the old leader's id, so that they
            # do not act as the leader (KIP-814).
            leader=new.member_id if was_leader and knows_skip else leader,
            skip_assignment=was_leader and knows_skip,
            members=(
                join_phase.listed_members(group, old, new) if was_leader and knows_skip else ()
            ),
        )
    )
    _start_session(builder, group, old, new)
    _emit_replaced(builder, group, old, new, is_quiet=True)


def undo_replacement(builder: OutcomeBuilder, group: ClassicGroup) -> None:
    """The new member id could not be stored: the old member stays, with a restarted session."""
    assert group.pending_replacement is not None
    assert group.pending_replacement.instance_id is not None
    old = group.members[group.static_members[group.pending_replacement.instance_id]]
    join_phase.rearm_session(builder, group, old)
    group.pending_replacement = None


def _start_session(
    builder: OutcomeBuilder, group: ClassicGroup, old: ClassicMember, new: ClassicMember
) -> None:
    # DEVIATION: Kafka uses the old member's timeout for the first session of the new one.
    builder.disarm(TimerKind.SESSION, group.group_id, old.member_id)
    join_phase.rearm_session(builder, group, new)


def _emit_replaced(
    builder: OutcomeBuilder,
    group: ClassicGroup,
    old: ClassicMember,
    new: ClassicMember,
    *,
    is_quiet: bool,
) -> None:
    builder.emit(
        InstanceReplaced(
            at=builder.now,
            group_id=group.group_id,
            old_member_id=old.member_id,
            party=new.identity,
            is_quiet=is_quiet,
        )
    )
