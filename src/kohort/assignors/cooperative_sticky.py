"""The cooperative-sticky assignor: members keep consuming during a rebalance (KIP-429).

A partition that changes its owner is unassigned in the first rebalance. The old owner revokes it
and joins again; the second rebalance assigns it to the new owner.
"""

from collections.abc import Iterable, Mapping, Sequence

from kohort.assignors.assignor import (
    NO_GENERATION,
    Assignment,
    RebalanceProtocol,
    Subscriber,
    check,
)
from kohort.assignors.owned_partitions import Claim, Owners, find_owners
from kohort.assignors.sticky_core import assign_sticky
from kohort.assignors.sticky_user_data import decode_cooperative, encode_cooperative
from kohort.types import Generation, Topic, TopicPartition


class CooperativeSticky:
    name = "cooperative-sticky"
    protocols = frozenset({RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER})

    def user_data(self, _assigned: Iterable[TopicPartition], generation: Generation, /) -> bytes:
        return encode_cooperative(generation)

    def assign(
        self, partitions: Mapping[Topic, int], subscribers: Sequence[Subscriber]
    ) -> Assignment:
        check(partitions, subscribers)
        owners = find_owners(map(_read_claim, subscribers))
        return without_transfers(assign_sticky(partitions, subscribers, owners), owners)


def without_transfers(wanted: Assignment, owners: Owners) -> Assignment:
    """Leave out partitions that another member claims, whether its claim is valid or not."""
    return {
        member_id: [each for each in partitions if owners.get(each, member_id) == member_id]
        for member_id, partitions in wanted.items()
    }


def _read_claim(subscriber: Subscriber) -> Claim:
    generation = subscriber.generation
    if generation == NO_GENERATION:
        generation = decode_cooperative(subscriber.user_data)
    return Claim(member_id=subscriber.member_id, partitions=subscriber.owned, generation=generation)
