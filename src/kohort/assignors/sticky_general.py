"""Sticky assignment when members subscribe to different topics.

The result is as balanced as the subscriptions allow: no chain of moves leads from one member to
another that has at least two partitions fewer (see `load_flow`).

Balancing works on counts per member and topic, because partitions of one topic are
interchangeable. The last step turns counts into partitions, and each member keeps its own.

Owned partitions move only if balance needs it, along shortest chains. That is usually, but not
always, the minimum number of moves.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heapreplace
from itertools import islice

from kohort.assignors.assignor import Assignment
from kohort.assignors.load_flow import PartitionCounts, balance
from kohort.types import MemberId, Partition, Topic, TopicPartition


def assign_general(
    partitions: Mapping[Topic, int],
    wanted: Mapping[MemberId, Iterable[Topic]],
    owned: Assignment,
) -> Assignment:
    """`wanted` and `owned` have the same members as keys, in the same order."""
    topics = sorted({topic for each in wanted.values() for topic in each})
    numbers = {topic: number for number, topic in enumerate(topics)}
    subscribers: list[list[int]] = [[] for _ in topics]
    for member, each in enumerate(wanted.values()):
        for topic in each:
            subscribers[numbers[topic]].append(member)
    claims = [Counter(numbers[each.topic] for each in mine) for mine in owned.values()]
    counts = PartitionCounts(subscribers, claims)
    _distribute([partitions[topic] for topic in topics], counts)
    # Partitions without an owner can go anywhere, so balance with them first.
    balance(counts, fixed=claims)
    # DEVIATION: Kafka's sticky assignors stop when no single move helps. Ours also search for
    # chains of moves, so the result is sometimes more balanced and sometimes moves more partitions.
    # Cooperative groups therefore always become stable in the second rebalance.
    balance(counts, fixed=[{}] * len(claims))
    return _to_partitions(counts, topics, partitions, owned)


def _distribute(sizes: Sequence[int], counts: PartitionCounts) -> None:
    """Give unowned partitions to the least loaded subscribers, topics with few subscribers first.

    A greedy start: balance() then has little left to do, which makes it much faster.
    """
    left = list(sizes)
    for held in counts.held:
        for topic, count in held.items():
            left[topic] -= count
    subscribers = counts.subscribers
    unheld = [topic for topic, count in enumerate(left) if count]
    for topic in sorted(unheld, key=lambda topic: len(subscribers[topic])):
        queue = [(counts.loads[member], member) for member in subscribers[topic]]
        heapify(queue)
        for _ in range(left[topic]):
            load, member = queue[0]
            counts.add(member, topic)
            heapreplace(queue, (load + 1, member))


def _to_partitions(
    counts: PartitionCounts,
    topics: Sequence[Topic],
    partitions: Mapping[Topic, int],
    owned: Assignment,
) -> Assignment:
    """Turn counts into partitions. A member keeps its own ones up to its count per topic."""
    assignment: Assignment = {}
    capacities = []
    for (member_id, mine), held in zip(owned.items(), counts.held, strict=True):
        capacity = {topics[topic]: count for topic, count in held.items()}
        assignment[member_id] = []
        for each in mine:
            if capacity.get(each.topic):
                capacity[each.topic] -= 1
                assignment[member_id].append(each)
        capacities.append(capacity)
    taken = {each for kept in assignment.values() for each in kept}
    lists = list(assignment.values())
    for topic, subscribers in zip(topics, counts.subscribers, strict=True):
        every = (TopicPartition(topic, Partition(number)) for number in range(partitions[topic]))
        spare = (each for each in every if each not in taken)
        for member in subscribers:
            lists[member] += islice(spare, capacities[member].get(topic, 0))
    return assignment
