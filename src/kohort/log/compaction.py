"""One compaction round: keeps only the last record of each key in the sealed segments.

There are two passes, as in Kafka. The first finds the last offset of each key in the part of the
log that changed since the last round. The second copies the records to keep. Offsets do not
change, so gaps remain. A tombstone is kept for delete.retention.ms after the first round that
reads it; its batch stores the time at which it may be removed (KIP-534). The last batch of a
producer is kept even if it is empty, because it stores the producer's sequence number.

`_skip_superseded` is a fast path: it skips a batch without decoding if all of its records have
been superseded.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from struct import Struct
from typing import Final, TypeAlias

from kohort.log.disk import Disk
from kohort.log.errors import CorruptFile
from kohort.log.file_names import CLEANED
from kohort.log.index import RELATIVE_OFFSET_MAX, AbortedTxn
from kohort.log.key_offset_map import KeyOffsetMap
from kohort.log.limits import Limits
from kohort.log.producer_state import LastRecord
from kohort.log.segment import Segment
from kohort.log.segment_swap import remove_segment
from kohort.log.topic_config import TopicSettings
from kohort.types import Millis, Offset, ProducerId, value
from kohort.wire.batch import (
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    Batch,
    BatchHeader,
    Record,
    decode,
    encode_retained,
    split,
    verify_crc,
)
from kohort.wire.batch_header import CODEC_MASK, CONTROL_FLAG, DELETE_HORIZON_FLAG, LENGTH_END
from kohort.wire.control_batch import MarkerType, find_marker
from kohort.wire.errors import MalformedMessage

_HEADER_FIELDS: Final = Struct(">qi9xhi16xq6xi")
"""Base offset, length, attributes, last offset delta, producer id and record count of a header."""

_STEP_BYTES: Final = 6 * 1024
"""Bytes read per step: a step takes some tenths of a millisecond."""

_FAST_PATH_OFFSETS_MAX: Final = 1 << 26
"""The largest dirty range, in offsets, for which the fast path is used: it needs one byte per
offset."""

_MARKS_PER_STEP: Final = 2_000
_MARK_BYTES: Final = 4
"""Setting one mark takes about as long as reading this many bytes."""


@value
class CompactionPlan:
    """The segments and offsets of one compaction round."""

    segments: tuple[Segment, ...]
    """From the first segment of the log to the last one that may be compacted."""
    dirty_from: Offset
    dirty_to: Offset


@value
class WorkDone:
    """One step is done, and the round is not finished."""

    bytes_read: int


@value
class SegmentReplacement:
    """A finished segment that must replace others."""

    new: Segment
    old: tuple[Segment, ...]


Step: TypeAlias = WorkDone | SegmentReplacement


@value
class CompactionStats:
    """Statistics of a finished round."""

    records_read: int
    records_kept: int
    bytes_read: int
    bytes_kept: int
    cleaned_to: Offset


class TransactionFilter:
    """Decides which transactional records and markers to keep. Its input is every batch, in order.

    A marker is kept as long as a record of its transaction is, and after that as long as a
    tombstone.
    """

    def __init__(self, aborted: Sequence[AbortedTxn]) -> None:
        self._upcoming = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        self._aborted: dict[ProducerId, AbortedTxn] = {}
        self._seen: set[ProducerId] = set()
        self._kept: list[AbortedTxn] = []

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether a data batch belongs to an aborted transaction."""
        self._advance(header)
        if not header.is_transactional:
            return False
        self._seen.add(header.producer_id)
        return header.producer_id in self._aborted

    def end(self, batch: Batch) -> bool:
        """For a control batch: whether its transaction has no records left."""
        header = batch.header
        self._advance(header)
        if not batch.records:
            return True
        try:
            marker = find_marker(batch.records[0])
        except MalformedMessage:
            marker = None
        if marker is None:
            return False
        was_seen = header.producer_id in self._seen
        self._seen.discard(header.producer_id)
        if marker.type is MarkerType.ABORT:
            aborted = self._aborted.pop(header.producer_id, None)
            if aborted is not None and was_seen:
                self._kept.append(aborted)
        return not was_seen

    def take_kept(self) -> list[AbortedTxn]:
        """The aborted transactions since the last call whose markers are kept."""
        kept, self._kept = self._kept, []
        return kept

    def _advance(self, header: BatchHeader) -> None:
        while self._upcoming and self._upcoming[-1].first_offset <= header.last_offset:
            aborted = self._upcoming.pop()
            self._aborted.setdefault(aborted.producer_id, aborted)


