"""How a rebalance begins, and its first phase: everyone joins, or the time for it is over.

Whatever depends on a record being kept is only promised here, in the outcome; it happens when the
record is applied.
"""

from typing import Final

from kohort.coordinator.group import Group, Member, Roster
from kohort.coordinator.notes import (
    Departure,
    Ending,
    JoinEnd,
    MemberGone,
    NobodyRejoined,
    RebalanceStarted,
    Removal,
    StateChanged,
)
from kohort.coordinator.outcome import SESSION, TimerKind
from kohort.coordinator.records import FormedMember, GenerationFormed
from kohort.coordinator.replies import Joined, JoinedMember
from kohort.coordinator.states import LEGAL, GroupState
from kohort.coordinator.story import Cause, Story
from kohort.coordinator.turn import Turn
from kohort.types import ErrorCode, Generation, MemberId, maker

# The join phase


def begin_or_recheck(turn: Turn, group: Group, cause: Cause) -> None:
    """Begin a rebalance where the state allows it, else see whether the running one can go on."""
    if GroupState.PREPARING_REBALANCE in LEGAL[group.roster.state]:
        begin(turn, group, cause)
    else:
        recheck(turn, group)


def begin(turn: Turn, group: Group, cause: Cause) -> None:
    roster = group.roster
    if roster.state is GroupState.COMPLETING_REBALANCE:
        _interrupt(turn, group)
    roster.unsynced.clear()
    turn.disarm_phase(group, TimerKind.SYNC)
    _open_story(turn, group, cause)
    is_initial = roster.state is GroupState.EMPTY
    move(turn, group, GroupState.PREPARING_REBALANCE)
    if is_initial:
        _delay(turn, group)
    elif roster.has_all_joined:
        complete_join(turn, group, JoinEnd.ALL_JOINED)
    else:
        turn.arm_phase(group, TimerKind.JOIN, roster.rebalance_timeout_ms)


def recheck(turn: Turn, group: Group) -> None:
    """End the join phase if everyone is in; a starting group waits for its delay regardless."""
    if group.roster.previous_state is not GroupState.EMPTY:
        end_join_if_all_joined(turn, group)


def end_join_if_all_joined(turn: Turn, group: Group) -> None:
    roster = group.roster
    if roster.state is GroupState.PREPARING_REBALANCE and roster.has_all_joined:
        complete_join(turn, group, JoinEnd.ALL_JOINED)


def _delay(turn: Turn, group: Group) -> None:
    roster, delay_ms = group.roster, turn.limits.group_initial_rebalance_delay_ms
    roster.initial_delay_ms = delay_ms
    roster.initial_remaining_ms = max(roster.rebalance_timeout_ms - delay_ms, 0)
    turn.arm_phase(group, TimerKind.INITIAL_DELAY, delay_ms)


def on_initial_delay(turn: Turn, group: Group) -> None:
    """Wait once more if the group is still growing, but never past its rebalance timeout."""
    roster = group.roster
    if roster.state is not GroupState.PREPARING_REBALANCE:
        return
    remaining_ms = roster.initial_remaining_ms
    if not roster.is_still_growing or remaining_ms == 0:
        complete_join(turn, group, JoinEnd.INITIAL_DELAY)
        return
    roster.is_still_growing = False
    roster.initial_remaining_ms = max(remaining_ms - roster.initial_delay_ms, 0)
    roster.initial_delay_ms = min(turn.limits.group_initial_rebalance_delay_ms, remaining_ms)
    turn.arm_phase(group, TimerKind.INITIAL_DELAY, roster.initial_delay_ms)


def on_join_timeout(turn: Turn, group: Group) -> None:
    if group.roster.state is GroupState.PREPARING_REBALANCE:
        complete_join(turn, group, JoinEnd.TIMEOUT)


