"""Sticky assignment when all members have the same subscription.

Each member keeps its partitions up to its share; the rest goes to the members with the fewest.
Partition counts differ by at most one, and no balanced assignment moves fewer partitions.
"""

from collections.abc import Iterable, Mapping
from heapq import heapify, heapreplace

from kohort.assignors.assignor import Assignment
from kohort.types import MemberId, Partition, Topic, TopicPartition


def assign_uniform(partitions: Mapping[Topic, int], owned: Assignment) -> Assignment:
    """`owned` has a key for every member; its order decides who gets partitions first."""
    everything = [
        TopicPartition(topic, Partition(number))
        for topic, count in partitions.items()
        for number in range(count)
    ]
    kept = _keep_shares(len(everything), owned)
    taken = {each for partitions in kept.values() for each in partitions}
    _distribute((each for each in everything if each not in taken), kept)
    return kept


def _keep_shares(count: int, owned: Assignment) -> Assignment:
    share, larger = divmod(count, len(owned))
    # If shares differ by one, members that own the most get the larger ones.
    by_count = sorted(owned, key=lambda member_id: -len(owned[member_id]))
    shares = {member_id: share + (place < larger) for place, member_id in enumerate(by_count)}
    return {
        member_id: sorted(partitions, key=_number_first)[: shares[member_id]]
        for member_id, partitions in owned.items()
    }


def _number_first(each: TopicPartition) -> tuple[Partition, Topic]:
    """A member that loses partitions of many topics loses some of each, not one whole topic."""
    return each.partition, each.topic


def _distribute(partitions: Iterable[TopicPartition], assignment: Assignment) -> None:
    """Give each partition to the member with the fewest partitions."""
    queue: list[tuple[int, int, MemberId]] = [
        (len(assignment[member_id]), place, member_id) for place, member_id in enumerate(assignment)
    ]
    heapify(queue)
    for each in partitions:
        load, place, member_id = queue[0]
        assignment[member_id].append(each)
        heapreplace(queue, (load + 1, place, member_id))
