"""What must hold after every step of the coordinator, whatever was asked before.

A rule is a function that yields its offences as sentences; an innocent machine yields none. They
look at the machine as it stands, at the timers that are set, and at what has been said so far.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain

from kohort.coordinator.commands import (
    Command,
    CommitOffsets,
    CommitTransactionOffsets,
    Heartbeat,
    SyncGroup,
    Ticket,
)
from kohort.coordinator.group import Group, Member
from kohort.coordinator.limits import Limits
from kohort.coordinator.machine import Coordinator
from kohort.coordinator.notes import (
    Departure,
    Ending,
    GroupDeleted,
    MemberGone,
    Note,
    RebalanceEnded,
    RebalanceStarted,
    StateChanged,
)
from kohort.coordinator.outcome import Outcome, TimerKey, TimerKind
from kohort.coordinator.recordcodec import decode_record, encode_record
from kohort.coordinator.records import (
    GenerationFormed,
    GroupRemoved,
    OffsetCommitted,
    OffsetRemoved,
    OneRecord,
    TransactionEnded,
)
from kohort.coordinator.replies import Joined, Refused, Reply
from kohort.coordinator.states import GroupState
from kohort.types import ErrorCode, Generation, GroupId, Millis, Partition, Topic

Offences = Iterator[str]

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = GroupState

PHASE_TIMERS = {
    TimerKind.INITIAL_DELAY: (PREPARING,),
    TimerKind.JOIN: (PREPARING,),
    TimerKind.SYNC: (COMPLETING, STABLE),
}
"""The timers that belong to a group rather than to a member, and where they may run."""

OF_A_GENERATION = (CommitOffsets, CommitTransactionOffsets, Heartbeat, SyncGroup)
"""Commands that name the generation they speak for."""


# One group


def wrong_counts(group: Group) -> Offences:
    """What is counted along the way equals what counting anew would give."""
    roster = group.roster
    joined = sum(member.join_ticket is not None for member in roster.members.values())
    if roster.joined_count != joined:
        yield f"{roster.joined_count} counted as joined, {joined} are"
    offered = Counter(name for member in roster.members.values() for name in _offers(member))
    if roster.support != offered:
        yield f"protocols are counted as {roster.support}, offered as {dict(offered)}"


def wrong_identities(group: Group) -> Offences:
    """Everyone stands in one place, under its own id, and an instance is one member."""
    roster = group.roster
    for member_id, member in roster.members.items():
        if member.member_id != member_id:
            yield f"{member.member_id} is filed under {member_id}"
    instances = {m.instance_id: m.member_id for m in roster.members.values() if m.instance_id}
    if roster.instances != instances:
        yield f"the instances are {instances}, but known as {roster.instances}"
    if len(instances) != sum(bool(m.instance_id) for m in roster.members.values()):
        yield "two members are one instance"
    for member_id in roster.members.keys() & roster.pending.keys():
        yield f"{member_id} is a member and pending"
    for member_id in roster.unsynced.keys() - roster.members.keys():
        yield f"{member_id} is to sync but no member"


def wrong_leader(group: Group) -> Offences:
    roster = group.roster
    if roster.leader is None and roster.members:
        yield "nobody leads"
    if roster.leader is not None and roster.leader not in roster.members:
        yield f"{roster.leader} leads but is no member"


def wrong_phase(group: Group) -> Offences:
    """The state is one that the members' number, story and progress allow."""
    roster = group.roster
    state, members = roster.state, roster.members
    if bool(members) and state is EMPTY:
        yield "an empty group has members"
    if not members and state in (COMPLETING, STABLE):
        yield f"a {state} group has no members"
    if state is PREPARING and roster.previous_state is not EMPTY and roster.has_all_joined:
        yield "everyone has joined, and still it prepares"
    if (roster.story is not None) != (state in (PREPARING, COMPLETING)):
        yield f"a {state} group {'has a' if roster.story else 'has no'} story"
    if roster.arriving is not None:
        yield f"{roster.arriving.member_id} never arrived"


