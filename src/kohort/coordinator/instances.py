"""Static members (KIP-345): an instance that comes back takes its own place again.

Its new self gets a new id; whoever still speaks under the old one is fenced.
"""

from kohort.coordinator import assignment, rebalance
from kohort.coordinator.commands import NO_MEMBER, JoinGroup
from kohort.coordinator.group import Group, Member, Roster
from kohort.coordinator.notes import InstanceReplaced, Trigger
from kohort.coordinator.outcome import TimerKind
from kohort.coordinator.replies import Joined
from kohort.coordinator.states import ANSWERS, Answer, Question
from kohort.coordinator.story import Cause
from kohort.coordinator.turn import Turn
from kohort.types import ErrorCode


def replace(turn: Turn, group: Group, command: JoinGroup) -> None:
    """A static member comes back without an id: its new self takes the old one's place."""
    roster = group.roster
    assert command.instance_id is not None
    old = roster.members[roster.instances[command.instance_id]]
    new = _next_self(old, command)
    answer = ANSWERS[Question.JOIN_INSTANCE][roster.state]
    if answer is Answer.REBALANCE_IF_PROTOCOL and not _turns_protocol(roster, old, new):
        _promise_replacement(turn, group, old, new, command)
        return
    _fence(turn, old)
    roster.replace(old, new)
    roster.park_join(new, command.ticket)
    if roster.story is not None and answer is Answer.PARK:
        roster.story.replaced(old.member_id, new.member_id)
    rebalance.note_joined(turn, roster, new)
    _start_session(turn, group, old, new)
    _note_replaced(turn, group, old, new, is_quiet=False)
    is_turned = answer is Answer.REBALANCE_IF_PROTOCOL
    trigger = Trigger.PROTOCOL_CHANGED if is_turned else Trigger.INSTANCE_RESTARTED
    cause = Cause(trigger=trigger, culprit=new.party, client_reason=command.reason)
    rebalance.begin_or_recheck(turn, group, cause)


def _next_self(old: Member, command: JoinGroup) -> Member:
    # Client id and host stay those of the first self, as in Kafka, until the group forms anew.
    return Member(
        member_id=command.fresh_member_id,
        instance_id=old.instance_id,
        client_id=old.client_id,
        client_host=old.client_host,
        rebalance_timeout_ms=command.rebalance_timeout_ms,
        session_timeout_ms=command.session_timeout_ms,
        protocols=command.protocols,
        assignment=old.assignment,
    )


def _turns_protocol(roster: Roster, old: Member, new: Member) -> bool:
    """Whether the group would choose another protocol with the new self in the old one's place."""
    kept = old.protocols
    roster.update_protocols(old, new.protocols)
    chosen = roster.choose_protocol()
    roster.update_protocols(old, kept)
    return chosen != roster.protocol


def _fence(turn: Turn, old: Member) -> None:
    """Whoever still waits under the old id is a twin that must stop."""
    if old.join_ticket is not None:
        turn.refuse(old.join_ticket, ErrorCode.FENCED_INSTANCE_ID, old.member_id)
    if old.sync_ticket is not None:
        turn.refuse(old.sync_ticket, ErrorCode.FENCED_INSTANCE_ID)


def _promise_replacement(
    turn: Turn, group: Group, old: Member, new: Member, command: JoinGroup
) -> None:
    """A stable group takes its static member back without a rebalance, once the new id is kept."""
    roster = group.roster
    roster.arriving = new
    was_leader = roster.leader == old.member_id
    formed = assignment.formed_generation(
        group, {m.member_id: m.assignment for m in roster.members.values()}
    )
    turn.keep(
        assignment.with_member_replaced(
            formed, old.member_id, assignment.formed_member(new, roster.protocol, new.assignment)
        )
    )
    knows_skip = command.knows_skip_assignment
    leader = roster.leader or NO_MEMBER
    turn.reply(
        Joined(
            ticket=command.ticket,
            member_id=new.member_id,
            generation=roster.generation,
            protocol_type=roster.protocol_type,
            protocol=roster.protocol,
            # Clients that cannot be told to skip the assignment are given the old leader's id,
            # so that they do not take themselves for the leader (KIP-814).
            leader=new.member_id if was_leader and knows_skip else leader,
            skip_assignment=was_leader and knows_skip,
            members=(
                rebalance.listed_members(roster, old, new) if was_leader and knows_skip else ()
            ),
        )
    )
    _start_session(turn, group, old, new)
    _note_replaced(turn, group, old, new, is_quiet=True)


def keep_old_self(turn: Turn, group: Group) -> None:
    """The new id could not be kept: the old one is still the member's, and lives on."""
    roster = group.roster
    assert roster.arriving is not None
    assert roster.arriving.instance_id is not None
    old = roster.members[roster.instances[roster.arriving.instance_id]]
    rebalance.rearm_session(turn, group, old)
    roster.arriving = None


def _start_session(turn: Turn, group: Group, old: Member, new: Member) -> None:
    # DEVIATION: Kafka measures the new self's first session by the old one's timeout.
    turn.disarm(TimerKind.SESSION, group.group_id, old.member_id)
    rebalance.rearm_session(turn, group, new)


def _note_replaced(turn: Turn, group: Group, old: Member, new: Member, *, is_quiet: bool) -> None:
    turn.note(
        InstanceReplaced(
            at=turn.now,
            group_id=group.group_id,
            old_member_id=old.member_id,
            party=new.party,
            is_quiet=is_quiet,
        )
    )
