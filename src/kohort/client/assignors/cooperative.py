"""Sticky without the stop: members keep reading while the group rebalances (KIP-429).

Nothing passes from hand to hand. A partition that changes its owner is first given to nobody, so
that the old owner lets go and joins again; in the rebalance that follows, the new owner gets it.
"""

from collections.abc import Iterable, Mapping, Sequence

from kohort.client.assignors.assignor import (
    NO_GENERATION,
    Assignment,
    RebalanceProtocol,
    Subscriber,
    check,
)
from kohort.client.assignors.claims import Claim, Owners, find_owners
from kohort.client.assignors.placement import place
from kohort.client.assignors.user_data import decode_cooperative, encode_cooperative
from kohort.client.topic_partition import TopicPartition
from kohort.types import Generation, Topic


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
        return without_handovers(place(partitions, subscribers, owners), owners)


def without_handovers(wanted: Assignment, owners: Owners) -> Assignment:
    """Leave out what a member would get while another claims it, rightly or not."""
    return {
        member_id: [each for each in partitions if owners.get(each, member_id) == member_id]
        for member_id, partitions in wanted.items()
    }


def _read_claim(subscriber: Subscriber) -> Claim:
    generation = subscriber.generation
    if generation == NO_GENERATION:
        generation = decode_cooperative(subscriber.user_data)
    return Claim(member_id=subscriber.member_id, partitions=subscriber.owned, generation=generation)
