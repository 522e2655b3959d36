"""The interface of an assignor, its input and output types, and checks that all assignors share.

An assignor decides which group member reads which partition. It is pure: it gets everything it
needs as arguments, so the same input gives the same assignment on every machine.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Final, Protocol, TypeAlias

from kohort.types import Generation, InstanceId, MemberId, Topic, TopicPartition, value

NO_GENERATION: Final = Generation(-1)
"""The generation of a member that has not been in one yet, or that does not send it."""

Assignment: TypeAlias = dict[MemberId, list[TopicPartition]]
"""Partitions by member. Has a key for every subscriber, also for one without partitions."""


class RebalanceProtocol(Enum):
    """What members do with their partitions during a rebalance (KIP-429)."""

    EAGER = "eager"
    """They revoke all partitions before they join."""
    COOPERATIVE = "cooperative"
    """They revoke only the partitions that the new assignment takes away, then join again."""


@value
class Subscriber:
    """The subscription of one member, as the leader receives it."""

    member_id: MemberId
    instance_id: InstanceId | None = None
    topics: frozenset[Topic]
    owned: tuple[TopicPartition, ...] = ()
    """The partitions that the member says it owns."""
    generation: Generation = NO_GENERATION
    """The generation in which it owned them."""
    # DEVIATION: our assignors ignore racks (KIP-881). Preferring replicas in the member's rack
    # needs the racks of all replicas, and a single node gains nothing from it.
    rack: str | None = None
    user_data: bytes | None = None
    """What the assignor of the same name returned from user_data() on that member."""


class Assignor(Protocol):
    """Applications may pass their own: any object with these attributes is an assignor."""

    @property
    def name(self) -> str:
        """The protocol name that members agree on. All of them must offer it."""

    @property
    def protocols(self) -> frozenset[RebalanceProtocol]:
        """The rebalance protocols that its assignments are safe with."""

    def user_data(
        self, assigned: Iterable[TopicPartition], generation: Generation, /
    ) -> bytes | None:
        """Return the bytes a member adds to its subscription.

        `assigned` is its last assignment, even if it was revoked since, made in `generation`.
        """

    def assign(
        self, partitions: Mapping[Topic, int], subscribers: Sequence[Subscriber]
    ) -> Assignment:
        """Assign every partition of the subscribed topics.

        A topic that is missing from `partitions` does not exist in the cluster and is skipped.
        """


def in_kafka_order(subscribers: Iterable[Subscriber]) -> list[Subscriber]:
    """Sort as Kafka does: first static members by instance id, then the others by member id.

    A static member that returns with a new member id therefore keeps its position.
    """
    return sorted(subscribers, key=_sort_key)


def _sort_key(subscriber: Subscriber) -> tuple[bool, bytes, bytes]:
    is_dynamic = subscriber.instance_id is None
    return is_dynamic, _as_java(subscriber.instance_id or ""), _as_java(subscriber.member_id)


def _as_java(text: str) -> bytes:
    """Sort key equal to Java's string order (UTF-16 code units): both leaders assign alike."""
    return text.encode("utf-16-be", "surrogatepass")


def check(partitions: Mapping[Topic, int], subscribers: Sequence[Subscriber]) -> None:
    """Raise ValueError for a negative partition count or a member that appears twice."""
    for topic, count in partitions.items():
        if count < 0:
            raise ValueError(f"topic {topic!r} cannot have {count} partitions")
    seen: set[MemberId] = set()
    for subscriber in subscribers:
        if subscriber.member_id in seen:
            raise ValueError(f"member {subscriber.member_id!r} subscribes twice")
        seen.add(subscriber.member_id)
