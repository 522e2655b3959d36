"""What an assignor is: the rule by which a group's leader deals out partitions to its members.

It is pure. It knows neither the clock nor the cluster: what it must know it is told, and the same
question has the same answer on every machine.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Final, Protocol, TypeAlias

from kohort.client.topic_partition import TopicPartition
from kohort.types import Generation, InstanceId, MemberId, Topic, value

NO_GENERATION: Final = Generation(-1)
"""Of a claim from before the first generation, or whose member does not tell."""

Assignment: TypeAlias = dict[MemberId, list[TopicPartition]]
"""Who reads what. Every subscriber is named, also one that gets nothing."""


class RebalanceProtocol(Enum):
    """What members do with their partitions while the group rebalances (KIP-429)."""

    EAGER = "eager"
    """They give up all of them before they join."""
    COOPERATIVE = "cooperative"
    """They keep them, and give up only what the new assignment takes away; then they join again."""


@value
class Subscriber:
    """One member, as the leader sees it."""

    member_id: MemberId
    instance_id: InstanceId | None = None
    topics: frozenset[Topic]
    owned: tuple[TopicPartition, ...] = ()
    """What its subscription says that it owns."""
    generation: Generation = NO_GENERATION
    """The generation of that claim."""
    # DEVIATION: our assignors do not look at racks (KIP-881). To prefer replicas in a member's own
    # they would need the racks of all replicas, and on one node there is nothing to gain by it.
    rack: str | None = None
    user_data: bytes | None = None
    """What the assignor of the same name wrote on the member's side."""


class Assignor(Protocol):
    """Programs may bring their own: any object with these names will do."""

    @property
    def name(self) -> str:
        """What members agree on: all must offer an assignor of this name, and mean the same."""

    @property
    def protocols(self) -> frozenset[RebalanceProtocol]:
        """The ways to rebalance that its assignments are safe with."""

    def user_data(
        self, assigned: Iterable[TopicPartition], generation: Generation, /
    ) -> bytes | None:
        """What a member adds to its subscription.

        It is told what it was last assigned, given up meanwhile or not, and in which generation.
        """

    def assign(
        self, partitions: Mapping[Topic, int], subscribers: Sequence[Subscriber]
    ) -> Assignment:
        """Deal out every partition of the topics that somebody subscribes to.

        A topic that is not in `partitions` is not known to the cluster, and nobody gets it.
        """


def in_line(subscribers: Iterable[Subscriber]) -> list[Subscriber]:
    """In Kafka's order: first static members by instance id, then the others by member id.

    So a static member that comes back under a new member id finds its old place.
    """
    return sorted(subscribers, key=_place)


def _place(subscriber: Subscriber) -> tuple[bool, bytes, bytes]:
    is_dynamic = subscriber.instance_id is None
    return is_dynamic, _as_java(subscriber.instance_id or ""), _as_java(subscriber.member_id)


def _as_java(text: str) -> bytes:
    """Sorts as Java sorts strings, by UTF-16 code units, so that either leader says the same."""
    return text.encode("utf-16-be", "surrogatepass")


def check(partitions: Mapping[Topic, int], subscribers: Sequence[Subscriber]) -> None:
    """Refuse what no assignment could be right for."""
    for topic, count in partitions.items():
        if count < 0:
            raise ValueError(f"topic {topic!r} cannot have {count} partitions")
    seen: set[MemberId] = set()
    for subscriber in subscribers:
        if subscriber.member_id in seen:
            raise ValueError(f"member {subscriber.member_id!r} subscribes twice")
        seen.add(subscriber.member_id)
