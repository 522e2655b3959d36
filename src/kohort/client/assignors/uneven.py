"""Partitions for members that subscribe to different topics: as even as their subscriptions allow.

Nobody could give a partition to a member that has two less, neither directly nor through others
that would each pass one on. Loads cannot be more even than that (see `levelling`).

To that question all partitions of a topic are alike, so it is answered in numbers: how many of
which topic are whose. Only at the end is it settled which ones, and each member keeps its own.

What members own moves only if nothing else makes loads as even, and then along the shortest ways.
That is mostly, but not always, the fewest moves there could be.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heapreplace
from itertools import islice

from kohort.client.assignors.assignor import Assignment
from kohort.client.assignors.levelling import Holdings, level
from kohort.client.topic_partition import TopicPartition
from kohort.types import MemberId, Partition, Topic


def spread_unevenly(
    partitions: Mapping[Topic, int],
    wanted: Mapping[MemberId, Iterable[Topic]],
    owned: Assignment,
) -> Assignment:
    """The same members are in `wanted` and in `owned`, in the order in which they are served."""
    topics = sorted({topic for each in wanted.values() for topic in each})
    numbers = {topic: number for number, topic in enumerate(topics)}
    subscribers: list[list[int]] = [[] for _ in topics]
    for member, each in enumerate(wanted.values()):
        for topic in each:
            subscribers[numbers[topic]].append(member)
    claims = [Counter(numbers[each.topic] for each in mine) for mine in owned.values()]
    holdings = Holdings(subscribers, claims)
    _deal([partitions[topic] for topic in topics], holdings)
    # What nobody owns yet may go anywhere: first let it even out what it can.
    level(holdings, fixed=claims)
    # DEVIATION: Kafka's sticky assignors stop when no single move helps. These also look for
    # chains of moves, so loads are at times more even, and at times more partitions move for it.
    # In return nothing is left to improve: cooperative members always settle in the second round.
    level(holdings, fixed=[{}] * len(claims))
    return _name(holdings, topics, partitions, owned)


def _deal(counts: Sequence[int], holdings: Holdings) -> None:
    """Give what nobody holds to whoever has least, the topics with the least choice first.

    It need not be right: levelling is much quicker where little is left to do.
    """
    left = list(counts)
    for held in holdings.held:
        for topic, count in held.items():
            left[topic] -= count
    subscribers = holdings.subscribers
    unheld = [topic for topic, count in enumerate(left) if count]
    for topic in sorted(unheld, key=lambda topic: len(subscribers[topic])):
        line = [(holdings.loads[member], member) for member in subscribers[topic]]
        heapify(line)
        for _ in range(left[topic]):
            load, member = line[0]
            holdings.add(member, topic)
            heapreplace(line, (load + 1, member))


def _name(
    holdings: Holdings, topics: Sequence[Topic], partitions: Mapping[Topic, int], owned: Assignment
) -> Assignment:
    """Turn numbers into partitions: of each topic a member keeps its own, as many as it holds."""
    assignment: Assignment = {}
    rooms = []
    for (member_id, mine), held in zip(owned.items(), holdings.held, strict=True):
        room = {topics[topic]: count for topic, count in held.items()}
        assignment[member_id] = []
        for each in mine:
            if room.get(each.topic):
                room[each.topic] -= 1
                assignment[member_id].append(each)
        rooms.append(room)
    taken = {each for kept in assignment.values() for each in kept}
    lists = list(assignment.values())
    for topic, subscribers in zip(topics, holdings.subscribers, strict=True):
        every = (TopicPartition(topic, Partition(number)) for number in range(partitions[topic]))
        spare = (each for each in every if each not in taken)
        for member in subscribers:
            lists[member] += islice(spare, rooms[member].get(topic, 0))
    return assignment
