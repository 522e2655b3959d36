"""The committed offsets of one group, and those pending in transactions. All of it is hard state.

Log order decides between a plain and a transactional commit of one partition: the later record
wins, whenever its transaction ends. A pending offset that a later record superseded is marked, so
that the end of its transaction does not commit it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kohort.coordinator.commands import PartitionColumns
from kohort.coordinator.records import OffsetCommitted, OffsetsCommitted
from kohort.types import Partition, ProducerId, Topic

_UNEXPANDED_MAX: Final = 100
"""Commits with different partitions; protects memory from members that come and go."""


@dataclass(slots=True)
class PendingOffset:
    record: OffsetCommitted
    is_superseded: bool = False


class CommittedOffsets:
    """Columnar commits are stored unexpanded and expanded to per-partition records on first read.

    Most of them are never expanded, because the next commit of the same partitions replaces them.
    """

    __slots__ = ("_committed", "_unexpanded", "pending")

    def __init__(self) -> None:
        self._committed: dict[Topic, dict[Partition, OffsetCommitted]] = {}
        self._unexpanded: dict[PartitionColumns, OffsetsCommitted] = {}
        """The last commit of each set of partitions, in commit order."""
        self.pending: dict[tuple[Topic, Partition], dict[ProducerId, PendingOffset]] = {}
        """By partition, then by producer in log order."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CommittedOffsets):
            return NotImplemented
        return self.committed == other.committed and self.pending == other.pending

    __hash__ = None  # type: ignore[assignment]  # it is mutable

    def __repr__(self) -> str:
        return f"CommittedOffsets({self.committed!r}, pending={self.pending!r})"

    @property
    def committed(self) -> dict[Topic, dict[Partition, OffsetCommitted]]:
        if self._unexpanded:
            self._expand()
        return self._committed

    def _expand(self) -> None:
        unexpanded, self._unexpanded = self._unexpanded, {}
        for records in unexpanded.values():
            partition_columns = records.columns.partition_columns
            for topic, partition, record in zip(
                partition_columns.topics, partition_columns.partitions, records, strict=True
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
        """Apply a plain commit. It supersedes what is pending for the partition."""
        if self.pending:
            for waiting in self.pending.get((record.topic, record.partition), {}).values():
                waiting.is_superseded = True
        partitions = self.committed.get(record.topic)
        if partitions is None:
            partitions = self.committed[record.topic] = {}
        partitions[record.partition] = record

    def commit_all(self, records: OffsetsCommitted) -> None:
        """Apply a columnar commit, as `commit` would for each of its offsets."""
        if self.pending:
            for record in records:
                self.commit(record)
            return
        partition_columns = records.columns.partition_columns
        # A dict keeps the place of an existing key, so the key is removed first.
        self._unexpanded.pop(partition_columns, None)
        self._unexpanded[partition_columns] = records
        if len(self._unexpanded) > _UNEXPANDED_MAX:
            self._expand()

    def commit_pending(self, producer_id: ProducerId, record: OffsetCommitted) -> None:
        waiting = self.pending.setdefault((record.topic, record.partition), {})
        waiting.pop(producer_id, None)
        waiting[producer_id] = PendingOffset(record)

    def end_transaction(self, producer_id: ProducerId, *, is_commit: bool) -> None:
        for partition, waiting in list(self.pending.items()):
            if producer_id not in waiting:
                continue
            ended = waiting[producer_id]
            if is_commit and not ended.is_superseded:
                self._supersede_older(waiting, producer_id)
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
    def _supersede_older(waiting: dict[ProducerId, PendingOffset], producer_id: ProducerId) -> None:
        for other, pending in waiting.items():
            if other == producer_id:
                return
            pending.is_superseded = True
