"""A group: what is formed and kept (hard), and who is here at this moment (soft).

Hard state comes from records alone and survives a restart. The roster is rebuilt from it: parked
tickets, the generation being formed and everything that depends on who is connected are soft, and
are lost on purpose.
"""

from dataclasses import dataclass, field

from kohort.coordinator.commands import Protocol, Ticket
from kohort.coordinator.notes import Party
from kohort.coordinator.offsetbook import OffsetBook
from kohort.coordinator.outcome import TimerKind
from kohort.coordinator.recordcodec import find_subscribed_topics
from kohort.coordinator.records import FormedMember, GenerationFormed
from kohort.coordinator.states import LEGAL, GroupState
from kohort.coordinator.story import Story
from kohort.types import (
    ErrorCode,
    Generation,
    GroupId,
    InstanceId,
    MemberId,
    Millis,
    Topic,
)

CONSUMER = "consumer"
"""The protocol type of consumers: the one whose metadata the coordinator can read."""


@dataclass(slots=True)
class Member:
    """A member as it is now; `join_ticket` and `sync_ticket` are its parked requests."""

    member_id: MemberId
    instance_id: InstanceId | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: Millis
    session_timeout_ms: Millis
    protocols: tuple[Protocol, ...]
    assignment: bytes = b""
    join_ticket: Ticket | None = None
    sync_ticket: Ticket | None = None
    is_new: bool = False
    _party: Party | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def is_excused(self) -> bool:
        """Parked members need not be heard of, except in their very first join."""
        return not self.is_new and (self.join_ticket is not None or self.sync_ticket is not None)

    @property
    def party(self) -> Party:
        # It stays the same for good, and every rebalance tells of it.
        if self._party is None:
            self._party = Party(
                member_id=self.member_id,
                instance_id=self.instance_id,
                client_id=self.client_id,
                client_host=self.client_host,
            )
        return self._party

    def metadata(self, protocol: str | None) -> bytes:
        for each in self.protocols:
            if each.name == protocol:
                return each.metadata
        return b""


