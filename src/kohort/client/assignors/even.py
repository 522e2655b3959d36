"""Partitions for members that all subscribe to the same: nobody has two more than another.

Every member keeps what it owns up to its share, and the rest is dealt to whoever has least. That
moves as few partitions as any even assignment can.
"""

from collections.abc import Iterable, Mapping
from heapq import heapify, heapreplace

from kohort.client.assignors.assignor import Assignment
from kohort.client.topic_partition import TopicPartition
from kohort.types import MemberId, Partition, Topic


def spread_evenly(partitions: Mapping[Topic, int], owned: Assignment) -> Assignment:
    """Every member is in `owned`, and whoever comes first there gets its partitions first."""
    everything = [
        TopicPartition(topic, Partition(number))
        for topic, count in partitions.items()
        for number in range(count)
    ]
    kept = _keep_shares(len(everything), owned)
    taken = {each for partitions in kept.values() for each in partitions}
    _deal((each for each in everything if each not in taken), kept)
    return kept


def _keep_shares(count: int, owned: Assignment) -> Assignment:
    share, larger = divmod(count, len(owned))
    # Where the shares are not quite equal, the larger ones are for those who can use them.
    by_wealth = sorted(owned, key=lambda member_id: -len(owned[member_id]))
    shares = {member_id: share + (place < larger) for place, member_id in enumerate(by_wealth)}
    return {
        member_id: sorted(partitions, key=_number_first)[: shares[member_id]]
        for member_id, partitions in owned.items()
    }


def _number_first(each: TopicPartition) -> tuple[Partition, Topic]:
    """A member that gives up some of many topics gives up some of each, not the last topic."""
    return each.partition, each.topic


def _deal(partitions: Iterable[TopicPartition], assignment: Assignment) -> None:
    """Each to whoever has least, in turn. This fills all shares before it exceeds any."""
    line: list[tuple[int, int, MemberId]] = [
        (len(assignment[member_id]), place, member_id) for place, member_id in enumerate(assignment)
    ]
    heapify(line)
    for each in partitions:
        load, place, member_id = line[0]
        assignment[member_id].append(each)
        heapreplace(line, (load + 1, place, member_id))
