"""Invariants that hold after every step of the coordinator.

A rule is a function that yields violations as sentences. Rules check the state of the coordinator,
the timers, and all replies, events and records so far.
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
from kohort.coordinator.config import GroupConfig
from kohort.coordinator.coordinator import Coordinator
from kohort.coordinator.events import (
    Departure,
    GroupDeleted,
    GroupEvent,
    MemberGone,
    RebalanceEnded,
    RebalanceResult,
    RebalanceStarted,
    StateChanged,
)
from kohort.coordinator.groups.classic.classic_member import ClassicMember
from kohort.coordinator.groups.classic.group import ClassicGroup
from kohort.coordinator.groups.classic.states import GroupState
from kohort.coordinator.outcome import Outcome, TimerKey, TimerKind
from kohort.coordinator.record_codec import decode_record, encode_record
from kohort.coordinator.records import (
    ClassicGroupMetadata,
    GroupRemoved,
    OffsetCommitted,
    OffsetRemoved,
    OneRecord,
    TransactionEnded,
)
from kohort.coordinator.replies import Joined, Reply, RequestRefused
from kohort.types import ErrorCode, Generation, GroupId, Millis, Partition, Topic

Violations = Iterator[str]

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = GroupState

PHASE_TIMERS = {
    TimerKind.INITIAL_DELAY: (PREPARING,),
    TimerKind.JOIN: (PREPARING,),
    TimerKind.SYNC: (COMPLETING, STABLE),
}
"""The timers of groups, and the states in which they may run."""

OF_A_GENERATION = (CommitOffsets, CommitTransactionOffsets, Heartbeat, SyncGroup)
"""Commands with a generation."""


# One group


def wrong_counts(group: ClassicGroup) -> Violations:
    """Incremental counters equal the actual counts."""
    joined = sum(member.join_ticket is not None for member in group.members.values())
    if group.joined_count != joined:
        yield f"{group.joined_count} counted as joined, actually {joined}"
    offered = Counter(name for member in group.members.values() for name in _offers(member))
    if group.supported_protocols != offered:
        yield f"protocols are counted as {group.supported_protocols}, actually {dict(offered)}"


def wrong_identities(group: ClassicGroup) -> Violations:
    """Every member is stored once, under its own id, and every instance id has one member."""
    for member_id, member in group.members.items():
        if member.member_id != member_id:
            yield f"{member.member_id} is stored under {member_id}"
    instances = {m.instance_id: m.member_id for m in group.members.values() if m.instance_id}
    if group.static_members != instances:
        yield f"static members are {instances}, but stored as {group.static_members}"
    if len(instances) != sum(bool(m.instance_id) for m in group.members.values()):
        yield "two members have the same instance id"
    for member_id in group.members.keys() & group.pending_join_members.keys():
        yield f"{member_id} is a member and pending"
    for member_id in group.pending_sync_members.keys() - group.members.keys():
        yield f"{member_id} is pending sync but not a member"


def wrong_leader(group: ClassicGroup) -> Violations:
    if group.leader is None and group.members:
        yield "there is no leader"
    if group.leader is not None and group.leader not in group.members:
        yield f"{group.leader} is the leader but not a member"


def wrong_phase(group: ClassicGroup) -> Violations:
    """The state matches the members and the rebalance trace."""
    state, members = group.state, group.members
    if bool(members) and state is EMPTY:
        yield "an empty group has members"
    if not members and state in (COMPLETING, STABLE):
        yield f"a {state} group has no members"
    if state is PREPARING and group.previous_state is not EMPTY and group.has_all_joined:
        yield "all members have joined, but the group is still preparing"
    if (group.trace is not None) != (state in (PREPARING, COMPLETING)):
        yield f"a {state} group {'has a' if group.trace else 'has no'} rebalance trace"
    if group.pending_replacement is not None:
        yield f"{group.pending_replacement.member_id} is still pending"


def wrong_waiting(group: ClassicGroup) -> Violations:
    """Parked requests match the state."""
    state, unsynced = group.state, group.pending_sync_members
    for member_id, member in group.members.items():
        if member.join_ticket is not None and state is not PREPARING:
            yield f"{member_id} has a join parked in {state}"
        if member.sync_ticket is not None and state is not COMPLETING:
            yield f"{member_id} has a sync parked in {state}"
        if member.sync_ticket is not None and member_id in unsynced:
            yield f"{member_id} is pending sync, but has synced"
        if member.join_ticket is None and member.is_new:
            yield f"{member_id} is still new, but its first join was answered"
    if unsynced and state not in (COMPLETING, STABLE):
        yield f"{', '.join(unsynced)} is pending sync in {state}"


def wrong_generation(group: ClassicGroup) -> Violations:
    """A stable group equals its record; every member supports the chosen protocol."""
    stored = group.stored
    if group.state in (COMPLETING, STABLE):
        silent = [m.member_id for m in group.members.values() if group.protocol not in _offers(m)]
        if silent:
            yield f"{', '.join(silent)} does not support {group.protocol}"
    if stored is not None and group.generation < stored.generation:
        yield f"generation {group.generation}, but {stored.generation} is stored"
    if group.state is not STABLE:
        return
    if stored is None:
        yield "stable, but not stored"
        return
    kept = {m.member_id: (m.instance_id, m.assignment) for m in stored.members}
    present = {m.member_id: (m.instance_id, m.assignment) for m in group.members.values()}
    if (stored.generation, stored.leader, kept) != (group.generation, group.leader, present):
        yield f"stable in {group.generation} as {present}, stored in {stored.generation} as {kept}"


def broken_limits(group: ClassicGroup, config: GroupConfig) -> Violations:
    """Absent static members stay, so only joined and dynamic members are limited."""
    if group.joined_count > config.group_max_size:
        yield f"{group.joined_count} have joined, the limit is {config.group_max_size}"
    dynamic = sum(member.instance_id is None for member in group.members.values())
    if group.state is not PREPARING and dynamic > config.group_max_size:
        yield f"{dynamic} dynamic members, the limit is {config.group_max_size}"
    shortest, longest = config.group_min_session_timeout_ms, config.group_max_session_timeout_ms
    for member in group.members.values():
        if not shortest <= member.session_timeout_ms <= longest:
            yield f"{member.member_id} has a session of {member.session_timeout_ms} ms"
    for kept in group.offsets:
        if len(kept.metadata) > config.offset_metadata_max_bytes:
            yield f"{kept.topic}:{kept.partition} has {len(kept.metadata)} bytes of metadata"


GROUP_RULES: tuple[Callable[[ClassicGroup], Violations], ...] = (
    wrong_counts,
    wrong_identities,
    wrong_leader,
    wrong_phase,
    wrong_waiting,
    wrong_generation,
)


def find_group_violations(coordinator: Coordinator) -> Violations:
    for group in coordinator.groups.values():
        found = chain(
            *(rule(group) for rule in GROUP_RULES), broken_limits(group, coordinator.config)
        )
        for violation in found:
            yield f"{group.group_id}: {violation}"


def _offers(member: ClassicMember) -> set[str]:
    return {protocol.name for protocol in member.protocols}


# Timers and tickets


def idle_timers(coordinator: Coordinator, timers: Iterable[TimerKey]) -> Violations:
    """Every timer belongs to an existing group or member."""
    for key in timers:
        if key.kind is TimerKind.EXPIRY:
            continue
        group = coordinator.groups.get(key.group_id)
        if group is None:
            yield f"{key}: no such group"
        elif key.kind is TimerKind.SESSION and key.member_id not in group.members:
            yield f"{key}: no such member"
        elif key.kind is TimerKind.PENDING and key.member_id not in group.pending_join_members:
            yield f"{key}: no such pending id"
        elif key.kind in PHASE_TIMERS and group.state not in PHASE_TIMERS[key.kind]:
            yield f"{key}: the group is {group.state}"
        elif key.kind is TimerKind.SYNC and not group.pending_sync_members:
            yield f"{key}: all members have synced"


def missing_timers(coordinator: Coordinator, timers: Collection[TimerKey]) -> Violations:
    """Everything that must end has a timer."""
    if TimerKey(TimerKind.EXPIRY) not in timers:
        yield "no expiry timer"
    for group in coordinator.groups.values():
        group_id = group.group_id
        for member in group.members.values():
            key = TimerKey(TimerKind.SESSION, group_id, member.member_id)
            if key not in timers and not member.is_session_suspended:
                yield f"no session timer for {group_id}/{member.member_id}"
        for member_id in group.pending_join_members:
            if TimerKey(TimerKind.PENDING, group_id, member_id) not in timers:
                yield f"{group_id}/{member_id} may stay pending forever"
        if group.state is PREPARING and not _runs(
            timers, group_id, TimerKind.JOIN, TimerKind.INITIAL_DELAY
        ):
            yield f"{group_id} may stay in PreparingRebalance forever"
        if group.pending_sync_members and not _runs(timers, group_id, TimerKind.SYNC):
            yield f"{group_id} may wait for syncs forever"
        running = {kind for kind in PHASE_TIMERS if TimerKey(kind, group_id) in timers}
        for kind in sorted(running ^ group.armed_timers):
            yield f"{group_id} has a wrong entry for its timer {kind}"


def lost_tickets(coordinator: Coordinator, open_: Collection[Ticket]) -> Violations:
    """Every open ticket is parked, and every parked ticket is open."""
    parked = [
        ticket
        for group in coordinator.groups.values()
        for member in group.members.values()
        for ticket in (member.join_ticket, member.sync_ticket)
        if ticket is not None
    ]
    for ticket, count in Counter(parked).items():
        if count > 1:
            yield f"ticket {ticket} is parked {count} times"
    for ticket in sorted(set(open_) - set(parked)):
        yield f"ticket {ticket} is open but not parked"
    for ticket in sorted(set(parked) - set(open_)):
        yield f"ticket {ticket} is parked but not open"


def _runs(timers: Collection[TimerKey], group_id: GroupId, *kinds: TimerKind) -> bool:
    return any(TimerKey(kind, group_id) in timers for kind in kinds)


# Replies and records


def repeated_replies(replies: Iterable[Reply]) -> Violations:
    for ticket, count in Counter(reply.ticket for reply in replies).items():
        if count > 1:
            yield f"ticket {ticket} was answered {count} times"


def decreasing_generations(records: Iterable[OneRecord]) -> Violations:
    """The stored generation of a group only increases, until the group is removed."""
    reached: dict[GroupId, Generation] = {}
    for record in records:
        if isinstance(record, GroupRemoved):
            reached.pop(record.group_id, None)
        elif isinstance(record, ClassicGroupMetadata):
            before = reached.get(record.group_id, Generation(0))
            if record.generation < before:
                yield f"{record.group_id} went from generation {before} to {record.generation}"
            reached[record.group_id] = record.generation


def stale_requests_accepted(
    command: Command, generation: Generation | None, outcome: Outcome
) -> Violations:
    """No request with another generation is accepted."""
    if not isinstance(command, OF_A_GENERATION) or command.generation < 0:
        return
    if command.generation == generation:
        return
    refused = {reply.ticket for reply in outcome.replies if isinstance(reply, RequestRefused)}
    if command.ticket not in refused:
        what = type(command).__name__
        yield f"a {what} of generation {command.generation} was accepted in {generation}"


def generations_without_leader(outcome: Outcome) -> Violations:
    """A new generation has one leader with the member list, and all dynamic members got a reply."""
    formed = [n for n in outcome.events if isinstance(n, StateChanged) and n.after is COMPLETING]
    joined = [reply for reply in outcome.replies if isinstance(reply, Joined)]
    leaders = [reply for reply in joined if reply.member_id == reply.leader and reply.members]
    if formed and len(leaders) != 1:
        yield f"{formed[0].group_id} has a generation with {len(leaders)} leaders"
    for leader in leaders if formed else ():
        dynamic = {member.member_id for member in leader.members if member.instance_id is None}
        for member_id in sorted(dynamic - {reply.member_id for reply in joined}):
            yield f"{member_id} is in a generation but got no reply"


def removed_while_parked(outcome: Outcome) -> Violations:
    """A member with a parked request does not expire, except in its first join."""
    refused = [reply for reply in outcome.replies if isinstance(reply, RequestRefused)]
    if any(reply.error is ErrorCode.UNKNOWN_MEMBER_ID for reply in refused):
        for event in outcome.events:
            if isinstance(event, MemberGone) and event.departure is Departure.SESSION_EXPIRED:
                yield f"{event.party.member_id} was removed while its request was parked"


def event_gaps(events: Iterable[GroupEvent]) -> Violations:
    """The events since the last start describe every state change and every rebalance."""
    states: dict[GroupId, GroupState] = {}
    rebalancing: dict[GroupId, Millis] = {}
    for event in events:
        match event:
            case StateChanged():
                before = states.get(event.group_id, event.before)
                if before is not event.before:
                    yield f"{event.group_id} is {before}, but changed from {event.before}"
                states[event.group_id] = event.after
            case RebalanceStarted():
                if event.group_id in rebalancing:
                    yield f"{event.group_id} began a rebalance during another one"
                rebalancing[event.group_id] = event.at
            case RebalanceEnded():
                if rebalancing.pop(event.group_id, None) != event.started_ms:
                    yield f"{event.group_id} ended a rebalance that had not begun"
                is_formed = event.ending in (RebalanceResult.STABLE, RebalanceResult.EMPTY)
                if is_formed and event.generation <= event.generation_before:
                    yield f"{event.group_id} has no generation after {event.generation}"
            case GroupDeleted():
                states.pop(event.group_id, None)
            case _:
                pass


# The log


def through_bytes(record: OneRecord) -> OneRecord:
    """Encode and decode a record; transaction markers have no encoding here."""
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


def differences(coordinator: Coordinator, loaded: Coordinator) -> Violations:
    """What a coordinator holds for certain is what another one has loaded from the records."""
    ours, theirs = coordinator.hard_state(), loaded.hard_state()
    for group_id in sorted(ours.keys() | theirs.keys()):
        if ours.get(group_id) != theirs.get(group_id):
            yield f"{group_id}: {ours.get(group_id)} here, {theirs.get(group_id)} from the records"


def wrong_offsets(coordinator: Coordinator, records: Sequence[OneRecord]) -> Violations:
    """The committed offset is the last valid record of each partition."""
    expected = {
        _place(record): record
        for number, record in enumerate(records)
        if isinstance(record, OffsetCommitted) and _counts(record, records[number + 1 :])
    }
    found = {_place(kept): kept for group in coordinator.groups.values() for kept in group.offsets}
    for place in sorted(expected.keys() | found.keys()):
        if found.get(place) != expected.get(place):
            yield f"{place} is {found.get(place)}, expected {expected.get(place)}"


def _counts(record: OffsetCommitted, later: Sequence[OneRecord]) -> bool:
    """Whether the record was not removed and its transaction, if any, was committed."""
    if any(isinstance(each, OffsetRemoved) and _place(each) == _place(record) for each in later):
        return False
    ends = (each for each in later if isinstance(each, TransactionEnded))
    end = next((each for each in ends if each.producer_id == record.producer_id), None)
    return record.producer_id is None or (end is not None and end.is_commit)


def _place(record: OffsetCommitted | OffsetRemoved) -> tuple[GroupId, Topic, Partition]:
    return record.group_id, record.topic, record.partition
