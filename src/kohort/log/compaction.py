"""Compaction: of all records with one key in the sealed segments, the last one stays.

Two passes, as in Kafka: the first notes where each key is seen last in the part of the log that
changed since, the second copies what is still wanted. Offsets stay, and leave gaps. A tombstone
stays for delete.retention.ms after the first pass over it; the batch carries the moment at which
it may go (KIP-534). The last batch of a producer stays even when it is empty, since its sequence
number is remembered there.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from struct import Struct
from typing import Final, TypeAlias

from kohort.log.compaction_keys import LastOffsets
from kohort.log.compaction_transactions import TransactionFilter
from kohort.log.disk import Disk
from kohort.log.errors import Damaged
from kohort.log.index import RELATIVE_OFFSET_MAX, AbortedTransaction
from kohort.log.limits import Limits
from kohort.log.names import CLEANED
from kohort.log.producers import LastWritten
from kohort.log.segment import Segment
from kohort.log.settings import TopicSettings
from kohort.log.swap import remove_segment
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
from kohort.wire.errors import MalformedMessage

_GLANCE: Final = Struct(">qi9xhi16xq6xi")
"""Of a header: base offset, length, attributes, last offset delta, producer id, record count."""

_STEP_BYTES: Final = 6 * 1024
"""What is read between two chances to do something else: some tenths of a millisecond's worth."""

_MARKS_MAX: Final = 1 << 26
"""Offsets that changed since the last round, up to which a byte is spent on each; beyond, batches
are looked into one by one."""

_MARKS_IN_A_ROW: Final = 2_000
_MARK_BYTES: Final = 4
"""As much work as to read so many bytes."""


@value
class Plan:
    """What a round of compaction is about."""

    segments: tuple[Segment, ...]
    """From the first of the log to the last that may be touched."""
    dirty_from: Offset
    dirty_to: Offset


@value
class Work:
    """So many bytes were read; there is more to do."""

    bytes_read: int


@value
class Replacement:
    """A finished segment, to be put in the place of others."""

    new: Segment
    old: tuple[Segment, ...]


Step: TypeAlias = Work | Replacement


@value
class Compacted:
    """A finished round."""

    records_read: int
    records_kept: int
    bytes_read: int
    bytes_kept: int
    cleaned_to: Offset