def wrong_waiting(group: Group) -> Offences:
    """Who waits, waits for something that the state can still bring."""
    state, unsynced = group.roster.state, group.roster.unsynced
    for member_id, member in group.roster.members.items():
        if member.join_ticket is not None and state is not PREPARING:
            yield f"{member_id} has a join parked in {state}"
        if member.sync_ticket is not None and state is not COMPLETING:
            yield f"{member_id} has a sync parked in {state}"
        if member.sync_ticket is not None and member_id in unsynced:
            yield f"{member_id} is to sync, but has done so"
        if member.join_ticket is None and member.is_new:
            yield f"{member_id} is still new, though its first join was answered"
    if unsynced and state not in (COMPLETING, STABLE):
        yield f"{', '.join(unsynced)} is to sync in {state}"


def wrong_generation(group: Group) -> Offences:
    """A stable group is what its record says; everyone in a generation speaks its protocol."""
    roster, formed = group.roster, group.formed
    if roster.state in (COMPLETING, STABLE):
        silent = [m.member_id for m in roster.members.values() if roster.protocol not in _offers(m)]
        if silent:
            yield f"{', '.join(silent)} cannot speak {roster.protocol}"
    if formed is not None and roster.generation < formed.generation:
        yield f"generation {roster.generation}, though {formed.generation} was formed"
    if roster.state is not STABLE:
        return
    if formed is None:
        yield "stable, but never kept"
        return
    kept = {m.member_id: (m.instance_id, m.assignment) for m in formed.members}
    present = {m.member_id: (m.instance_id, m.assignment) for m in roster.members.values()}
    if (formed.generation, formed.leader, kept) != (roster.generation, roster.leader, present):
        yield f"stable in {roster.generation} as {present}, kept in {formed.generation} as {kept}"


def broken_limits(group: Group, limits: Limits) -> Offences:
    """Static members keep their place unseen, so only the joined and the dynamic are bounded."""
    roster = group.roster
    if roster.joined_count > limits.group_max_size:
        yield f"{roster.joined_count} have joined, the limit is {limits.group_max_size}"
    dynamic = sum(member.instance_id is None for member in roster.members.values())
    if roster.state is not PREPARING and dynamic > limits.group_max_size:
        yield f"{dynamic} dynamic members, the limit is {limits.group_max_size}"
    shortest, longest = limits.group_min_session_timeout_ms, limits.group_max_session_timeout_ms
    for member in roster.members.values():
        if not shortest <= member.session_timeout_ms <= longest:
            yield f"{member.member_id} has a session of {member.session_timeout_ms} ms"
    for kept in group.offsets:
        if len(kept.metadata) > limits.offset_metadata_max_bytes:
            yield f"{kept.topic}:{kept.partition} carries {len(kept.metadata)} bytes of metadata"


GROUP_RULES: tuple[Callable[[Group], Offences], ...] = (
    wrong_counts,
    wrong_identities,
    wrong_leader,
    wrong_phase,
    wrong_waiting,
    wrong_generation,
)


def find_group_offences(machine: Coordinator) -> Offences:
    for group in machine.groups.values():
        found = chain(*(rule(group) for rule in GROUP_RULES), broken_limits(group, machine.limits))
        for offence in found:
            yield f"{group.group_id}: {offence}"


def _offers(member: Member) -> set[str]:
    return {protocol.name for protocol in member.protocols}


# Timers and tickets


def idle_timers(machine: Coordinator, timers: Iterable[TimerKey]) -> Offences:
    """Every timer that is set names a living thing."""
    for key in timers:
        if key.kind is TimerKind.EXPIRY:
            continue
        group = machine.groups.get(key.group_id)
        if group is None:
            yield f"{key}: no such group"
        elif key.kind is TimerKind.SESSION and key.member_id not in group.roster.members:
            yield f"{key}: no such member"
        elif key.kind is TimerKind.PENDING and key.member_id not in group.roster.pending:
            yield f"{key}: no such pending id"
        elif key.kind in PHASE_TIMERS and group.roster.state not in PHASE_TIMERS[key.kind]:
            yield f"{key}: the group is {group.roster.state}"
        elif key.kind is TimerKind.SYNC and not group.roster.unsynced:
            yield f"{key}: everyone has synced"


