"""Rebalances as the application sees them: the listener, and a record of each rebalance."""

from collections.abc import Collection
from enum import StrEnum

from kohort.types import Generation, MemberId, Millis, TopicPartition, value


class ConsumerRebalanceListener:
    """Override the methods you need. All are called on the application's thread, within `poll`.

    They may use the consumer, for example to commit or to seek. If one of them raises an error,
    `poll` raises it; the rebalance continues.
    """

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        """New partitions, maybe none. No record of them has been read yet."""

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        """These partitions are about to be revoked. Commits are still possible."""

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        """Another member may own these partitions already. Commits are not possible.

        Calls `on_partitions_revoked` unless it is overridden.
        """
        self.on_partitions_revoked(partitions)


class ConsumerRebalanceResult(StrEnum):
    STABLE = "stable"
    """The member got an assignment, and the listener has returned."""
    SUPERSEDED = "superseded"
    """The group started another rebalance before this one was complete."""
    FAILED = "failed"
    """`poll` raised an error."""
    LEFT = "left"
    """The member left the group meanwhile."""


@value
class Rebalance:
    """One rebalance of this member."""

    started_at: Millis
    """When the member knew that it must join."""
    ended_at: Millis
    reason: str
    """Why this member joined, as sent to the coordinator (KIP-800)."""
    result: ConsumerRebalanceResult
    generation: Generation
    """The new generation; -1 if there was none."""
    member_id: MemberId
    protocol: str | None
    """The assignor that the group chose."""
    is_leader: bool
    members: int | None
    """The number of members; known only to the leader."""
    join_ms: Millis
    """Time from JoinGroup to its response: waiting for the other members."""
    sync_ms: Millis
    """Time from SyncGroup to its response: waiting for the leader."""
    listener_ms: Millis
    """Time in the application's listener."""
    poll_wait_ms: Millis
    """Time until the application polled, so that its listener could be called."""
    assigned: frozenset[TopicPartition]
    """All partitions owned at the end."""
    added: frozenset[TopicPartition]
    revoked: frozenset[TopicPartition]
    lost: frozenset[TopicPartition]
