"""Decides which member owns a partition when several claim it: the newest generation wins.

A member that missed a generation still claims partitions that have since been assigned to another
member. Two claims of the same generation should not happen; one must be wrong, so neither member
keeps the partition.
"""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from kohort.types import Generation, MemberId, TopicPartition, value


@value
class Claim:
    """The partitions one member says it owns, and the generation of that claim."""

    member_id: MemberId
    partitions: Iterable[TopicPartition]
    generation: Generation


Owners: TypeAlias = Mapping[TopicPartition, MemberId | None]
"""The owner of every claimed partition; None if two members claim it in one generation."""


def find_owners(claims: Iterable[Claim]) -> Owners:
    owners: dict[TopicPartition, MemberId | None] = {}
    newest: dict[TopicPartition, Generation] = {}
    for claim in claims:
        # A set, because one member may name a partition twice.
        for partition in set(claim.partitions):
            known = newest.get(partition)
            if known is None or claim.generation > known:
                owners[partition] = claim.member_id
                newest[partition] = claim.generation
            elif claim.generation == known:
                owners[partition] = None
    return owners
