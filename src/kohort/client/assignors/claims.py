"""Who owns what, when members claim it: the newest claim holds, and of two equal ones neither.

A member that missed a generation still claims what was given to another meanwhile, hence the
newest. Two equal claims should not exist; since one of them is wrong, both members must let go.
"""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from kohort.client.topic_partition import TopicPartition
from kohort.types import Generation, MemberId, value


@value
class Claim:
    """What one member says that it owns, and since which generation."""

    member_id: MemberId
    partitions: Iterable[TopicPartition]
    generation: Generation


Owners: TypeAlias = Mapping[TopicPartition, MemberId | None]
"""Every partition that anyone claims, and whose it is; None while that is disputed."""


def find_owners(claims: Iterable[Claim]) -> Owners:
    owners: dict[TopicPartition, MemberId | None] = {}
    newest: dict[TopicPartition, Generation] = {}
    for claim in claims:
        # A set, since naming a partition twice is no dispute with oneself.
        for partition in set(claim.partitions):
            known = newest.get(partition)
            if known is None or claim.generation > known:
                owners[partition] = claim.member_id
                newest[partition] = claim.generation
            elif claim.generation == known:
                owners[partition] = None
    return owners
