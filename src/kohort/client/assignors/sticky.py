"""As even as subscriptions allow, and with as little moved as that takes; eager.

Members give up everything before they join, so each tells in its user data what it had.
"""

from collections.abc import Iterable, Mapping, Sequence

from kohort.client.assignors.assignor import (
    NO_GENERATION,
    Assignment,
    RebalanceProtocol,
    Subscriber,
    check,
)
from kohort.client.assignors.claims import Claim, find_owners
from kohort.client.assignors.placement import place
from kohort.client.assignors.user_data import decode_sticky, encode_sticky
from kohort.client.topic_partition import TopicPartition
from kohort.types import Generation, Topic


class Sticky:
    name = "sticky"
    protocols = frozenset({RebalanceProtocol.EAGER})

    def user_data(
        self, assigned: Iterable[TopicPartition], generation: Generation, /
    ) -> bytes | None:
        return None if generation == NO_GENERATION else encode_sticky(assigned, generation)

    def assign(
        self, partitions: Mapping[Topic, int], subscribers: Sequence[Subscriber]
    ) -> Assignment:
        check(partitions, subscribers)
        return place(partitions, subscribers, find_owners(map(_read_claim, subscribers)))


def _read_claim(subscriber: Subscriber) -> Claim:
    partitions, generation = decode_sticky(subscriber.user_data)
    return Claim(member_id=subscriber.member_id, partitions=partitions, generation=generation)
