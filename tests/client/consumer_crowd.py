"""Consumers of one group that are polled in turn, and the records they return."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

from kohort.client.consumer import Consumer
from kohort.client.fetch.consumer_records import ConsumerRecord
from kohort.client.rebalances import ConsumerRebalanceListener
from kohort.types import TopicPartition
from tests.client.node_cluster import Cluster, ProducedRecord, at, flatten
from tests.wait import wait_until


class RecordingListener(ConsumerRebalanceListener):
    """Records all listener calls in order."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[int, ...]]] = []

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self._record("assigned", partitions)

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self._record("revoked", partitions)

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        self._record("lost", partitions)

    def _record(self, word: str, partitions: Collection[TopicPartition]) -> None:
        self.calls.append((word, tuple(sorted(each.partition for each in partitions))))


class ConsumerCrowd:
    def __init__(self, cluster: Cluster, partitions: int, **options: Any) -> None:
        self.cluster = cluster
        self.topic = cluster.create_topic(partitions)
        self.partitions = frozenset(at(self.topic, number) for number in range(partitions))
        self.group = cluster.name_group()
        self.members: list[Consumer] = []
        self.seen: list[ConsumerRecord] = []
        self._options = options
        self._others: list[Consumer] = []

    def join(self, listener: ConsumerRebalanceListener | None = None, **options: Any) -> Consumer:
        given = {**self._options, **options}
        member = self.cluster.open_consumer(group_id=self.group, **given)
        member.subscribe([self.topic], listener=listener)
        self.members.append(member)
        return member

    def leave(self, member: Consumer) -> None:
        self.members.remove(member)
        member.close()

    def forget(self, member: Consumer) -> None:
        """Stop polling this member."""
        self.members.remove(member)
        self._others.append(member)

    def close(self) -> None:
        for member in self._others + self.members:
            member.close()

    def poll(self) -> None:
        for member in self.members:
            self.seen.extend(flatten(member.poll(10)))

    def is_settled(self) -> bool:
        """Whether every partition has one owner, and every member has partitions."""
        self.poll()
        shares = [member.assignment() for member in self.members]
        owned = [partition for share in shares for partition in share]
        return sorted(owned) == sorted(self.partitions) and all(shares)

    def settle(self) -> None:
        wait_until(self.is_settled, 30, "partitions assigned")

    def until(self, condition: Callable[[], object], what: str = "") -> None:
        def is_so() -> bool:
            self.poll()
            return bool(condition())

        wait_until(is_so, 30, what)

    def produce(self, count: int) -> None:
        """Produce `count` records to each partition."""
        records = [
            ProducedRecord(partition=partition.partition, value=b"%d" % number)
            for partition in sorted(self.partitions)
            for number in range(count)
        ]
        self.cluster.produce(self.topic, records)

    def has_seen(self, count: int) -> bool:
        self.poll()
        return len({(each.partition, each.offset) for each in self.seen}) >= count

    def read(self, count: int) -> list[tuple[int, int]]:
        """Poll until `count` records are read; returns them in order."""
        wait_until(lambda: self.has_seen(count), 30, f"{count} records")
        return sorted((each.partition, each.offset) for each in self.seen)


@contextmanager
def crowd_of(cluster: Cluster, partitions: int, **options: Any) -> Iterator[ConsumerCrowd]:
    crowd = ConsumerCrowd(cluster, partitions, **options)
    try:
        yield crowd
    finally:
        crowd.close()