def complete_join(turn: Turn, group: Group, ended_by: JoinEnd) -> None:
    roster, group_id = group.roster, group.group_id
    turn.disarm_phase(group, TimerKind.JOIN)
    turn.disarm_phase(group, TimerKind.INITIAL_DELAY)
    # DEVIATION: Kafka forgets to clear this, and may extend the next initial delay for nobody.
    roster.is_still_growing = False
    _remove_absent(turn, group)
    if not roster.members:
        _promise_empty(turn, group, ended_by)
    elif not _elect_leader(roster):
        turn.note(NobodyRejoined(at=turn.now, group_id=group_id))
        # DEVIATION: Kafka waits for the rebalance timeout once more, without an end if that is
        # nothing; here at least for the shortest session.
        shortest_ms = turn.limits.group_min_session_timeout_ms
        turn.arm_phase(group, TimerKind.JOIN, max(roster.rebalance_timeout_ms, shortest_ms))
    else:
        _form_generation(turn, group, ended_by)


def _remove_absent(turn: Turn, group: Group) -> None:
    """Dynamic members that did not rejoin are out; static ones keep their place."""
    if group.roster.joined_count == len(group.roster.members):
        return
    for member in list(group.roster.members.values()):
        if member.join_ticket is None and member.instance_id is None:
            expel(turn, group, member, Departure.NOT_REJOINED)


def _elect_leader(roster: Roster) -> bool:
    """Keep the leader if it rejoined, else take the first member that did, if any."""
    if roster.leader is not None and roster.members[roster.leader].join_ticket is not None:
        return True
    for member in roster.members.values():
        if member.join_ticket is not None:
            roster.leader = member.member_id
            return True
    return False


def _form_generation(turn: Turn, group: Group, ended_by: JoinEnd) -> None:
    roster = group.roster
    roster.generation = Generation(roster.generation + 1)
    roster.protocol = roster.choose_protocol()
    roster.recompute_subscribed_topics()
    move(turn, group, GroupState.COMPLETING_REBALANCE)
    if roster.story is not None:
        roster.story.end_join(roster, ended_by, turn.now)
    for member in roster.members.values():
        answer_join(turn, group, member)
        rearm_session(turn, group, member)
        member.is_new = False
    roster.unsynced = dict.fromkeys(roster.members)
    turn.arm_phase(group, TimerKind.SYNC, roster.rebalance_timeout_ms)


def answer_join(turn: Turn, group: Group, member: Member) -> None:
    """Tell a parked member of the present generation; only the leader hears who else is in it."""
    roster = group.roster
    ticket = roster.park_join(member, None)
    if ticket is None:
        return
    is_leader = roster.leader == member.member_id
    turn.reply(
        _make_joined(
            ticket,
            member.member_id,
            roster.generation,
            roster.protocol_type,
            roster.protocol,
            roster.leader or MemberId(""),
            skip_assignment=False,
            members=listed_members(roster) if is_leader else (),
        )
    )


def listed_members(
    roster: Roster, old: Member | None = None, new: Member | None = None
) -> tuple[JoinedMember, ...]:
    """What the leader is told of everyone; `new` stands in for `old` where one takes its place."""
    members = [new if m is old and new else m for m in roster.members.values()]
    protocol = roster.protocol
    return tuple([_make_listed(m.member_id, m.instance_id, m.metadata(protocol)) for m in members])


# Every rebalance makes as many of these as there are members.
_make_joined: Final = maker(Joined)
_make_listed: Final = maker(JoinedMember)


def _promise_empty(turn: Turn, group: Group, ended_by: JoinEnd) -> None:
    roster = group.roster
    generation = Generation(roster.generation + 1)
    turn.keep(
        GenerationFormed(
            group_id=group.group_id,
            protocol_type=roster.protocol_type or "",
            generation=generation,
            protocol=None,
            leader=None,
            state_since_ms=turn.now,
            members=(),
        )
    )
    turn.note(changed(turn, group, GroupState.EMPTY))
    if roster.story is not None:
        roster.story.end_join(roster, ended_by, turn.now)
        turn.note(
            roster.story.end(group.group_id, roster, Ending.EMPTY, turn.now, generation=generation)
        )


