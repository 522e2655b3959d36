"""The second phase of a rebalance: the leader's assignment is kept, then everyone learns it.

Until the record is kept nobody hears of it, and if it cannot be kept the group starts over.
"""

from typing import Final

from kohort.coordinator import rebalance
from kohort.coordinator.commands import MemberAssignment, SyncGroup
from kohort.coordinator.group import Group, Member, Roster
from kohort.coordinator.notes import Departure, Ending, Trigger
from kohort.coordinator.outcome import TimerKind
from kohort.coordinator.records import FormedMember, GenerationFormed
from kohort.coordinator.replies import Synced
from kohort.coordinator.states import GroupState
from kohort.coordinator.story import Cause
from kohort.coordinator.turn import Turn
from kohort.types import ErrorCode, MemberId, maker


def park_sync(turn: Turn, group: Group, member: Member, command: SyncGroup) -> None:
    """Hold a member's sync until the assignment is kept; the leader's brings it."""
    roster = group.roster
    if member.sync_ticket is not None:
        # DEVIATION: Kafka forgets a sync that its own member has repeated; here it is answered.
        turn.refuse(member.sync_ticket, ErrorCode.REBALANCE_IN_PROGRESS)
    member.sync_ticket = command.ticket
    mark_synced(turn, group, member)
    if roster.leader == member.member_id:
        _promise_assignment(turn, group, command.assignments)


def mark_synced(turn: Turn, group: Group, member: Member) -> None:
    roster = group.roster
    roster.unsynced.pop(member.member_id, None)
    if not roster.unsynced:
        turn.disarm_phase(group, TimerKind.SYNC)
    if roster.story is not None:
        roster.story.synced_ms.setdefault(member.member_id, turn.now)


def answer_sync(turn: Turn, roster: Roster, member: Member, command: SyncGroup) -> None:
    turn.reply(
        Synced(
            ticket=command.ticket,
            protocol_type=roster.protocol_type,
            protocol=roster.protocol,
            assignment=member.assignment,
        )
    )


def _promise_assignment(
    turn: Turn, group: Group, assignments: tuple[MemberAssignment, ...]
) -> None:
    """Keep the leader's assignment, then tell everyone who waits; who is missing gets nothing."""
    roster = group.roster
    given = {each.member_id: each.assignment for each in assignments}
    turn.keep(formed_generation(group, given))
    turn.note(rebalance.changed(turn, group, GroupState.STABLE))
    if roster.story is not None:
        turn.note(roster.story.end(group.group_id, roster, Ending.STABLE, turn.now, got=given))
    protocol_type, protocol = roster.protocol_type, roster.protocol
    for member in roster.members.values():
        if member.sync_ticket is not None:
            share = given.get(member.member_id, b"")
            turn.reply(_make_synced(member.sync_ticket, protocol_type, protocol, share))
            rebalance.rearm_session(turn, group, member)


# Every rebalance makes as many of these as there are members.
_make_synced: Final = maker(Synced)
_make_formed: Final = maker(FormedMember)


def formed_generation(group: Group, assignments: dict[MemberId, bytes]) -> GenerationFormed:
    roster = group.roster
    return GenerationFormed(
        group_id=group.group_id,
        protocol_type=roster.protocol_type or "",
        generation=roster.generation,
        protocol=roster.protocol,
        leader=roster.leader,
        state_since_ms=roster.state_since_ms,
        members=tuple(
            [
                formed_member(member, roster.protocol, assignments.get(member.member_id, b""))
                for member in roster.members.values()
            ]
        ),
    )


def with_member_replaced(
    formed: GenerationFormed, old_id: MemberId, new: FormedMember
) -> GenerationFormed:
    return GenerationFormed(
        group_id=formed.group_id,
        protocol_type=formed.protocol_type,
        generation=formed.generation,
        protocol=formed.protocol,
        leader=new.member_id if formed.leader == old_id else formed.leader,
        state_since_ms=formed.state_since_ms,
        members=tuple(new if m.member_id == old_id else m for m in formed.members),
    )


def formed_member(member: Member, protocol: str | None, assignment: bytes) -> FormedMember:
    return _make_formed(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.session_timeout_ms,
        member.metadata(protocol),
        assignment,
    )


def on_sync_timeout(turn: Turn, group: Group) -> None:
    """Whoever joined but never asked for its share, static or not, is out."""
    roster = group.roster
    if roster.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
        return
    late = [roster.members[member_id] for member_id in roster.unsynced]
    if not late:
        return
    removals = tuple(
        rebalance.expel(turn, group, member, Departure.SYNC_EXPIRED) for member in late
    )
    cause = Cause(trigger=Trigger.SYNC_EXPIRED, culprit=late[0].party, removals=removals)
    rebalance.begin(turn, group, cause)


def on_assignment_not_kept(turn: Turn, group: Group, error: ErrorCode) -> None:
    """The leader's assignment is lost: tell everyone who waits, and rebalance."""
    roster = group.roster
    culprit = roster.members[roster.leader].party if roster.leader is not None else None
    rebalance.refuse_syncs(turn, group, error)
    rebalance.begin(turn, group, Cause(trigger=Trigger.ASSIGNMENT_NOT_STORED, culprit=culprit))
