"""What a member holds: the partitions of its share, how far it has read each, what it says of them
when it joins, and what it deals out when it leads.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from kohort.client.assignors import RebalanceProtocol, Subscriber, get_assignor
from kohort.client.member.leading import (
    deal,
    read_assignment,
    read_subscribers,
    topics_of,
    write_subscription,
)
from kohort.client.topic_partition import TopicPartition
from kohort.coordinator.commands import (
    NO_GENERATION,
    CommitOffsets,
    MemberAssignment,
    OffsetToCommit,
    Protocol,
    Ticket,
)
from kohort.coordinator.replies import Joined, Refused, Reply
from kohort.corpus.feed import progress
from kohort.corpus.reading import Reading, usual_speed
from kohort.corpus.traits import Traits
from kohort.types import (
    ZERO_UUID,
    ErrorCode,
    Generation,
    MemberId,
    Topic,
    maker,
)
from kohort.wire.api.k11_join_group import JoinGroupResponseMember

if TYPE_CHECKING:
    from kohort.corpus.fleet import Fleet

_make_offset: Final = maker(OffsetToCommit)

_PROCESSING_MS: Final = 700
"""How long a record is on its way from the log until it has been dealt with."""


class Holding:
    def __init__(self, fleet: "Fleet", traits: Traits) -> None:
        self._fleet = fleet
        self._traits = traits
        self.topics: frozenset[Topic] = traits.topics
        self.readings: dict[TopicPartition, Reading] = {}
        self.ghosts: dict[TopicPartition, Reading] = {}
        """What it was told to give up and works on all the same."""
        self._committed: dict[TopicPartition, int] = {}
        """What it has committed itself."""
        self._last: tuple[TopicPartition, ...] = ()
        self._last_generation = NO_GENERATION

    # Joining

    def offers(self, generation: Generation) -> tuple[Protocol, ...]:
        """What it can do, and with it what it wants and holds."""
        if self._fleet.protocol_type != "consumer":
            name = self._traits.client_id.encode()
            return tuple(Protocol(name=each, metadata=name) for each in self._traits.assignors)
        mine = Subscriber(
            member_id=MemberId(""),
            topics=self.topics,
            owned=tuple(self.readings),
            generation=generation,
        )
        return tuple(
            Protocol(
                name=each,
                metadata=write_subscription(
                    get_assignor(each), mine, self._last, self._last_generation
                ),
            )
            for each in self._traits.assignors
        )

    def deal(self, joined: Joined) -> tuple[MemberAssignment, ...]:
        """As the leader: who gets what."""
        if self._fleet.protocol_type != "consumer":
            return tuple(
                MemberAssignment(member_id=each.member_id, assignment=b"\0\1" + each.metadata)
                for each in joined.members
            )
        subscribers = read_subscribers(
            JoinGroupResponseMember(
                member_id=each.member_id,
                group_instance_id=each.instance_id,
                metadata=each.metadata,
            )
            for each in joined.members
        )
        counts = self._fleet.feed.counts
        partitions = {each: counts[each] for each in topics_of(subscribers) if each in counts}
        is_cooperative = self._fleet.is_cooperative
        way = RebalanceProtocol.COOPERATIVE if is_cooperative else RebalanceProtocol.EAGER
        dealt = deal(get_assignor(joined.protocol or ""), way, partitions, subscribers)
        return tuple(
            MemberAssignment(member_id=member_id, assignment=assignment)
            for member_id, assignment in dealt.items()
        )

    # Holding

    def adopt(self, assignment: bytes, generation: Generation) -> dict[TopicPartition, Reading]:
        """Take what is new in its share; returns what is no longer in it."""
        share: Iterable[TopicPartition] = ()
        if assignment and self._fleet.protocol_type == "consumer":
            share = _read_share(assignment)
        self._last, self._last_generation = tuple(share), generation
        wanted = set(share)
        revoked = {each: kept for each, kept in self.readings.items() if each not in wanted}
        for each in share:
            if each not in self.readings:
                self.readings[each] = self._begin(each)
            self.ghosts.pop(each, None)
        return revoked

    def _begin(self, partition: TopicPartition) -> Reading:
        """From where the group has committed, or else from the log's end, as most programs do."""
        fleet = self._fleet
        flow, now = fleet.feed.flows[partition], fleet.timeline.now
        position = fleet.committed.get(partition)
        if position is None:
            position = flow.end(progress(now))
        return Reading(flow, position, now, usual_speed(flow))

    def let_go(self, revoked: dict[TopicPartition, Reading], *, clings: bool) -> None:
        for each in revoked:
            del self.readings[each]
        if clings:
            for reading in revoked.values():
                # It has a backlog of its own to work off, and falls behind whoever reads now.
                reading.speed = reading.flow.rate // 2
            self.ghosts.update(revoked)

    def give_up(self) -> None:
        """Everything, as eager members do before they join, and as whoever is put out must."""
        revoked = dict(self.readings)
        self.let_go(revoked, clings=self._traits.clings)

    def seek(self, partition: TopicPartition, position: int) -> None:
        """The program turns back, and reads on from there."""
        reading = self.readings[partition]
        reading.position, reading.looked_ms = position, self._fleet.timeline.now

    def hang(self) -> None:
        """The program works no more on what it holds, while its threads go on polling."""
        for reading in self.readings.values():
            reading.speed = 0

    # Committing

    def commit(self, member_id: MemberId, generation: Generation) -> ErrorCode | None:
        """Of all it works on; returns how that was answered, or None if there was nothing to say"""
        held = {**self.readings, **self.ghosts} if self.ghosts else self.readings
        return self.commit_of(held, member_id, generation)

    def commit_of(
        self, held: dict[TopicPartition, Reading], member_id: MemberId, generation: Generation
    ) -> ErrorCode | None:
        positions = self._find_positions(held)
        if not positions:
            return None
        traits, fleet, answers = self._traits, self._fleet, [ErrorCode.NONE]
        epoch, metadata = traits.make.leader_epoch, traits.metadata
        offsets = [
            _make_offset(*name, position, epoch, metadata, ZERO_UUID)
            for name, position in positions.items()
        ]

        def request(ticket: Ticket) -> CommitOffsets:
            return CommitOffsets(
                ticket=ticket,
                group_id=fleet.group_id,
                member_id=member_id,
                instance_id=traits.instance_id,
                generation=generation,
                offsets=tuple(offsets),
            )

        def deliver(reply: Reply) -> None:
            if isinstance(reply, Refused):
                answers[0] = reply.error

        fleet.house.ask(request, deliver)
        if answers[0] is ErrorCode.NONE:
            self._committed.update(positions)
            fleet.committed.update(positions)
        return answers[0]

    def _find_positions(self, held: dict[TopicPartition, Reading]) -> dict[TopicPartition, int]:
        now = self._fleet.timeline.now
        progressed = progress(now - _PROCESSING_MS)
        positions = {name: each.advance(progressed, now) for name, each in held.items()}
        if self._traits.make.commits_all:
            return positions
        before = self._committed
        return {name: each for name, each in positions.items() if before.get(name) != each}


@lru_cache(maxsize=1024)
def _read_share(assignment: bytes) -> tuple[TopicPartition, ...]:
    return tuple(sorted(read_assignment(assignment)))