def missing_timers(machine: Coordinator, timers: Collection[TimerKey]) -> Offences:
    """Whatever has to end or to happen has a timer that sees to it."""
    if TimerKey(TimerKind.EXPIRY) not in timers:
        yield "nobody will look for expired offsets"
    for group in machine.groups.values():
        group_id, roster = group.group_id, group.roster
        for member in roster.members.values():
            key = TimerKey(TimerKind.SESSION, group_id, member.member_id)
            if key not in timers and not member.is_excused:
                yield f"nobody watches {group_id}/{member.member_id}"
        for member_id in roster.pending:
            if TimerKey(TimerKind.PENDING, group_id, member_id) not in timers:
                yield f"{group_id}/{member_id} may stay pending for ever"
        if roster.state is PREPARING and not _runs(
            timers, group_id, TimerKind.JOIN, TimerKind.INITIAL_DELAY
        ):
            yield f"{group_id} may prepare for ever"
        if roster.unsynced and not _runs(timers, group_id, TimerKind.SYNC):
            yield f"{group_id} may wait for syncs for ever"
        running = {kind for kind in PHASE_TIMERS if TimerKey(kind, group_id) in timers}
        for kind in sorted(running ^ roster.armed):
            yield f"{group_id} is wrong about its timer {kind}"


def lost_tickets(machine: Coordinator, open_: Collection[Ticket]) -> Offences:
    """Whoever waits is parked somewhere, and whoever is parked waits."""
    parked = [
        ticket
        for group in machine.groups.values()
        for member in group.roster.members.values()
        for ticket in (member.join_ticket, member.sync_ticket)
        if ticket is not None
    ]
    for ticket, count in Counter(parked).items():
        if count > 1:
            yield f"ticket {ticket} is parked {count} times"
    for ticket in sorted(set(open_) - set(parked)):
        yield f"ticket {ticket} waits for nothing"
    for ticket in sorted(set(parked) - set(open_)):
        yield f"ticket {ticket} is parked but nobody waits"


def _runs(timers: Collection[TimerKey], group_id: GroupId, *kinds: TimerKind) -> bool:
    return any(TimerKey(kind, group_id) in timers for kind in kinds)


# What has been said and kept


def repeated_answers(replies: Iterable[Reply]) -> Offences:
    for ticket, count in Counter(reply.ticket for reply in replies).items():
        if count > 1:
            yield f"ticket {ticket} was answered {count} times"


def generations_gone_back(records: Iterable[OneRecord]) -> Offences:
    """The kept generation of a group only grows, until the group is removed."""
    reached: dict[GroupId, Generation] = {}
    for record in records:
        if isinstance(record, GroupRemoved):
            reached.pop(record.group_id, None)
        elif isinstance(record, GenerationFormed):
            before = reached.get(record.group_id, Generation(0))
            if record.generation < before:
                yield f"{record.group_id} went from generation {before} to {record.generation}"
            reached[record.group_id] = record.generation


def stale_answers(command: Command, generation: Generation | None, outcome: Outcome) -> Offences:
    """Nobody speaks for a generation that is not the present one."""
    if not isinstance(command, OF_A_GENERATION) or command.generation < 0:
        return
    if command.generation == generation:
        return
    refused = {reply.ticket for reply in outcome.replies if isinstance(reply, Refused)}
    if command.ticket not in refused:
        what = type(command).__name__
        yield f"a {what} of generation {command.generation} was taken in {generation}"


def unled_generations(outcome: Outcome) -> Offences:
    """A new generation has a leader that knows of everyone, and everyone dynamic knows of it."""
    formed = [n for n in outcome.notes if isinstance(n, StateChanged) and n.after is COMPLETING]
    told = [reply for reply in outcome.replies if isinstance(reply, Joined)]
    leaders = [reply for reply in told if reply.member_id == reply.leader and reply.members]
    if formed and len(leaders) != 1:
        yield f"{formed[0].group_id} has a generation that {len(leaders)} members lead"
    for leader in leaders if formed else ():
        dynamic = {member.member_id for member in leader.members if member.instance_id is None}
        for member_id in sorted(dynamic - {reply.member_id for reply in told}):
            yield f"{member_id} is in a generation that it was not told of"


