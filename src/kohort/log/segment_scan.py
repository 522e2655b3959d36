"""Scans one segment during recovery: which batches are valid, and where the log must be cut."""

from itertools import pairwise

from kohort.log.damage import BadBatch, BatchInfo, DamageFinder
from kohort.log.index import RELATIVE_OFFSET_MAX, Index
from kohort.log.limits import LEADER_EPOCH
from kohort.log.segment import Segment
from kohort.log.segment_lookup import set_aside, verify
from kohort.types import Millis, Offset
from kohort.wire.batch import NO_TIMESTAMP, BatchHeader, peek, verify_crc
from kohort.wire.errors import MalformedMessage


class SegmentScan:
    """A scan of one segment up to its end, or to its first invalid batch after the recovery point.

    A batch gets its index entry when the next one is valid: its length may be wrong.
    """

    def __init__(self, segment: Segment, recovery_point: Offset | None, *, is_clean: bool) -> None:
        self._segment = segment
        self._recovery_point = recovery_point
        self._synced_to = recovery_point or Offset(0)
        self._is_clean = is_clean
        self.next_offset = segment.base_offset
        self.position = 0
        self.reason: str | None = None
        """Why the segment must be truncated at `position`."""
        self._last: BatchInfo | None = None
        self._last_expected = segment.base_offset

    def run(self, now: Millis) -> None:
        segment = self._segment
        _truncate_indexes(segment, self._recovery_point)
        segment.open_for_append(now)
        last = segment.offsets.find_last()
        self.position = last[1] if last else 0
        while self.position < segment.size and self.reason is None:
            bad = self._find_bad()
            if bad is None:
                break
            if self._is_damage(bad):
                self._set_aside(bad)
            else:
                self.reason = f"{bad.reason}; cut from offset {self.next_offset} on"
        self._check_last()
        self._index_last()

    def _check_last(self) -> None:
        """If the log seems to end too early, the last offset of its last batch may be damaged."""
        is_complete = self._segment.limit is not None or self.next_offset >= self._synced_to
        if self._last is None or is_complete:
            return
        try:
            verify(self._segment, self._last)
        except BadBatch as bad:
            self.next_offset = bad.expected
            self._set_aside(bad)

    def _is_damage(self, bad: BadBatch) -> bool:
        """Whether synced batches are damaged; otherwise it is the tail of unsynced writes. After a
        clean shutdown all batches are synced, even if the recovery point is damaged."""
        segment = self._segment
        found = DamageFinder(segment.file, segment.size, segment.limit).find(bad)
        is_followed = found.next_offset is not None
        return found.first_offset < self._synced_to or (self._is_clean and is_followed)

    def _find_bad(self) -> BadBatch | None:
        """Read valid batches, up to the first one that is not."""
        segment = self._segment
        for _, chunk, _ in segment.chunks(self.position):
            at = 0
            while at < len(chunk):
                header, reason = self._check(chunk, at)
                if header is None or reason is not None:
                    return self._bad_batch(reason or "", header)
                self._index_last()
                timestamp = header.max_timestamp if header.record_count else NO_TIMESTAMP
                size = header.size_in_bytes
                self._last = self.position, size, header.base_offset, header.last_offset, timestamp
                # The offset before the first batch after an index entry is unknown.
                is_first = self.position > 0 and self.next_offset == segment.base_offset
                self._last_expected = header.base_offset if is_first else self.next_offset
                self.next_offset = header.next_offset
                at += size
                self.position += size
        return self._bad_batch("truncated batch") if self.position < segment.size else None

    def _bad_batch(self, reason: str, header: BatchHeader | None = None) -> BadBatch:
        return BadBatch(
            self._segment.path(),
            self.position,
            reason,
            expected=self.next_offset,
            base_offset=None if header is None else header.base_offset,
            previous=self._last,
            previous_expected=self._last_expected,
        )

    def _set_aside(self, bad: BadBatch) -> None:
        found = set_aside(self._segment, bad)
        if self._last is not None and found.position == self._last[0]:
            self._last = None
        self._index_last()
        self.position = found.end
        self.next_offset = found.next_offset or self._segment.limit or self._synced_to

    def _index_last(self) -> None:
        if self._last is not None:
            position, _, _, last_offset, timestamp = self._last
            self._segment.index_batch(position, last_offset, timestamp)
            self._last = None

    def _check(self, chunk: bytes, at: int) -> tuple[BatchHeader | None, str | None]:
        """The header, if it can be read, and what is wrong."""
        try:
            header = peek(chunk, at)
            is_new = self._recovery_point is None or header.next_offset > self._recovery_point
            if is_new:
                verify_crc(chunk, at, header)
        except MalformedMessage as error:
            return None, f"{error.field}: {error.reason}"
        base, expected = header.base_offset, self.next_offset
        # The checksum does not cover the offset and the leader epoch. Batches after the recovery
        # point and those of the active segment were never compacted, so they have no gaps.
        if self._is_clean:
            is_exact = self._segment.limit is None and expected > self._segment.base_offset
        else:
            is_exact = is_new and self._recovery_point is not None
        if base < expected or (is_exact and base != expected):
            return header, f"expected offset {expected}, found {base}"
        epoch = header.partition_leader_epoch
        if (is_exact or not is_new) and epoch != LEADER_EPOCH:
            return None, f"expected leader epoch {LEADER_EPOCH}, found {epoch}"
        if header.last_offset - self._segment.base_offset > RELATIVE_OFFSET_MAX:
            return header, f"offset {header.last_offset} is too far from the segment's base offset"
        limit = self._segment.limit
        if limit is not None and header.next_offset > limit:
            return header, f"offset {header.last_offset} is in the next segment"
        return header, None


def _truncate_indexes(segment: Segment, recovery_point: Offset | None) -> None:
    """Keep only the valid index entries of synced batches.

    The indexes were not synced, so one may lack entries that the other has. Batches after the last
    time index entry are scanned again.
    """
    below = (recovery_point or 0) - segment.base_offset
    times = list(segment.times.entries()) if _is_ascending(segment.times) else []
    times = [entry for entry in times if entry[1] < below]
    offsets = list(segment.offsets.entries()) if _is_ascending(segment.offsets) else []
    offsets = [entry for entry in offsets if times and entry[0] <= times[-1][1]]
    if offsets and not (
        _points_at_batch(segment, *offsets[-1]) and _has_time(segment, offsets[-1][1], times[-1])
    ):
        offsets = []
    segment.offsets.truncate_to(len(offsets))
    segment.times.truncate_to(len(times) if offsets else 0)


def _is_ascending(index: Index) -> bool:
    entries = list(index.entries())
    return all(a[0] < b[0] and a[1] <= b[1] for a, b in pairwise(entries)) and all(
        min(entry) >= 0 for entry in entries
    )


def _points_at_batch(segment: Segment, relative: int, position: int) -> bool:
    try:
        # The file may end exactly where the entry points.
        found = next(segment.walk(position), None)
    except BadBatch:
        return False
    return found is not None and found[3] == segment.base_offset + relative


def _has_time(segment: Segment, position: int, entry: tuple[int, int]) -> bool:
    """Whether the batch of a time index entry, at a position or later, has its timestamp."""
    try:
        for _, _, _, last_offset, timestamp in segment.walk(position):
            if last_offset >= segment.base_offset + entry[1]:
                return (timestamp, last_offset) == (entry[0], segment.base_offset + entry[1])
    except BadBatch:
        pass
    return False
