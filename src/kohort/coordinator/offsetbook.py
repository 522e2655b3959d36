"""The committed offsets of one group, and those that wait for their transaction to end. Hard.

Log order decides between a plain and a transactional commit of one partition: the later record
wins, whenever its transaction ends. A pending offset that a later one has overtaken is marked, so
that its commit no longer counts.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from kohort.coordinator.records import OffsetCommitted, OffsetsCommitted
from kohort.types import Partition, ProducerId, Topic


@dataclass(slots=True)
class PendingOffset:
    record: OffsetCommitted
    is_overtaken: bool = False


@dataclass(slots=True)
class OffsetBook:
    committed: dict[Topic, dict[Partition, OffsetCommitted]] = field(default_factory=dict)
    pending: dict[tuple[Topic, Partition], dict[ProducerId, PendingOffset]] = field(
        default_factory=dict
    )
    """By partition, then by producer in the order of their records."""

    def __bool__(self) -> bool:
        return bool(self.committed) or bool(self.pending)

    def __iter__(self) -> Iterator[OffsetCommitted]:
        for partitions in self.committed.values():
            yield from partitions.values()

    def find(self, topic: Topic, partition: Partition) -> OffsetCommitted | None:
        partitions = self.committed.get(topic)
        return None if partitions is None else partitions.get(partition)

    def has_pending(self, topic: Topic, partition: Partition) -> bool:
        return (topic, partition) in self.pending

    def commit(self, record: OffsetCommitted) -> None:
        """A plain commit: it overtakes whatever is pending."""
        if self.pending:
            for waiting in self.pending.get((record.topic, record.partition), {}).values():
                waiting.is_overtaken = True
        partitions = self.committed.get(record.topic)
        if partitions is None:
            partitions = self.committed[record.topic] = {}
        partitions[record.partition] = record

    def commit_all(self, records: OffsetsCommitted) -> None:
        """The same, one after the other; where they are of one topic it is found only once."""
        topic = records.columns.places.only_topic
        if self.pending or topic is None:
            for record in records:
                self.commit(record)
            return
        partitions = self.committed.get(topic)
        if partitions is None:
            partitions = self.committed[topic] = {}
        partitions.update(zip(records.columns.places.partitions, records, strict=True))

    def commit_pending(self, producer_id: ProducerId, record: OffsetCommitted) -> None:
        waiting = self.pending.setdefault((record.topic, record.partition), {})
        waiting.pop(producer_id, None)
        waiting[producer_id] = PendingOffset(record)

    def end_transaction(self, producer_id: ProducerId, *, is_commit: bool) -> None:
        for partition, waiting in list(self.pending.items()):
            if producer_id not in waiting:
                continue
            ended = waiting[producer_id]
            if is_commit and not ended.is_overtaken:
                self._overtake_older(waiting, producer_id)
                self.committed.setdefault(partition[0], {})[partition[1]] = ended.record
            del waiting[producer_id]
            if not waiting:
                del self.pending[partition]

    def remove(self, topic: Topic, partition: Partition) -> None:
        self.pending.pop((topic, partition), None)
        partitions = self.committed.get(topic, {})
        partitions.pop(partition, None)
        if not partitions:
            self.committed.pop(topic, None)

    @staticmethod
    def _overtake_older(waiting: dict[ProducerId, PendingOffset], producer_id: ProducerId) -> None:
        for other, pending in waiting.items():
            if other == producer_id:
                return
            pending.is_overtaken = True
