"""Acknowledged records stay at their offset and never change, offsets have no gaps, and a retried
batch of an idempotent producer is stored once.

After a power failure, unacknowledged or unsynced records may be lost and their offsets reused.
"""

from collections.abc import Callable, Sequence

from kohort.sim.checkers import Violation
from kohort.types import TopicPartition

_RULE = "records"


class _Log:
    """What clients have seen of one partition."""

    def __init__(self) -> None:
        self.known: dict[int, str] = {}
        """Values by offset."""
        self.offset_by_value: dict[str, int] = {}
        """Offsets by value."""
        self.acknowledged_records: dict[int, bool] = {}
        """Acknowledged offsets, and whether they survive a power failure."""
        self.replaced: set[int] = set()
        """Offsets whose value has changed after it was read."""
        self.read: set[int] = set()


class RecordDurability:
    def __init__(
        self, on_lost: Callable[[TopicPartition], None], is_unique: Callable[[str], bool]
    ) -> None:
        """`is_unique` is true for records of idempotent producers."""
        self._logs: dict[TopicPartition, _Log] = {}
        self._is_unique = is_unique
        self._on_lost = on_lost
        self._lost_at = -1
        """Time of the last power failure; -1 if there was none."""

    def _get(self, partition: TopicPartition) -> _Log:
        return self._logs.setdefault(partition, _Log())

    # Observations. `asked_at` is the time of the request: the response may have been in flight
    # during a power failure.

    def acknowledged(
        self,
        partition: TopicPartition,
        base_offset: int,
        values: Sequence[str],
        asked_at: int,
        *,
        is_synced: bool,
    ) -> None:
        log = self._get(partition)
        if asked_at < self._lost_at and not is_synced:
            return
        for offset, value in enumerate(values, base_offset):
            self._see(partition, offset, value)
            log.acknowledged_records[offset] = is_synced

    def fetched(
        self,
        partition: TopicPartition,
        position: int,
        records: Sequence[tuple[int, str]],
        asked_at: int,
    ) -> None:
        """The first batch may start before the position."""
        log = self._get(partition)
        expected = position
        for offset, value in records:
            if offset >= position:
                if offset != expected:
                    what = f"{_show(partition)} has offset {offset} where {expected} is expected"
                    raise Violation(_RULE, what)
                expected = offset + 1
            if asked_at >= self._lost_at or offset not in log.known:
                self._see(partition, offset, value)
            elif log.known[offset] != value:
                log.replaced.add(offset)
            log.read.add(offset)

    def _see(self, partition: TopicPartition, offset: int, value: str) -> None:
        log = self._get(partition)
        before = log.known.get(offset)
        if before == value:
            return
        if before is not None:
            self._check_replaced(partition, log, offset, value)
            if offset in log.read:
                log.replaced.add(offset)
        log.known[offset] = value
        self._check_unique(partition, log, offset, value)

    def _check_unique(self, partition: TopicPartition, log: _Log, offset: int, value: str) -> None:
        other = log.offset_by_value.get(value)
        log.offset_by_value[value] = offset
        # After a power failure the first copy may be lost, so a second one is allowed.
        if other is not None and self._is_unique(value) and self._lost_at < 0:
            what = f"{_show(partition)} holds {value} at {other} and at {offset}"
            raise Violation(_RULE, what)

    def _check_replaced(
        self, partition: TopicPartition, log: _Log, offset: int, value: str
    ) -> None:
        if offset in log.acknowledged_records:
            what = (
                f"{_show(partition)}@{offset} was {log.known[offset]}, acknowledged, and is {value}"
            )
            raise Violation(_RULE, what)
        if self._lost_at < 0:
            what = f"{_show(partition)}@{offset} was {log.known[offset]} and is {value}"
            raise Violation(_RULE, what)
        self._on_lost(partition)

    def check_start_offset(self, partition: TopicPartition, beginning: int) -> None:
        """No acknowledged record may have an offset before the start of the log."""
        missing = [
            offset for offset in self._get(partition).acknowledged_records if offset < beginning
        ]
        if missing:
            what = f"{_show(partition)} begins at {beginning}, but {max(missing)} was acknowledged"
            raise Violation(_RULE, what)

    def check_end_offset(self, partition: TopicPartition, end: int) -> None:
        """No acknowledged record may have an offset at or after the end of the log."""
        log = self._get(partition)
        missing = [offset for offset in log.acknowledged_records if offset >= end]
        if missing:
            what = f"{_show(partition)} ends at {end}, but {min(missing)} was acknowledged"
            raise Violation(_RULE, what)

    def out_of_range(self, partition: TopicPartition, offset: int) -> None:
        """A fetch returned OFFSET_OUT_OF_RANGE."""
        if self._lost_at < 0:
            what = f"{_show(partition)}@{offset} is out of range without a power failure"
            raise Violation(_RULE, what)
        self._on_lost(partition)

    def sequence_lost(self, partition: TopicPartition) -> None:
        """The node has lost the producer state of this partition."""
        if self._lost_at < 0:
            raise Violation(
                _RULE, f"{_show(partition)} lost its producer state without a power failure"
            )

    # Losses

    def power_lost(self, now: int, *, is_all_lost: bool) -> None:
        """Unsynced records may be lost; all records if the node does not sync."""
        self._lost_at = now
        for log in self._logs.values():
            log.acknowledged_records = {
                offset: is_synced
                for offset, is_synced in log.acknowledged_records.items()
                if is_synced and not is_all_lost
            }

    # Results

    def acknowledged_records(self, partition: TopicPartition) -> dict[int, str]:
        """Records that every group must process: acknowledged and never replaced."""
        log = self._get(partition)
        return {
            offset: log.known[offset]
            for offset in log.acknowledged_records
            if offset not in log.replaced
        }

    def end(self, partition: TopicPartition) -> int:
        """The offset after the last acknowledged record."""
        return max(self._get(partition).acknowledged_records, default=-1) + 1


def _show(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"
