"""The assignment of a scripted member: its partitions, its position in each, its subscriptions and,
if it is the leader, the assignment that it computes.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from kohort.assignors import RebalanceProtocol, Subscriber, get_assignor
from kohort.client.member.leader_assignment import (
    compute_assignments,
    read_assignment,
    read_subscribers,
    topics_of,
    write_subscription,
)
from kohort.coordinator.commands import (
    NO_GENERATION,
    CommitOffsets,
    MemberAssignment,
    OffsetToCommit,
    Protocol,
    Ticket,
)
from kohort.coordinator.replies import Joined, Reply, RequestRefused
from kohort.types import (
    ZERO_UUID,
    ErrorCode,
    Generation,
    MemberId,
    Offset,
    Topic,
    TopicPartition,
)
from kohort.wire.api.k11_join_group import JoinGroupResponseMember
from tools.histories.client_profiles import MemberConfig
from tools.histories.consume_progress import ConsumeProgress, usual_speed
from tools.histories.log_growth import cumulative_traffic

if TYPE_CHECKING:
    from tools.histories.group_script import GroupScript


_PROCESSING_MS: Final = 700
"""The time from the append of a record to the end of its processing."""


class AssignmentState:
    def __init__(self, group: "GroupScript", config: MemberConfig) -> None:
        self._group = group
        self._config = config
        self.topics: frozenset[Topic] = config.topics
        self.progress: dict[TopicPartition, ConsumeProgress] = {}
        self.zombie_progress: dict[TopicPartition, ConsumeProgress] = {}
        """Revoked partitions that it still processes."""
        self._committed: dict[TopicPartition, int] = {}
        """The offsets that this member has committed."""
        self._last: tuple[TopicPartition, ...] = ()
        self._last_generation = NO_GENERATION

    # Joining

    def protocols(self, generation: Generation) -> tuple[Protocol, ...]:
        """Its assignors, each with its subscription."""
        if self._group.protocol_type != "consumer":
            name = self._config.client_id.encode()
            return tuple(Protocol(name=each, metadata=name) for each in self._config.assignors)
        subscriber = Subscriber(
            member_id=MemberId(""),
            topics=self.topics,
            owned=tuple(self.progress),
            generation=generation,
        )
        return tuple(
            Protocol(
                name=each,
                metadata=write_subscription(
                    get_assignor(each), subscriber, self._last, self._last_generation
                ),
            )
            for each in self._config.assignors
        )

    def assign(self, joined: Joined) -> tuple[MemberAssignment, ...]:
        """The assignment of all members, computed by the leader."""
        if self._group.protocol_type != "consumer":
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
        counts = self._group.log_growth.counts
        partitions = {each: counts[each] for each in topics_of(subscribers) if each in counts}
        is_cooperative = self._group.is_cooperative
        protocol = RebalanceProtocol.COOPERATIVE if is_cooperative else RebalanceProtocol.EAGER
        assigned = compute_assignments(
            get_assignor(joined.protocol or ""), protocol, partitions, subscribers
        )
        return tuple(
            MemberAssignment(member_id=member_id, assignment=assignment)
            for member_id, assignment in assigned.items()
        )

    # Owning partitions

    def adopt(
        self, assignment: bytes, generation: Generation
    ) -> dict[TopicPartition, ConsumeProgress]:
        """Start the added partitions; return the revoked ones."""
        assigned: Iterable[TopicPartition] = ()
        if assignment and self._group.protocol_type == "consumer":
            assigned = _read_assigned(assignment)
        self._last, self._last_generation = tuple(assigned), generation
        kept = set(assigned)
        revoked = {name: each for name, each in self.progress.items() if name not in kept}
        for each in assigned:
            if each not in self.progress:
                self.progress[each] = self._start(each)
            self.zombie_progress.pop(each, None)
        return revoked

    def _start(self, partition: TopicPartition) -> ConsumeProgress:
        """From the committed offset; without one, from the log end (auto.offset.reset=latest)."""
        group = self._group
        growth, now = group.log_growth.partitions[partition], group.scheduler.now_ms
        position = group.committed.get(partition)
        if position is None:
            position = growth.end(cumulative_traffic(now))
        return ConsumeProgress(growth, position, now, usual_speed(growth))

    def revoke(
        self, revoked: dict[TopicPartition, ConsumeProgress], *, keeps_revoked: bool
    ) -> None:
        for each in revoked:
            del self.progress[each]
        if keeps_revoked:
            for consumed in revoked.values():
                # It works off its own backlog and falls behind the new owner.
                consumed.speed = consumed.growth.rate // 2
            self.zombie_progress.update(revoked)

    def revoke_all(self) -> None:
        """As eager members do before they join, and as removed members must."""
        revoked = dict(self.progress)
        self.revoke(revoked, keeps_revoked=self._config.keeps_revoked)

    def seek(self, partition: TopicPartition, position: int) -> None:
        consumed = self.progress[partition]
        consumed.position, consumed.updated_ms = position, self._group.scheduler.now_ms

    def hang(self) -> None:
        """Processing stops in all partitions, while the consumer goes on polling."""
        for consumed in self.progress.values():
            consumed.speed = 0

    # Committing

    def commit(self, member_id: MemberId, generation: Generation) -> ErrorCode | None:
        """Commit all partitions; return the error code, or None if there is nothing to commit."""
        zombies = self.zombie_progress
        partitions = {**self.progress, **zombies} if zombies else self.progress
        return self.commit_partitions(partitions, member_id, generation)

    def commit_partitions(
        self,
        partitions: dict[TopicPartition, ConsumeProgress],
        member_id: MemberId,
        generation: Generation,
    ) -> ErrorCode | None:
        positions = self._positions(partitions)
        if not positions:
            return None
        config, group, errors = self._config, self._group, [ErrorCode.NONE]
        epoch, metadata = config.client.leader_epoch, config.metadata
        offsets = [
            OffsetToCommit(*name, Offset(position), epoch, metadata, ZERO_UUID)
            for name, position in positions.items()
        ]

        def request(ticket: Ticket) -> CommitOffsets:
            return CommitOffsets(
                ticket=ticket,
                group_id=group.group_id,
                member_id=member_id,
                instance_id=config.instance_id,
                generation=generation,
                offsets=tuple(offsets),
            )

        def deliver(reply: Reply) -> None:
            if isinstance(reply, RequestRefused):
                errors[0] = reply.error

        group.broker.send(request, deliver)
        if errors[0] is ErrorCode.NONE:
            self._committed.update(positions)
            group.committed.update(positions)
        return errors[0]

    def _positions(
        self, partitions: dict[TopicPartition, ConsumeProgress]
    ) -> dict[TopicPartition, int]:
        now = self._group.scheduler.now_ms
        traffic = cumulative_traffic(now - _PROCESSING_MS)
        positions = {name: each.advance(traffic, now) for name, each in partitions.items()}
        if self._config.client.commits_all:
            return positions
        before = self._committed
        return {name: each for name, each in positions.items() if before.get(name) != each}


@lru_cache(maxsize=1024)
def _read_assigned(assignment: bytes) -> tuple[TopicPartition, ...]:
    return tuple(sorted(read_assignment(assignment)))
