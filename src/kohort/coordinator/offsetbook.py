"""The committed offsets of one group, and those that wait for their transaction to end. Hard.

Log order decides between a plain and a transactional commit of one partition: the later record
wins, whenever its transaction ends. A pending offset that a later one has overtaken is marked, so
that its commit no longer counts.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kohort.coordinator.commands import Places
from kohort.coordinator.records import OffsetCommitted, OffsetsCommitted
from kohort.types import Partition, ProducerId, Topic

_PUT_DOWN_MAX: Final = 100
"""Commits that nobody has looked at; protects memory from members that come and go."""


@dataclass(slots=True)
class PendingOffset:
    record: OffsetCommitted
    is_overtaken: bool = False


class OffsetBook:
    """Nobody looks at most commits before the next one of the same partitions comes. So those told
    by columns are put down as they are, and written out when somebody looks."""

    __slots__ = ("_committed", "_put_down", "pending")

    def __init__(self) -> None:
        self._committed: dict[Topic, dict[Partition, OffsetCommitted]] = {}
        self._put_down: dict[Places, OffsetsCommitted] = {}
        """The last commit of each set of partitions, in the order in which they came."""
        self.pending: dict[tuple[Topic, Partition], dict[ProducerId, PendingOffset]] = {}
        """By partition, then by producer in the order of their records."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OffsetBook):
            return NotImplemented
        return self.committed == other.committed and self.pending == other.pending

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return f"OffsetBook({self.committed!r}, pending={self.pending!r})"

    @property
    def committed(self) -> dict[Topic, dict[Partition, OffsetCommitted]]:
        if self._put_down:
            self._write_out()
        return self._committed

    def _write_out(self) -> None:
        put_down, self._put_down = self._put_down, {}
        for records in put_down.values():
            places = records.columns.places
            for topic, partition, record in zip(
                places.topics, places.partitions, records, strict=True
            ):
                partitions = self._committed.get(topic)
                if partitions is None:
                    partitions = self._committed[topic] = {}
                partitions[partition] = record

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
        """The same for each of them, one after the other."""
        if self.pending:
            for record in records:
                self.commit(record)
            return
        places = records.columns.places
        # What was put down for the same partitions is overtaken, and its place in the order too.
        self._put_down.pop(places, None)
        self._put_down[places] = records
        if len(self._put_down) > _PUT_DOWN_MAX:
            self._write_out()

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
