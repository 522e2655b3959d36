"""A classic group: its stored metadata (hard state) and its connected members (soft state).

Hard state comes from records alone and survives a restart. Everything else is rebuilt from it by
`restore`: parked tickets, the generation being formed and connected members are lost on purpose.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from kohort.coordinator.commands import (
    CommitOffsets,
    CommitTransactionOffsets,
    Protocol,
    Ticket,
)
from kohort.coordinator.committed_offsets import CommittedOffsets
from kohort.coordinator.events import MemberInfo
from kohort.coordinator.groups.classic.classic_member import ClassicMember, restore_member
from kohort.coordinator.groups.classic.rebalance_trace import RebalanceTrace
from kohort.coordinator.groups.classic.states import (
    ACTIONS,
    DEAD,
    EMPTY,
    LEGAL,
    STABLE,
    GroupRequest,
    GroupState,
    StateAction,
)
from kohort.coordinator.groups.classic.subscription_codec import find_subscribed_topics
from kohort.coordinator.groups.group import GroupType
from kohort.coordinator.outcome import SESSION, TimerKind
from kohort.coordinator.outcome_builder import OutcomeBuilder
from kohort.coordinator.records import ClassicGroupMetadata, OffsetCommitted
from kohort.coordinator.replies import GroupDescription, MemberDescription
from kohort.types import (
    ErrorCode,
    Generation,
    GroupId,
    InstanceId,
    MemberId,
    Millis,
    Topic,
)

CONSUMER: Final = "consumer"
"""The protocol type of consumers: the one whose metadata the coordinator can read."""

_COMMIT: Final = ACTIONS[GroupRequest.COMMIT]
_COMMIT_SIMPLE: Final = ACTIONS[GroupRequest.COMMIT_SIMPLE]


@dataclass(slots=True)
class ClassicGroup:
    """Implements `Group`."""

    group_id: GroupId
    stored: ClassicGroupMetadata | None = None
    """Hard: the last group metadata record that was applied."""
    offsets: CommittedOffsets = field(default_factory=CommittedOffsets)
    """Hard: committed offsets, and those pending in transactions."""

    # Soft state

    state: GroupState = EMPTY
    previous_state: GroupState = EMPTY
    state_since_ms: Millis = Millis(0)
    generation: Generation = Generation(0)
    protocol_type: str | None = None
    protocol: str | None = None
    leader: MemberId | None = None
    members: dict[MemberId, ClassicMember] = field(default_factory=dict)
    static_members: dict[InstanceId, MemberId] = field(default_factory=dict)
    pending_join_members: dict[MemberId, MemberInfo] = field(default_factory=dict)
    """Issued member ids that have not been used in a join yet (KIP-394)."""
    pending_sync_members: dict[MemberId, None] = field(default_factory=dict)
    """Members of this generation that have not sent a sync yet."""
    supported_protocols: dict[str, int] = field(default_factory=dict)
    """The number of members that support each protocol."""
    armed_timers: set[TimerKind] = field(default_factory=set)
    """Timers of the current phase, so that only a timer that was set is cancelled."""
    joined_count: int = 0
    """The number of members with a parked join; counted, because every join reads it."""
    is_still_growing: bool = False
    """A member joined during the initial delay, so the delay may be extended."""
    initial_delay_ms: int = 0
    initial_remaining_ms: int = 0
    subscribed_topics: frozenset[Topic] | None = None
    pending_replacement: ClassicMember | None = None
    """The new member of a static instance, until the record that names it is applied."""
    trace: RebalanceTrace | None = None

    # The interface `Group`

    @property
    def type(self) -> GroupType:
        return GroupType.CLASSIC

    @property
    def is_empty(self) -> bool:
        return self.state is EMPTY

    @property
    def is_readable(self) -> bool:
        return ACTIONS[GroupRequest.FETCH][self.state] is not StateAction.NOTHING

    def is_subscribed(self, topic: Topic) -> bool:
        """Consumers whose metadata cannot be read count as subscribed to every topic."""
        if self.subscribed_topics is None:
            return self.protocol_type == CONSUMER
        return topic in self.subscribed_topics

    def find_commit_error(self, command: CommitOffsets) -> ErrorCode | None:
        is_simple = command.generation < 0
        state = self.state
        if state is DEAD or (is_simple and state is EMPTY):
            return _as_error(_COMMIT_SIMPLE[state])
        if not is_simple or command.member_id or command.instance_id is not None:
            return self._find_committer_error(command) or _as_error(_COMMIT[state])
        return _as_error(_COMMIT_SIMPLE[state])

    def find_transactional_commit_error(
        self, command: CommitTransactionOffsets
    ) -> ErrorCode | None:
        is_simple = command.generation < 0
        error = _as_error(ACTIONS[GroupRequest.COMMIT_TRANSACTION][self.state])
        if error is not None or (is_simple and self.state is EMPTY):
            return error
        if not is_simple or command.member_id or command.instance_id is not None:
            return self._find_committer_error(command)
        return None  # older transactional clients do not send a member id

    def _find_committer_error(
        self, command: CommitOffsets | CommitTransactionOffsets
    ) -> ErrorCode | None:
        error = self.find_member_error(command.member_id, command.instance_id)
        if error is None and command.generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return error

    def find_offset_delete_error(self) -> ErrorCode | None:
        answer = ACTIONS[GroupRequest.DELETE_OFFSETS][self.state]
        if answer is StateAction.ACCEPT_UNSUBSCRIBED and self.protocol_type != CONSUMER:
            return ErrorCode.NON_EMPTY_GROUP
        return _as_error(answer)

    def find_delete_error(self) -> ErrorCode | None:
        return _as_error(ACTIONS[GroupRequest.DELETE_GROUP][self.state])

    def restart_session(self, builder: OutcomeBuilder, member_id: MemberId) -> None:
        member = self.members.get(member_id)
        if member is not None:
            builder.arm(SESSION, self.group_id, member.session_timeout_ms, member_id)

    def cancel_timers(self, builder: OutcomeBuilder) -> None:
        for member_id in self.pending_join_members:
            builder.disarm(TimerKind.PENDING, self.group_id, member_id)

    def describe(self) -> GroupDescription | None:
        answer = ACTIONS[GroupRequest.DESCRIBE][self.state]
        if answer is StateAction.NOTHING:
            return None
        # Member metadata is shown of a stable group only, because a rebalance may change it.
        # Members use their assignments until they get new ones.
        protocol = self.protocol if answer is StateAction.CURRENT else None
        return GroupDescription(
            group_id=self.group_id,
            state=self.state,
            protocol_type=self.protocol_type or "",
            protocol=protocol or "",
            members=tuple(_describe_member(m, protocol) for m in self.members.values()),
        )

    def expirable_offsets(self) -> Iterable[OffsetCommitted]:
        """All offsets of an empty or simple group; those of unsubscribed topics of a stable one."""
        if self.protocol_type is None or self.state is EMPTY:
            return self.offsets
        subscribed = self.subscribed_topics
        if self.state is not STABLE or subscribed is None:
            return ()
        # There are many groups with members and few such offsets, so they are found by topic.
        return [
            committed
            for topic, partitions in self.offsets.committed.items()
            if topic not in subscribed
            for committed in partitions.values()
        ]

    def retention_start(self, committed: OffsetCommitted) -> Millis:
        """The time at which the group became empty, else the commit.

        Simple groups and unsubscribed topics have no other sign of use than the commit. Neither
        have records from before Kafka stored the time of the state.
        """
        has_members_gone = self.protocol_type is not None and self.state is EMPTY
        if has_members_gone and self.state_since_ms >= 0:
            return self.state_since_ms
        return committed.commit_ms

    # Queries of the classic protocol

    @property
    def has_all_joined(self) -> bool:
        return len(self.members) == self.joined_count and not self.pending_join_members

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    def supports(self, protocol_type: str, protocols: tuple[Protocol, ...]) -> bool:
        """Whether one of these protocols is supported by every member."""
        if self.state is EMPTY:
            return bool(protocol_type) and bool(protocols)
        member_count = len(self.members)
        if self.protocol_type != protocol_type:
            return False
        supported = self.supported_protocols
        for protocol in protocols:  # noqa: SIM110  # every join asks, and this takes half the time
            if supported.get(protocol.name, 0) == member_count:
                return True
        return False

    def find_member_error(
        self, member_id: MemberId, instance_id: InstanceId | None
    ) -> ErrorCode | None:
        """Return why a request may not use this member id. The instance id is checked first."""
        if instance_id is not None:
            current = self.static_members.get(instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return None if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def choose_protocol(self) -> str:
        """Most votes among the protocols all members support; a tie goes to the first member's."""
        member_count = len(self.members)
        candidates = {name for name, n in self.supported_protocols.items() if n == member_count}
        if len(candidates) == 1:
            return candidates.pop()
        votes: dict[str, int] = {}
        first = next(iter(self.members.values()))
        for protocol in first.protocols:
            if protocol.name in candidates:
                votes[protocol.name] = 0
        for member in self.members.values():
            votes[next(p.name for p in member.protocols if p.name in candidates)] += 1
        return max(votes, key=votes.__getitem__)

    # Changes of soft state

    def move(self, state: GroupState, now: Millis) -> None:
        assert state in LEGAL[self.state], f"{self.state} may not become {state}"
        self.previous_state = self.state
        self.state = state
        self.state_since_ms = now

    def arm(self, builder: OutcomeBuilder, kind: TimerKind, delay_ms: int) -> None:
        """Set a timer that limits the phase the group is in."""
        self.armed_timers.add(kind)
        builder.arm(kind, self.group_id, delay_ms)

    def disarm(self, builder: OutcomeBuilder, kind: TimerKind) -> None:
        if kind in self.armed_timers:
            self.armed_timers.discard(kind)
            builder.disarm(kind, self.group_id)

    def add(self, member: ClassicMember) -> None:
        assert member.member_id not in self.members
        if member.instance_id is not None:
            assert member.instance_id not in self.static_members
            self.static_members[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self._count_protocols(member, 1)
        self.joined_count += member.join_ticket is not None
        self.pending_join_members.pop(member.member_id, None)

    def remove(self, member_id: MemberId) -> ClassicMember | None:
        """Remove a member, or an issued id that was not used yet."""
        self.pending_join_members.pop(member_id, None)
        self.pending_sync_members.pop(member_id, None)
        member = self.members.pop(member_id, None)
        if member is None:
            return None
        self._count_protocols(member, -1)
        self.joined_count -= member.join_ticket is not None
        if member.instance_id is not None:
            del self.static_members[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        return member

    def replace(self, old: ClassicMember, new: ClassicMember) -> None:
        """Put a restarted static member in the place of the old one, leadership included."""
        assert new.instance_id is not None
        members = (new if member is old else member for member in self.members.values())
        self.members = {member.member_id: member for member in members}
        self._count_protocols(old, -1)
        self._count_protocols(new, 1)
        self.joined_count += (new.join_ticket is not None) - (old.join_ticket is not None)
        self.static_members[new.instance_id] = new.member_id
        if self.leader == old.member_id:
            self.leader = new.member_id
        # DEVIATION: Kafka still expects SyncGroup from the old member id, which never comes, and
        # rebalances after the timeout.
        if old.member_id in self.pending_sync_members:
            del self.pending_sync_members[old.member_id]
            self.pending_sync_members[new.member_id] = None

    def park_join(self, member: ClassicMember, ticket: Ticket | None) -> Ticket | None:
        """Set or clear a member's parked join; return the ticket that was there before."""
        before, member.join_ticket = member.join_ticket, ticket
        self.joined_count += (ticket is not None) - (before is not None)
        return before

    def update_protocols(self, member: ClassicMember, protocols: tuple[Protocol, ...]) -> None:
        self._count_protocols(member, -1)
        member.protocols = protocols
        self._count_protocols(member, 1)

    def recompute_subscribed_topics(self) -> None:
        if self.protocol_type != CONSUMER:
            self.subscribed_topics = None
            return
        # DEVIATION: for a subscription that cannot be decoded Kafka answers with an internal error,
        # unless it is only too short. Here its topics are unknown.
        metadata = [member.metadata(self.protocol) for member in self.members.values()]
        self.subscribed_topics = find_subscribed_topics(metadata)

    def _count_protocols(self, member: ClassicMember, step: int) -> None:
        # DEVIATION: Kafka fails if a member names a protocol twice. Here the second one is ignored.
        supported = self.supported_protocols
        for name in dict.fromkeys(protocol.name for protocol in member.protocols):
            supported[name] = supported.get(name, 0) + step
            if not supported[name]:
                del supported[name]

    # Applying records

    def apply(self, record: ClassicGroupMetadata) -> None:
        is_expected = self._expects(record)
        self.stored = record
        if is_expected:
            self.follow(record)

    def _expects(self, record: ClassicGroupMetadata) -> bool:
        """Whether a decision waits for this record; none waits for the first one of a new group."""
        if self.state is GroupState.PREPARING_REBALANCE:
            return not record.members and record.generation == self.generation + 1
        return (
            self.state in (GroupState.COMPLETING_REBALANCE, STABLE)
            and record.generation == self.generation
        )

    def follow(self, record: ClassicGroupMetadata) -> None:
        """Derive the soft state from the record."""
        if self.state is GroupState.PREPARING_REBALANCE:
            self._become_empty(record)
            return
        if self.pending_replacement is not None:
            self._complete_replacement(self.pending_replacement)
        for stored in record.members:
            self.members[stored.member_id].assignment = stored.assignment
        for member in self.members.values():
            member.sync_ticket = None
        if self.state is GroupState.COMPLETING_REBALANCE:
            self.move(STABLE, record.state_since_ms)
        self.trace = None

    def _become_empty(self, record: ClassicGroupMetadata) -> None:
        self.generation = record.generation
        self.protocol = None
        self.recompute_subscribed_topics()
        self.pending_sync_members.clear()
        self.move(EMPTY, record.state_since_ms)
        self.trace = None

    def _complete_replacement(self, new: ClassicMember) -> None:
        assert new.instance_id is not None
        old = self.members[self.static_members[new.instance_id]]
        self.replace(old, new)
        self.pending_replacement = None


def restore(loaded: ClassicGroup) -> ClassicGroup:
    """Return the group as a restart begins with it: stable with the stored members, or empty."""
    stored = loaded.stored
    group = ClassicGroup(loaded.group_id, stored, loaded.offsets)
    if stored is None:
        return group
    group.generation = stored.generation
    group.protocol_type = stored.protocol_type or None
    group.protocol = stored.protocol
    group.state_since_ms = stored.state_since_ms
    for member in stored.members:
        group.add(restore_member(member, stored.protocol or ""))
    if stored.leader in group.members:
        group.leader = stored.leader
    group.state = STABLE if stored.members else EMPTY
    group.previous_state = group.state
    group.recompute_subscribed_topics()
    return group


def _as_error(answer: StateAction | ErrorCode) -> ErrorCode | None:
    return answer if isinstance(answer, ErrorCode) else None


def _describe_member(member: ClassicMember, protocol: str | None) -> MemberDescription:
    return MemberDescription(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        metadata=member.metadata(protocol) if protocol is not None else b"",
        assignment=member.assignment,
    )
