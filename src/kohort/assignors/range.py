"""The range assignor: splits each topic into contiguous runs, one run per subscriber.

Topics with equal partition counts and subscribers are split alike, so a member gets the same
numbers of each (co-partitioning). The first members get one partition more of every topic that
does not divide evenly.
"""

from collections.abc import Iterable, Mapping, Sequence

from kohort.assignors.assignor import (
    Assignment,
    RebalanceProtocol,
    Subscriber,
    check,
    in_kafka_order,
)
from kohort.types import Generation, Partition, Topic, TopicPartition


class Range:
    name = "range"
    protocols = frozenset({RebalanceProtocol.EAGER})

    def user_data(self, assigned: Iterable[TopicPartition], generation: Generation, /) -> None:
        """None: the previous assignment is not used."""

    def assign(
        self, partitions: Mapping[Topic, int], subscribers: Sequence[Subscriber]
    ) -> Assignment:
        check(partitions, subscribers)
        members = in_kafka_order(subscribers)
        assignment: Assignment = {subscriber.member_id: [] for subscriber in members}
        for topic in sorted(partitions):
            takers = [each.member_id for each in members if topic in each.topics]
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
