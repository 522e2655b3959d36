"""The round-robin assignor: all partitions in order, to members in turn, skipping non-subscribers.

With equal subscriptions, partition counts differ by at most one. With unequal ones the result can
be far from balanced, and any change may move every partition; the sticky assignors do better.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence

from kohort.assignors.assignor import (
    Assignment,
    RebalanceProtocol,
    Subscriber,
    check,
    in_kafka_order,
)
from kohort.types import Generation, Partition, Topic, TopicPartition


class RoundRobin:
    name = "roundrobin"
    protocols = frozenset({RebalanceProtocol.EAGER})

    def user_data(self, assigned: Iterable[TopicPartition], generation: Generation, /) -> None:
        """None: the previous assignment is not used."""

    def assign(
        self, partitions: Mapping[Topic, int], subscribers: Sequence[Subscriber]
    ) -> Assignment:
        check(partitions, subscribers)
        members = in_kafka_order(subscribers)
        assignment: Assignment = {subscriber.member_id: [] for subscriber in members}
        turn = 0
        for topic in sorted(partitions):
            places = [place for place, each in enumerate(members) if topic in each.topics]
            if not places:
                continue
            for number in range(partitions[topic]):
                # The next subscriber at or after `turn`, else the first one again.
                place = places[bisect_left(places, turn) % len(places)]
                member_id = members[place].member_id
                assignment[member_id].append(TopicPartition(topic, Partition(number)))
                turn = place + 1
        return assignment