def removed_waiters(outcome: Outcome) -> Offences:
    """Whoever waits for an answer of ours need not be heard of, except in its very first join."""
    refused = [reply for reply in outcome.replies if isinstance(reply, Refused)]
    if any(reply.error is ErrorCode.UNKNOWN_MEMBER_ID for reply in refused):
        for note in outcome.notes:
            if isinstance(note, MemberGone) and note.departure is Departure.SESSION_EXPIRED:
                yield f"{note.party.member_id} was removed while it waited"


def broken_stories(notes: Iterable[Note]) -> Offences:
    """The notes of one life of the machine tell of every change, without a gap."""
    states: dict[GroupId, GroupState] = {}
    rebalancing: dict[GroupId, Millis] = {}
    for note in notes:
        match note:
            case StateChanged():
                before = states.get(note.group_id, note.before)
                if before is not note.before:
                    yield f"{note.group_id} was {before}, then was {note.before} and {note.after}"
                states[note.group_id] = note.after
            case RebalanceStarted():
                if note.group_id in rebalancing:
                    yield f"{note.group_id} began a rebalance within another"
                rebalancing[note.group_id] = note.at
            case RebalanceEnded():
                if rebalancing.pop(note.group_id, None) != note.started_ms:
                    yield f"{note.group_id} ended a rebalance that had not begun"
                is_formed = note.ending in (Ending.STABLE, Ending.EMPTY)
                if is_formed and note.generation <= note.generation_before:
                    yield f"{note.group_id} was rebalanced and is still in {note.generation}"
            case GroupDeleted():
                states.pop(note.group_id, None)
            case _:
                pass


# The log


def through_bytes(record: OneRecord) -> OneRecord:
    """The record as it comes back from the log; markers of transactions are not ours to write."""
    if isinstance(record, TransactionEnded):
        return record
    encoded = encode_record(record)
    if isinstance(record, OffsetCommitted):
        producer = record.producer_id, record.producer_epoch
        read = decode_record(encoded.key, encoded.value, *producer)
    else:
        read = decode_record(encoded.key, encoded.value)
    assert isinstance(read, OneRecord), read
    return read


def differences(machine: Coordinator, loaded: Coordinator) -> Offences:
    """What a machine holds for certain is what another one has loaded from the records."""
    ours, theirs = machine.hard_state(), loaded.hard_state()
    for group_id in sorted(ours.keys() | theirs.keys()):
        if ours.get(group_id) != theirs.get(group_id):
            yield f"{group_id}: {ours.get(group_id)} here, {theirs.get(group_id)} from the records"


def wrong_offsets(machine: Coordinator, records: Sequence[OneRecord]) -> Offences:
    """What is committed is the last record of each partition that counts, whatever came between."""
    expected = {
        _place(record): record
        for number, record in enumerate(records)
        if isinstance(record, OffsetCommitted) and _counts(record, records[number + 1 :])
    }
    found = {_place(kept): kept for group in machine.groups.values() for kept in group.offsets}
    for place in sorted(expected.keys() | found.keys()):
        if found.get(place) != expected.get(place):
            yield f"{place} is {found.get(place)}, should be {expected.get(place)}"


def _counts(record: OffsetCommitted, later: Sequence[OneRecord]) -> bool:
    """Not removed since, and in no transaction or in one that was committed."""
    if any(isinstance(each, OffsetRemoved) and _place(each) == _place(record) for each in later):
        return False
    ends = (each for each in later if isinstance(each, TransactionEnded))
    end = next((each for each in ends if each.producer_id == record.producer_id), None)
    return record.producer_id is None or (end is not None and end.is_commit)


def _place(record: OffsetCommitted | OffsetRemoved) -> tuple[GroupId, Topic, Partition]:
    return record.group_id, record.topic, record.partition