@dataclass(slots=True)
class Roster:
    """Who is here and what the group is doing. Soft, every field of it."""

    state: GroupState = GroupState.EMPTY
    previous_state: GroupState = GroupState.EMPTY
    state_since_ms: Millis = Millis(0)
    generation: Generation = Generation(0)
    protocol_type: str | None = None
    protocol: str | None = None
    leader: MemberId | None = None
    members: dict[MemberId, Member] = field(default_factory=dict)
    instances: dict[InstanceId, MemberId] = field(default_factory=dict)
    pending: dict[MemberId, Party] = field(default_factory=dict)
    """Ids handed out whose bearers have not come back yet (KIP-394)."""
    unsynced: dict[MemberId, None] = field(default_factory=dict)
    """Members of this generation that have not asked for their assignment yet."""
    support: dict[str, int] = field(default_factory=dict)
    """How many members offer each protocol."""
    armed: set[TimerKind] = field(default_factory=set)
    """Timers of the running phase, so that only what was set is cancelled."""
    joined_count: int = 0
    """Members whose join is parked; counted here so that asking is not a walk."""
    is_still_growing: bool = False
    """A member came during the initial delay, so the delay may be extended."""
    initial_delay_ms: int = 0
    initial_remaining_ms: int = 0
    subscribed_topics: frozenset[Topic] | None = None
    arriving: Member | None = None
    """A static member's next self, until the record that names it is kept."""
    story: Story | None = None

    # Asking

    @property
    def has_all_joined(self) -> bool:
        return len(self.members) == self.joined_count and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    def supports(self, protocol_type: str, protocols: tuple[Protocol, ...]) -> bool:
        """Whether a member with these could share a protocol with everyone who is here."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(protocols)
        everyone = len(self.members)
        if self.protocol_type != protocol_type:
            return False
        support = self.support
        for protocol in protocols:  # noqa: SIM110  # every join asks, and this takes half the time
            if support.get(protocol.name, 0) == everyone:
                return True
        return False

    def find_fault(self, member_id: MemberId, instance_id: InstanceId | None) -> ErrorCode | None:
        """Why a request may not speak for this member, if so. The instance is looked at first."""
        if instance_id is not None:
            holder = self.instances.get(instance_id)
            if holder is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if holder != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return None if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def choose_protocol(self) -> str:
        """Most votes among the protocols all offer; a tie goes to the first member's order."""
        everyone = len(self.members)
        candidates = {name for name, offers in self.support.items() if offers == everyone}
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

    def is_subscribed(self, topic: Topic) -> bool:
        """Consumers whose metadata cannot be read count as subscribed to everything."""
        if self.subscribed_topics is None:
            return self.protocol_type == CONSUMER
        return topic in self.subscribed_topics

    # Changing

    def move(self, state: GroupState, now: Millis) -> None:
        assert state in LEGAL[self.state], f"{self.state} may not become {state}"
        self.previous_state = self.state
        self.state = state
        self.state_since_ms = now

    def add(self, member: Member) -> None:
        assert member.member_id not in self.members
        if member.instance_id is not None:
            assert member.instance_id not in self.instances
            self.instances[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self._count(member, 1)
        self.joined_count += member.join_ticket is not None
        self.pending.pop(member.member_id, None)

    def remove(self, member_id: MemberId) -> Member | None:
        """Take a member, or an id nobody came back with, off the roster."""
        self.pending.pop(member_id, None)
        self.unsynced.pop(member_id, None)
        member = self.members.pop(member_id, None)
        if member is None:
            return None
        self._count(member, -1)
        self.joined_count -= member.join_ticket is not None
        if member.instance_id is not None:
            del self.instances[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        return member

    def replace(self, old: Member, new: Member) -> None:
        """A static member's new self takes the place of the old one, leadership and all."""
        assert new.instance_id is not None
        everyone = (new if member is old else member for member in self.members.values())
        self.members = {member.member_id: member for member in everyone}
        self._count(old, -1)
        self._count(new, 1)
        self.joined_count += (new.join_ticket is not None) - (old.join_ticket is not None)
        self.instances[new.instance_id] = new.member_id
        if self.leader == old.member_id:
            self.leader = new.member_id
        # DEVIATION: Kafka goes on waiting for a sync under the old id, and rebalances over it.
        if old.member_id in self.unsynced:
            del self.unsynced[old.member_id]
            self.unsynced[new.member_id] = None

    def park_join(self, member: Member, ticket: Ticket | None) -> Ticket | None:
        """Set or clear a member's parked join; returns the ticket that was there before."""
        before, member.join_ticket = member.join_ticket, ticket
        self.joined_count += (ticket is not None) - (before is not None)
        return before

    def update_protocols(self, member: Member, protocols: tuple[Protocol, ...]) -> None:
        self._count(member, -1)
        member.protocols = protocols
        self._count(member, 1)

    def recompute_subscribed_topics(self) -> None:
        if self.protocol_type != CONSUMER:
            self.subscribed_topics = None
            return
        # DEVIATION: Kafka fails over a subscription that it cannot read, unless it ends too early.
        metadata = [member.metadata(self.protocol) for member in self.members.values()]
        self.subscribed_topics = find_subscribed_topics(metadata)

    def _count(self, member: Member, step: int) -> None:
        # DEVIATION: Kafka fails over a member that names a protocol twice; here it has one voice.
        for name in dict.fromkeys(protocol.name for protocol in member.protocols):
            self.support[name] = self.support.get(name, 0) + step
            if not self.support[name]:
                del self.support[name]

    def follow(self, formed: GenerationFormed) -> None:
        """The record is kept: what it promised is now so."""
        if self.state is GroupState.PREPARING_REBALANCE:
            self._become_empty(formed)
            return
        if self.arriving is not None:
            self._welcome(self.arriving)
        for kept in formed.members:
            self.members[kept.member_id].assignment = kept.assignment
        for member in self.members.values():
            member.sync_ticket = None
        if self.state is GroupState.COMPLETING_REBALANCE:
            self.move(GroupState.STABLE, formed.state_since_ms)
        self.story = None

    def expects(self, formed: GenerationFormed) -> bool:
        """Whether this record is one the roster waits for; a new group's first one is not."""
        if self.state is GroupState.PREPARING_REBALANCE:
            return not formed.members and formed.generation == self.generation + 1
        return (
            self.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE)
            and formed.generation == self.generation
        )

    def _become_empty(self, formed: GenerationFormed) -> None:
        self.generation = formed.generation
        self.protocol = None
        self.recompute_subscribed_topics()
        self.unsynced.clear()
        self.move(GroupState.EMPTY, formed.state_since_ms)
        self.story = None

    def _welcome(self, arriving: Member) -> None:
        assert arriving.instance_id is not None
        old = self.members[self.instances[arriving.instance_id]]
        self.replace(old, arriving)
        self.arriving = None


@dataclass(slots=True)
class Group:
    group_id: GroupId
    formed: GenerationFormed | None = None
    """Hard: the last generation that was kept."""
    offsets: OffsetBook = field(default_factory=OffsetBook)
    """Hard: committed offsets, and those pending in transactions."""
    roster: Roster = field(default_factory=Roster)
    """Soft."""


def roster_from(formed: GenerationFormed | None) -> Roster:
    """The roster a restart begins with: stable with the kept members, or empty."""
    roster = Roster()
    if formed is None:
        return roster
    roster.generation = formed.generation
    roster.protocol_type = formed.protocol_type or None
    roster.protocol = formed.protocol
    roster.state_since_ms = formed.state_since_ms
    for kept in formed.members:
        roster.add(member_from(kept, formed.protocol or ""))
    if formed.leader in roster.members:
        roster.leader = formed.leader
    roster.state = GroupState.STABLE if formed.members else GroupState.EMPTY
    roster.previous_state = roster.state
    roster.recompute_subscribed_topics()
    return roster


def member_from(kept: FormedMember, protocol: str) -> Member:
    return Member(
        member_id=kept.member_id,
        instance_id=kept.instance_id,
        client_id=kept.client_id,
        client_host=kept.client_host,
        rebalance_timeout_ms=kept.rebalance_timeout_ms,
        session_timeout_ms=kept.session_timeout_ms,
        protocols=(Protocol(name=protocol, metadata=kept.subscription),),
        assignment=kept.assignment,
    )
