"""All partitions in one row, dealt to members in turn; whoever does not subscribe is passed over.

With equal subscriptions nobody has more than one partition more than another. With unequal ones it
can be far from even, and any change may move everything: then the sticky assignors are better.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence

from kohort.client.assignors.assignor import (
    Assignment,
    RebalanceProtocol,
    Subscriber,
    check,
    in_line,
)
from kohort.client.topic_partition import TopicPartition
from kohort.types import Generation, Partition, Topic


class RoundRobin:
    name = "roundrobin"
    protocols = frozenset({RebalanceProtocol.EAGER})

    def user_data(self, assigned: Iterable[TopicPartition], generation: Generation, /) -> None:
        """Nothing: what was before plays no part."""

    def assign(
        self, partitions: Mapping[Topic, int], subscribers: Sequence[Subscriber]
    ) -> Assignment:
        check(partitions, subscribers)
        line = in_line(subscribers)
        assignment: Assignment = {subscriber.member_id: [] for subscriber in line}
        turn = 0
        for topic in sorted(partitions):
            places = [place for place, each in enumerate(line) if topic in each.topics]
            if not places:
                continue
            for number in range(partitions[topic]):
                # The first subscriber whose turn is not over, or else the first of the next round.
                place = places[bisect_left(places, turn) % len(places)]
                member_id = line[place].member_id
                assignment[member_id].append(TopicPartition(topic, Partition(number)))
                turn = place + 1
        return assignment