class Compaction:
    """One round. Nothing of the log changes until its caller puts a replacement in place."""

    def __init__(
        self,
        *,
        disk: Disk,
        directory: str,
        plan: Plan,
        settings: TopicSettings,
        limits: Limits,
        now: Millis,
        last_written: Mapping[ProducerId, LastWritten],
        aborted: Sequence[AbortedTransaction],
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._plan = plan
        self._settings = settings
        self._limits = limits
        self._now = now
        self._last_written = last_written
        self._aborted = aborted
        self._offsets = LastOffsets(plan.dirty_from)
        self._is_last: bytearray | None = None
        """For each offset since `dirty_from`: whether its record is the last one of its key."""
        self._unfinished: Offset | None = None
        self.cleaned_to = plan.dirty_from
        """Up to here the log is compact once the round is done."""
        self.records_read = self.records_kept = 0
        self.bytes_read = self.bytes_kept = 0

    def run(self) -> Iterator[Step]:
        """Does a little with each step. Raises Damaged where the log cannot be read."""
        yield from self._note_keys()
        yield from self._mark_last()
        transactions = TransactionFilter(self._aborted)
        for group in _group(self._sources(), self._settings, self._plan.dirty_to):
            self._unfinished = group[0].base_offset
            new = Segment.create(
                self._disk, self._directory, group[0].base_offset, self._now, stage=CLEANED
            )
            new.index_every(self._settings.index_interval_bytes)
            for segment in group:
                for chunk in self._chunks(segment, 0):
                    self._copy(segment, chunk, new, transactions)
                    yield Work(bytes_read=len(chunk))
            new.seal()
            self._unfinished = None
            yield Replacement(new=new, old=tuple(group))

    def abandon(self) -> None:
        """Leaves the log as it is; removes what is not finished."""
        if self._unfinished is not None:
            remove_segment(self._disk, self._directory, self._unfinished, stage=CLEANED)
            self._unfinished = None

    def report(self) -> Compacted:
        return Compacted(
            records_read=self.records_read,
            records_kept=self.records_kept,
            bytes_read=self.bytes_read,
            bytes_kept=self.bytes_kept,
            cleaned_to=self.cleaned_to,
        )

    # The first pass

    def _note_keys(self) -> Iterator[Work]:
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
                    with _as_damage(segment):
                        self._note_batch(chunk, position, header, transactions)
                    self.cleaned_to = header.next_offset
                yield Work(bytes_read=len(chunk))
        self.cleaned_to = plan.dirty_to

    def _is_dirty(self, segment: Segment) -> bool:
        segments = self._plan.segments
        at = segments.index(segment) + 1
        end = segments[at].base_offset if at < len(segments) else self._plan.dirty_to
        return end > self._plan.dirty_from

    def _note_batch(
        self, chunk: bytes, position: int, header: BatchHeader, transactions: TransactionFilter
    ) -> None:
        if header.is_control:
            transactions.end(decode(chunk, position, check_crc=False))
            return
        if transactions.is_aborted(header):
            return
        self._offsets.note(chunk, position, header)

    def _mark_last(self) -> Iterator[Work]:
        self._offsets.finish()
        first = self._plan.dirty_from
        if self.cleaned_to - first > _MARKS_MAX:
            return
        is_last = bytearray(self.cleaned_to - first)
        offsets = iter(self._offsets.values())
        while some := list(islice(offsets, _MARKS_IN_A_ROW)):
            for offset in some:
                is_last[offset - first] = 1
            yield Work(bytes_read=_MARK_BYTES * len(some))
        self._is_last = is_last

    # The second pass

    def _sources(self) -> list[Segment]:
        return [each for each in self._plan.segments if each.base_offset < self.cleaned_to]

    def _copy(
        self, segment: Segment, chunk: bytes, new: Segment, transactions: TransactionFilter
    ) -> None:
        position, end = 0, len(chunk)
        while position < end:
            size = self._pass_over(chunk, position)
            if size:
                position += size
                continue
            with _as_damage(segment):
                batch = decode(chunk, position)
            header = batch.header
            self.records_read += header.record_count
            self.bytes_read += header.size_in_bytes
            kept = self._filter(batch, transactions)
            for aborted in transactions.take_kept():
                new.note_aborted(aborted)
            if kept is not None:
                is_whole = kept is batch
                data = chunk[position : position + header.size_in_bytes] if is_whole else None
                self._put(new, kept, data)
            position += header.size_in_bytes

    def _put(self, new: Segment, kept: Batch, data: bytes | None) -> None:
        """What stays of a batch; `data` if that is all of it."""
        if data is None:
            data = encode_retained(kept.header, kept.records)
        # An empty batch has no record that anybody could look for by its time.
        timestamp = max((record.timestamp for record in kept.records), default=NO_TIMESTAMP)
        new.append(data, kept.header.last_offset, timestamp)
        self.records_kept += len(kept.records)
        self.bytes_kept += len(data)

    def _pass_over(self, chunk: bytes, position: int) -> int:
        """The size of a batch if every record of it has a later one in its place; else 0, and it
        must be looked into: it may have a producer, be older than what was noted, or be damaged."""
        base, length, attributes, delta, producer_id, count = _GLANCE.unpack_from(chunk, position)
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
        """What stays of a batch: itself, a part of it, nothing but its header, or None."""
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
            # So that the offsets of the next segment follow on something.
            return True
        last = self._last_written.get(header.producer_id)
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
            raise Damaged(segment.path(), f"compact at {position}", "the batch is cut short")
        segment.close()


def _group(
    segments: Sequence[Segment], settings: TopicSettings, end_offset: Offset
) -> Iterator[list[Segment]]:
    """Neighbours that fit into one segment together, so that segments do not shrink forever."""
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
    """Of batches whose checksums are right: damage is never sealed under a new one."""
    with _as_damage(segment):
        for position, header in split(chunk):
            verify_crc(chunk, position, header)
            yield position, header


@contextmanager
def _as_damage(segment: Segment) -> Iterator[None]:
    try:
        yield
    except MalformedMessage as error:
        raise Damaged(segment.path(), "compact", str(error)) from error
