"""Each topic by itself, cut into runs of neighbouring partitions, one run for each subscriber.

Topics with as many partitions and the same subscribers are cut alike, so equal numbers meet in one
member. The price is balance: the first in line have one more of every topic that does not divide.
"""

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


class Range:
    name = "range"
    protocols = frozenset({RebalanceProtocol.EAGER})

    def user_data(self, assigned: Iterable[TopicPartition], generation: Generation, /) -> None:
        """Nothing: what was before plays no part."""

    def assign(
        self, partitions: Mapping[Topic, int], subscribers: Sequence[Subscriber]
    ) -> Assignment:
        check(partitions, subscribers)
        line = in_line(subscribers)
        assignment: Assignment = {subscriber.member_id: [] for subscriber in line}
        for topic in sorted(partitions):
            takers = [each.member_id for each in line if topic in each.topics]
            if not takers:
                continue
            run, longer = divmod(partitions[topic], len(takers))
            start = 0
            for place, member_id in enumerate(takers):
                end = start + run + (place < longer)
                assignment[member_id] += [
                    TopicPartition(topic, Partition(number)) for number in range(start, end)
                ]
                start = end
        return assignment