# What other files share


def move(turn: Turn, group: Group, state: GroupState) -> None:
    turn.note(changed(turn, group, state))
    group.roster.move(state, turn.now)


def rearm_session(turn: Turn, group: Group, member: Member) -> None:
    turn.arm(SESSION, group.group_id, member.session_timeout_ms, member.member_id)


def expel(
    turn: Turn,
    group: Group,
    member: Member,
    departure: Departure,
    client_reason: str | None = None,
) -> Removal:
    """Take a member out, with its timer, answering what it has parked."""
    ticket = group.roster.park_join(member, None)
    if ticket is not None:
        # No id in the answer: whoever still waits there is to begin anew.
        turn.refuse(ticket, ErrorCode.UNKNOWN_MEMBER_ID)
    if member.sync_ticket is not None:
        # DEVIATION: Kafka lets the sync of a removed member time out at the client.
        turn.refuse(member.sync_ticket, ErrorCode.UNKNOWN_MEMBER_ID)
        member.sync_ticket = None
    group.roster.remove(member.member_id)
    turn.disarm(TimerKind.SESSION, group.group_id, member.member_id)
    removal = Removal(party=member.party, departure=departure)
    if group.roster.state is GroupState.PREPARING_REBALANCE and group.roster.story is not None:
        group.roster.story.removals.append(removal)
    turn.note(
        MemberGone(
            at=turn.now,
            group_id=group.group_id,
            party=member.party,
            departure=departure,
            client_reason=client_reason,
        )
    )
    return removal


def _interrupt(turn: Turn, group: Group) -> None:
    """The generation being completed is lost: waiting syncs are to rejoin, shares are void."""
    roster = group.roster
    refuse_syncs(turn, group, ErrorCode.REBALANCE_IN_PROGRESS)
    for member in roster.members.values():
        member.assignment = b""
    if roster.story is not None:
        turn.note(roster.story.end(group.group_id, roster, Ending.INTERRUPTED, turn.now))


def refuse_syncs(turn: Turn, group: Group, error: ErrorCode) -> None:
    for member in group.roster.members.values():
        if member.sync_ticket is not None:
            turn.refuse(member.sync_ticket, error)
            member.sync_ticket = None
            rearm_session(turn, group, member)


def _open_story(turn: Turn, group: Group, cause: Cause) -> None:
    roster = group.roster
    kept_members = group.formed.members if group.formed is not None else ()
    roster.story = Story(
        cause=cause,
        state_before=roster.state,
        generation_before=roster.generation,
        started_ms=turn.now,
        had={_holder(roster, kept): kept.assignment for kept in kept_members},
        joined_ms={
            member.member_id: turn.now
            for member in roster.members.values()
            if member.join_ticket is not None
        },
        removals=list(cause.removals),
    )
    waited_for = (m.member_id for m in roster.members.values() if m.join_ticket is None)
    turn.note(
        RebalanceStarted(
            at=turn.now,
            group_id=group.group_id,
            generation=roster.generation,
            trigger=cause.trigger,
            culprit=cause.culprit,
            client_reason=cause.client_reason,
            state_before=roster.state,
            waited_for=tuple(waited_for),
        )
    )


def _holder(roster: Roster, kept: FormedMember) -> MemberId:
    """What an instance had, it has under its new id."""
    if kept.instance_id is None:
        return kept.member_id
    return roster.instances.get(kept.instance_id, kept.member_id)


def note_joined(turn: Turn, roster: Roster, member: Member) -> None:
    """The story remembers when each member came."""
    if roster.state is GroupState.PREPARING_REBALANCE and roster.story is not None:
        roster.story.joined_ms[member.member_id] = turn.now


def changed(turn: Turn, group: Group, after: GroupState) -> StateChanged:
    return StateChanged(
        at=turn.now, group_id=group.group_id, before=group.roster.state, after=after
    )