class Compaction:
    """One round. The log does not change until the caller applies a SegmentReplacement."""

    def __init__(
        self,
        *,
        disk: Disk,
        directory: str,
        plan: CompactionPlan,
        settings: TopicSettings,
        limits: Limits,
        now: Millis,
        last_records: Mapping[ProducerId, LastRecord],
        aborted: Sequence[AbortedTxn],
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._plan = plan
        self._settings = settings
        self._limits = limits
        self._now = now
        self._last_records = last_records
        self._aborted = aborted
        self._offsets = KeyOffsetMap(plan.dirty_from)
        self._is_last: bytearray | None = None
        """For each offset from `dirty_from` on: whether its record is the last one of its key."""
        self._unfinished: Offset | None = None
        self.cleaned_to = plan.dirty_from
        """The log is compacted up to this offset when the round is finished."""
        self.records_read = self.records_kept = 0
        self.bytes_read = self.bytes_kept = 0

    def run(self) -> Iterator[Step]:
        """Run the round in small steps. Raises CorruptFile if a batch is invalid."""
        yield from self._read_keys()
        yield from self._mark_last()
        transactions = TransactionFilter(self._aborted)
        for group in _group(self._sources(), self._settings, self._plan.dirty_to):
            self._unfinished = group[0].base_offset
            new = Segment.create(
                self._disk, self._directory, group[0].base_offset, self._now, stage=CLEANED
            )
            new.set_index_interval(self._settings.index_interval_bytes)
            for segment in group:
                for chunk in self._chunks(segment, 0):
                    self._copy(segment, chunk, new, transactions)
                    yield WorkDone(bytes_read=len(chunk))
            new.seal()
            self._unfinished = None
            yield SegmentReplacement(new=new, old=tuple(group))

    def abandon(self) -> None:
        """Remove the unfinished segment. The log does not change."""
        if self._unfinished is not None:
            remove_segment(self._disk, self._directory, self._unfinished, stage=CLEANED)
            self._unfinished = None

    def report(self) -> CompactionStats:
        return CompactionStats(
            records_read=self.records_read,
            records_kept=self.records_kept,
            bytes_read=self.bytes_read,
            bytes_kept=self.bytes_kept,
            cleaned_to=self.cleaned_to,
        )

    # First pass

    def _read_keys(self) -> Iterator[WorkDone]:
        plan = self._plan
        transactions = TransactionFilter(self._aborted)
        for segment in plan.segments:
            found = segment.find(plan.dirty_from) if self._is_dirty(segment) else None
            if found is None:
                continue
            for chunk in self._chunks(segment, found[0]):
                for position, header in _headers(segment, chunk):
                    if len(self._offsets) >= self._limits.compaction_keys_max:
                        return
                    with _as_corrupt_file(segment):
                        self._add_batch(chunk, position, header, transactions)
                    self.cleaned_to = header.next_offset
                yield WorkDone(bytes_read=len(chunk))
        self.cleaned_to = plan.dirty_to

    def _is_dirty(self, segment: Segment) -> bool:
        segments = self._plan.segments
        at = segments.index(segment) + 1
        end = segments[at].base_offset if at < len(segments) else self._plan.dirty_to
        return end > self._plan.dirty_from

    def _add_batch(
        self, chunk: bytes, position: int, header: BatchHeader, transactions: TransactionFilter
    ) -> None:
        if header.is_control:
            transactions.end(decode(chunk, position, check_crc=False))
            return
        if transactions.is_aborted(header):
            return
        self._offsets.add(chunk, position, header)

    def _mark_last(self) -> Iterator[WorkDone]:
        self._offsets.finish()
        first = self._plan.dirty_from
        if self.cleaned_to - first > _FAST_PATH_OFFSETS_MAX:
            return
        is_last = bytearray(self.cleaned_to - first)
        offsets = iter(self._offsets.values())
        while some := list(islice(offsets, _MARKS_PER_STEP)):
            for offset in some:
                is_last[offset - first] = 1
            yield WorkDone(bytes_read=_MARK_BYTES * len(some))
        self._is_last = is_last

    # Second pass

    def _sources(self) -> list[Segment]:
        return [each for each in self._plan.segments if each.base_offset < self.cleaned_to]

    def _copy(
        self, segment: Segment, chunk: bytes, new: Segment, transactions: TransactionFilter
    ) -> None:
        position, end = 0, len(chunk)
        while position < end:
            size = self._skip_superseded(chunk, position)
            if size:
                position += size
                continue
            with _as_corrupt_file(segment):
                batch = decode(chunk, position)
            header = batch.header
            self.records_read += header.record_count
            self.bytes_read += header.size_in_bytes
            kept = self._filter(batch, transactions)
            for aborted in transactions.take_kept():
                new.add_aborted(aborted)
            if kept is not None:
                is_whole = kept is batch
                data = chunk[position : position + header.size_in_bytes] if is_whole else None
                self._put(new, kept, data)
            position += header.size_in_bytes

    def _put(self, new: Segment, kept: Batch, data: bytes | None) -> None:
        """Append a batch to the new segment. `data` is the batch as read, if it is unchanged."""
        if data is None:
            data = encode_retained(kept.header, kept.records)
        # An empty batch has no record that a lookup by timestamp could find.
        timestamp = max((record.timestamp for record in kept.records), default=NO_TIMESTAMP)
        new.append(data, kept.header.last_offset, timestamp)
        self.records_kept += len(kept.records)
        self.bytes_kept += len(data)

    def _skip_superseded(self, chunk: bytes, position: int) -> int:
        """The size of a batch if all of its records are superseded by later ones.

        Otherwise 0, and the batch must be decoded: it may have a producer, lie before the dirty
        range, or be corrupt.
        """
        base, length, attributes, delta, producer_id, count = _HEADER_FIELDS.unpack_from(
            chunk, position
        )
        first = base - self._plan.dirty_from
        next_offset = base + delta + 1
        if (
            self._is_last is None
            or first < 0
            or next_offset > self.cleaned_to
            or next_offset == self._plan.dirty_to
            or producer_id != NO_PRODUCER_ID
            or attributes & CONTROL_FLAG
            or self._is_last.find(1, first, first + delta + 1) >= 0
        ):
            return 0
        size: int = LENGTH_END + length
        self.records_read += count
        self.bytes_read += size
        return size

    def _filter(self, batch: Batch, transactions: TransactionFilter) -> Batch | None:
        """The batch itself, a batch with some of its records or with none, or None to drop it."""
        header = batch.header
        is_ended = header.is_control and transactions.end(batch)
        if header.is_control:
            is_dropped = is_ended and self._is_past_horizon(header)
        else:
            is_dropped = transactions.is_aborted(header)
        kept: tuple[Record, ...] = ()
        if not is_dropped:
            kept = tuple([each for each in batch.records if self._keeps(each, header)])
        if not kept:
            return self._empty(header) if self._must_stay(header) else None
        has_tombstone = is_ended or any(record.value is None for record in kept)
        if has_tombstone and not header.has_delete_horizon:
            header = replace(
                header,
                attributes=header.attributes | DELETE_HORIZON_FLAG,
                base_timestamp=Millis(self._now + self._settings.delete_retention_ms),
            )
        elif len(kept) == len(batch.records):
            return batch
        return Batch(header=header, records=kept)

    def _keeps(self, record: Record, header: BatchHeader) -> bool:
        if header.is_control or record.offset >= self.cleaned_to:
            return True
        if record.key is None:
            return False
        if record.offset < self._offsets.find(record.key):
            return False
        return record.value is not None or not self._is_past_horizon(header)

    def _is_past_horizon(self, header: BatchHeader) -> bool:
        return header.has_delete_horizon and header.base_timestamp <= self._now

    def _must_stay(self, header: BatchHeader) -> bool:
        if header.next_offset == self._plan.dirty_to:
            # The last batch of the range stays, so that the next segment follows without a gap.
            return True
        last = self._last_records.get(header.producer_id)
        if last is None:
            return False
        if last.last_offset is None:
            return header.is_control and header.producer_epoch == last.epoch
        return header.last_offset == last.last_offset

    def _empty(self, header: BatchHeader) -> Batch:
        attributes = header.attributes & ~(CODEC_MASK | DELETE_HORIZON_FLAG)
        return Batch(header=replace(header, attributes=attributes), records=())

    def _chunks(self, segment: Segment, position: int) -> Iterator[bytes]:
        for at, chunk, _ in segment.chunks(position, _STEP_BYTES):
            yield chunk
            position = at + len(chunk)
        if position < segment.size:
            raise CorruptFile(segment.path(), f"compact at {position}", "the batch is truncated")
        segment.close()


def _group(
    segments: Sequence[Segment], settings: TopicSettings, end_offset: Offset
) -> Iterator[list[Segment]]:
    """Groups of adjacent segments that fit into one, so that segments do not get ever smaller."""
    ends = [segment.base_offset for segment in segments[1:]] + [end_offset]
    group: list[Segment] = []
    for segment, end in zip(segments, ends, strict=True):
        joined = [*group, segment]
        fits = (
            sum(each.size for each in joined) <= settings.segment_bytes
            and sum(8 * len(each.offsets) for each in joined) <= settings.segment_index_bytes
            and sum(12 * len(each.times) for each in joined) <= settings.segment_index_bytes
            and end - 1 - joined[0].base_offset <= RELATIVE_OFFSET_MAX
        )
        if group and not fits:
            yield group
            joined = [segment]
        group = joined
    if group:
        yield group


def _headers(segment: Segment, chunk: bytes) -> Iterator[tuple[int, BatchHeader]]:
    """The batch headers. Verifies the checksums, so that a corrupt batch never gets a valid one."""
    with _as_corrupt_file(segment):
        for position, header in split(chunk):
            verify_crc(chunk, position, header)
            yield position, header


@contextmanager
def _as_corrupt_file(segment: Segment) -> Iterator[None]:
    try:
        yield
    except MalformedMessage as error:
        raise CorruptFile(segment.path(), "compact", str(error)) from error
