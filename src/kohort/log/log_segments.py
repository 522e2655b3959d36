"""The segments of one partition in offset order: lookups by offset, timestamp and transaction."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from kohort.log.errors import CorruptFile
from kohort.log.index import AbortedTxn
from kohort.log.segment import BatchInfo, Chunk, Segment
from kohort.types import Millis, Offset, value
from kohort.wire.batch import NO_TIMESTAMP, Batch, BatchHeader, Record, TimestampType, decode
from kohort.wire.errors import MalformedMessage


@value
class TimestampAndOffset:
    """The result of a lookup by timestamp."""

    offset: Offset
    timestamp: Millis
    leader_epoch: int


class LogSegments:
    """At least one segment. The last one is the active segment."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        assert segments
        self._segments = list(segments)

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(tuple(self._segments))

    @property
    def first(self) -> Segment:
        return self._segments[0]

    @property
    def active(self) -> Segment:
        return self._segments[-1]

    @property
    def sealed(self) -> list[Segment]:
        return self._segments[:-1]

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self._segments)

    # Changes

    def add(self, segment: Segment) -> None:
        assert segment.base_offset > self.active.base_offset
        self._segments.append(segment)

    def remove_first(self) -> Segment:
        assert len(self._segments) > 1
        segment = self._segments.pop(0)
        segment.close()
        return segment

    def replace(self, old: Sequence[Segment], new: Segment) -> None:
        at = self._segments.index(old[0])
        assert self._segments[at : at + len(old)] == list(old)
        for segment in old:
            segment.close()
        self._segments[at : at + len(old)] = [new]

    def close(self) -> None:
        for segment in self._segments:
            segment.close()

    # Lookups

    def from_offset(self, offset: int) -> Iterator[Segment]:
        """The segment whose range includes the offset, and all later ones."""
        at = bisect_right(self._segments, offset, key=lambda segment: segment.base_offset)
        yield from self._segments[max(0, at - 1) :]

    def find_chunk(self, offset: Offset, size: int) -> Chunk | None:
        """Whole batches, starting with the one that contains the offset; None at the log end."""
        for segment in self.from_offset(offset):
            found = segment.find(offset)
            if found is not None:
                return next(segment.chunks(found[0], size))
        return None

    def find_by_timestamp(
        self, timestamp: Millis, start_offset: Offset
    ) -> TimestampAndOffset | None:
        """The first record from `start_offset` on whose timestamp is at least `timestamp`.

        Usually decodes one batch, rarely two.
        """
        for segment in self.from_offset(start_offset):
            if segment.latest[0] < timestamp:
                continue
            entry = segment.times.find_at_most(timestamp)
            first = max(start_offset, segment.base_offset + (entry[1] if entry else 0))
            start = segment.offsets.find_at_most(first - segment.base_offset)
            for info in segment.walk(start[1] if start else 0):
                _, _, _, last_offset, max_timestamp = info
                if max_timestamp < timestamp or last_offset < start_offset:
                    continue
                batch = _decode(segment, info)
                for record in batch.records:
                    if record.timestamp >= timestamp and record.offset >= start_offset:
                        return _timestamp_and_offset(record, batch.header)
        return None

    def find_max_timestamp(self, start_offset: Offset) -> TimestampAndOffset | None:
        """The first record with the maximum timestamp."""
        candidates = [*self.from_offset(start_offset)]
        segment = max(candidates, key=lambda candidate: candidate.latest[0])
        timestamp, offset = segment.latest
        if timestamp == NO_TIMESTAMP or offset < start_offset:
            return None
        info = segment.find(offset)
        assert info is not None, f"{segment.path()} has no batch for the last time index entry"
        batch = _decode(segment, info)
        records = batch.records
        if batch.header.timestamp_type is TimestampType.LOG_APPEND_TIME:
            # All records have the same timestamp, and Kafka returns the last one.
            records = records[::-1]
        for record in records:
            if record.timestamp == timestamp:
                return _timestamp_and_offset(record, batch.header)
        return None

    def find_aborted(self, start: Offset, end: Offset) -> tuple[AbortedTxn, ...]:
        """The aborted transactions that overlap the offsets from `start` to before `end`."""
        found: list[AbortedTxn] = []
        for segment in self.from_offset(start):
            for each in segment.aborted:
                if each.last_offset >= start and each.first_offset < end:
                    found.append(each)
                if each.last_stable_offset >= end:
                    # Later entries are of transactions that started at or after this offset.
                    return tuple(found)
        return tuple(found)


def _decode(segment: Segment, info: BatchInfo) -> Batch:
    position, size = info[0], info[1]
    try:
        return decode(segment.file.read(position, size))
    except MalformedMessage as error:
        raise CorruptFile(segment.path(), f"decode at {position}", str(error)) from error


def _timestamp_and_offset(record: Record, header: BatchHeader) -> TimestampAndOffset:
    return TimestampAndOffset(
        offset=record.offset,
        timestamp=record.timestamp,
        leader_epoch=header.partition_leader_epoch,
    )
