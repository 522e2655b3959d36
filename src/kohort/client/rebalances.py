"""One rebalance as a member lived it: when, why, how long, and what came and went."""

from enum import StrEnum

from kohort.client.topic_partition import TopicPartition
from kohort.types import Generation, MemberId, Millis, value


class Ending(StrEnum):
    STABLE = "stable"
    """An assignment came and the listener has heard of it."""
    OVERTAKEN = "overtaken"
    """The group began anew before it was complete."""
    FAILED = "failed"
    """An error that the program was told."""
    LEFT = "left"
    """The member left the group meanwhile."""


@value
class Rebalance:
    began_at: Millis
    """When the member knew that it must join."""
    ended_at: Millis
    reason: str
    """Why this member joined: the same words it told the coordinator (KIP-800)."""
    ending: Ending
    generation: Generation
    """The one it led to; -1 where it led to none."""
    member_id: MemberId
    protocol: str | None
    """The assignor everyone agreed on."""
    is_leader: bool
    members: int | None
    """How many there are; only a leader is told."""
    join_ms: Millis
    """Waiting for JoinGroup to be answered: for the other members, that is."""
    sync_ms: Millis
    """Waiting for SyncGroup to be answered: for the leader, that is."""
    callback_ms: Millis
    """Spent in the program's own listener."""
    waited_ms: Millis
    """For the program to poll, so that its listener could be called."""
    assigned: frozenset[TopicPartition]
    """All it held at the end."""
    added: frozenset[TopicPartition]
    revoked: frozenset[TopicPartition]
    lost: frozenset[TopicPartition]
