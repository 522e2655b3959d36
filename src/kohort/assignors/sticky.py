"""The sticky assignor: balanced, moves few partitions, eager.

Eager members revoke everything before they join, so the user data carries what they had.
"""

from collections.abc import Iterable, Mapping, Sequence

from kohort.assignors.assignor import (
    NO_GENERATION,
    Assignment,
    RebalanceProtocol,
    Subscriber,
    check,
)
from kohort.assignors.owned_partitions import Claim, find_owners
from kohort.assignors.sticky_core import assign_sticky
from kohort.assignors.sticky_user_data import decode_sticky, encode_sticky
from kohort.types import Generation, Topic, TopicPartition


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
        return assign_sticky(partitions, subscribers, find_owners(map(_read_claim, subscribers)))


def _read_claim(subscriber: Subscriber) -> Claim:
    partitions, generation = decode_sticky(subscriber.user_data)
    return Claim(member_id=subscriber.member_id, partitions=partitions, generation=generation)
