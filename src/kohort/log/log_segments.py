"""The segments of one partition in offset order: lookups by offset, timestamp and transaction."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

from kohort.log import segment_lookup
from kohort.log.damage import BadBatch, BatchInfo
from kohort.log.errors import BadIndex, CorruptFile
from kohort.log.index import AbortedTxn
from kohort.log.repair import OnRepair, ignore_repair
from kohort.log.segment import Chunk, Segment
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

    def __init__(self, segments: Sequence[Segment], on_repair: OnRepair = ignore_repair) -> None:
        assert segments
        self._on_repair = on_repair
        self._segments = list(segments)
        self._adopt(self._segments)

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
        self.active.limit = segment.base_offset
        self._segments.append(segment)
        self._adopt([segment])

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
        new.limit = old[-1].limit
        new.on_repair = self._on_repair

    def _adopt(self, segments: list[Segment]) -> None:
        for segment in segments:
            segment.on_repair = self._on_repair
        set_limits(segments)

    def close(self) -> None:
        for segment in self._segments:
            segment.close()

    # Lookups

    def from_offset(self, offset: int) -> Iterator[Segment]:
        """The segment whose range includes the offset, and all later ones."""
        at = bisect_right(self._segments, offset, key=lambda segment: segment.base_offset)
        yield from self._segments[max(0, at - 1) :]

    def read(
        self, offset: Offset, max_bytes: int, *, at_least_one: bool, before: Offset | None
    ) -> bytes:
        """See `PartitionLog.read`; the offset is in the log."""
        for segment in self.from_offset(offset):
            found = segment.find(offset)
            if found is None:
                continue
            position, size = found[0], found[1]
            stop = segment.readable_end(position)
            if before is not None and (first_beyond := segment.find(before)) is not None:
                stop = min(stop, first_beyond[0])
            wanted = min(max_bytes, stop - position)
            if wanted < size:
                wanted = size if at_least_one and position < stop else 0
            try:
                return segment_lookup.read(segment, found, wanted) if wanted else b""
            except BadBatch as bad:
                segment_lookup.set_aside(segment, bad)
                return self.read(offset, max_bytes, at_least_one=at_least_one, before=before)
        return b""

    def find_valid_chunk(self, offset: Offset, size: int) -> Chunk | None:
        """Valid batches, starting with the one that contains the offset; None at the log end.
        Damaged batches are skipped."""
        for segment in self.from_offset(offset):
            chunk = segment_lookup.read_valid_chunk(segment, offset, size)
            if chunk is not None:
                return chunk
        return None

    def find_by_timestamp(
        self, timestamp: Millis, start_offset: Offset
    ) -> TimestampAndOffset | None:
        """The first record from `start_offset` on whose timestamp is at least `timestamp`.

        Usually decodes one batch, rarely two. Raises CorruptFile if the record may be in a damaged
        batch.
        """
        for segment in self.from_offset(start_offset):
            if segment.latest[0] < timestamp and not segment.damaged:
                continue
            try:
                found = _find_by_timestamp(segment, timestamp, start_offset)
            except BadBatch as bad:
                damaged = segment_lookup.set_aside(segment, bad)
                raise CorruptFile(segment.path(), bad.action, damaged.describe()) from bad
            except BadIndex as bad:
                segment_lookup.rebuild_indexes(segment, bad)
                found = _find_by_timestamp(segment, timestamp, start_offset)
            if found is not None:
                return found
        return None

    def find_max_timestamp(self, start_offset: Offset) -> TimestampAndOffset | None:
        """The first record with the maximum timestamp."""
        candidates = [*self.from_offset(start_offset)]
        segment = max(candidates, key=lambda candidate: candidate.latest[0])
        timestamp, offset = segment.latest
        if timestamp == NO_TIMESTAMP or offset < start_offset:
            return None
        info = segment.find(offset)
        if info is None:
            raise CorruptFile(segment.path(), "look up", f"there is no batch of offset {offset}")
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


def set_limits(segments: Sequence[Segment]) -> None:
    """Tell each segment where the next one starts."""
    for segment, following in pairwise(segments):
        segment.limit = following.base_offset


def _find_by_timestamp(
    segment: Segment, timestamp: Millis, start_offset: Offset
) -> TimestampAndOffset | None:
    # Batches with exactly this timestamp may be before the one in the index.
    entry = segment.times.find_at_most(timestamp - 1)
    first = start_offset - segment.base_offset
    if entry is not None:
        segment_lookup.check_time_entry(segment, entry)
        first = max(first, entry[1])
    next_offset = Offset(segment.base_offset + max(0, first))
    for info in segment_lookup.walk_from(segment, first):
        _, _, base_offset, last_offset, max_timestamp = info
        _check_undamaged(segment, next_offset, base_offset)
        segment_lookup.verify(segment, info)
        next_offset = Offset(last_offset + 1)
        if max_timestamp < timestamp or last_offset < start_offset:
            continue
        batch = _decode(segment, info)
        for record in batch.records:
            if record.timestamp >= timestamp and record.offset >= start_offset:
                return _timestamp_and_offset(record, batch.header)
    _check_undamaged(segment, next_offset, None)
    return None


def _check_undamaged(segment: Segment, start: Offset, end: Offset | None) -> None:
    """The record that a lookup by time looks for may be in a damaged batch."""
    for each in segment.damaged:
        is_before = each.next_offset is not None and each.next_offset <= start
        if not is_before and (end is None or each.first_offset < end):
            raise CorruptFile(segment.path(), f"read at {each.position}", each.describe())


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
