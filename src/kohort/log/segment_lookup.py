"""Lookups and reads in a segment that may have damaged files.

An index entry is checked against the batch that it points at, whenever a lookup uses it. A wrong
index is rebuilt from the batches. A damaged batch is set aside: the batches around it are read, and
a lookup of one of its offsets is an error. Both are reported once.

What a process has written itself is not checked again. Of batches that it found at its start, it
checks the headers when they are read first. Checksums are verified for groups only; for records
consumers do it, as in Kafka.
"""

import contextlib
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Final

from kohort.log.damage import (
    EPOCH_AND_MAGIC,
    NEARBY_BYTES,
    BadBatch,
    BatchInfo,
    DamagedRange,
    DamageFinder,
    is_chain,
    measure_valid,
    unpack_header,
)
from kohort.log.errors import BadIndex, CorruptFile, StorageError
from kohort.log.file_names import OFFSET_INDEX, TIME_INDEX
from kohort.log.repair import Repair, RepairKind
from kohort.types import Offset
from kohort.wire.batch import NO_TIMESTAMP
from kohort.wire.batch_header import HEADER_BYTES, LENGTH_END

if TYPE_CHECKING:
    from kohort.log.segment import Chunk, Segment

_WRONG_CRC: Final = "the checksum of the batch is wrong"


def find(segment: "Segment", offset: int) -> BatchInfo | None:
    """The batch that contains an offset, or the next one. Raises CorruptFile for an offset in a
    damaged range."""
    while True:
        try:
            found = _find(segment, offset)
        except BadBatch as bad:
            set_aside(segment, bad)
        except BadIndex as bad:
            rebuild_indexes(segment, bad)
        else:
            for each in segment.damaged:
                if each.has(offset):
                    action = f"read at {each.position}"
                    raise CorruptFile(segment.path(), action, each.describe())
            return found


def _find(segment: "Segment", offset: int) -> BatchInfo | None:
    usual = _find_nearby(segment, offset)
    if usual is not None:
        return usual
    previous = None
    for info in _walk_from_entry(segment, offset):
        if info[3] >= offset:
            if info[2] > offset:
                _check_gap(segment, previous, info)
            return info
        previous = info
    if previous is not None and segment.limit is not None and offset < segment.limit:
        _check_gap(segment, previous, None)
    return None


def _find_nearby(segment: "Segment", offset: int) -> BatchInfo | None:
    """The batch that contains an offset, if one read after the index entry shows it and nothing is
    unusual. Most lookups end here, so this is written for speed; `_find` does it step by step."""
    entry = segment.offsets.find_at_most(offset - segment.base_offset)
    position = 0 if entry is None else entry[1]
    if segment.damaged or not 0 <= position < segment.size:
        return None
    data = segment.file.read(position, min(NEARBY_BYTES, segment.size - position))
    at, end = 0, len(data) - HEADER_BYTES
    lowest = segment.base_offset
    while at <= end:
        base_offset, length, tag, delta, timestamp, count = unpack_header(data, at)
        last_offset = base_offset + delta
        size = LENGTH_END + length
        if base_offset < lowest or tag != EPOCH_AND_MAGIC or delta < 0 or size < HEADER_BYTES:
            return None
        if not at and entry is not None and last_offset != segment.base_offset + entry[0]:
            return None
        if last_offset >= offset:
            if base_offset > offset or size > segment.size - position - at:
                return None
            max_timestamp = timestamp if count else NO_TIMESTAMP
            return position + at, size, base_offset, last_offset, max_timestamp
        lowest = last_offset + 1
        at += size
    return None


def walk_from(segment: "Segment", relative: int) -> Iterator[BatchInfo]:
    """The batches from the last index entry before a relative offset on."""
    try:
        return _walk_from_entry(segment, segment.base_offset + relative)
    except BadIndex as bad:
        rebuild_indexes(segment, bad)
        return _walk_from_entry(segment, segment.base_offset + relative)


def _walk_from_entry(segment: "Segment", offset: int) -> Iterator[BatchInfo]:
    """Raises BadIndex if no batch at the position of the entry has its last offset. If one has, no
    batch with a later offset can be before that position."""
    entry = segment.offsets.find_at_most(offset - segment.base_offset)
    if entry is None:
        return segment.walk(0, segment.base_offset)
    relative, position = entry
    batches = segment.walk(position)
    first = None
    if 0 <= position < segment.size:
        with contextlib.suppress(BadBatch):
            first = next(batches, None)
    last_offset = segment.base_offset + relative
    if first is None or first[0] != position or first[3] != last_offset:
        found = "no batch" if first is None else f"the batch of offset {first[3]}"
        reason = f"the entry of offset {last_offset} points at {found}"
        raise BadIndex(segment.path(OFFSET_INDEX), reason, last_offset)
    return chain((first,), batches)


def _check_gap(segment: "Segment", previous: BatchInfo | None, found: BatchInfo | None) -> None:
    """No batch contains an offset between these two. That is usual after compaction, but the first
    one may have a wrong length or last offset, or the second one a wrong base offset."""
    if previous is not None:
        verify(segment, previous)
    if found is None or found[0] >= segment.stored_size:
        return
    follows = next(segment.walk(found[0] + found[1]), None)
    limit = segment.limit if follows is None else follows[2]
    if limit is not None and found[3] >= limit:
        expected = Offset(previous[3] + 1) if previous is not None else segment.base_offset
        reason = f"the base offset {found[2]} is too high"
        raise BadBatch(segment.path(), found[0], reason, expected=expected)


def verify(segment: "Segment", info: BatchInfo) -> None:
    """Raises BadBatch if the batch was stored by an earlier process and has a wrong checksum."""
    position, size, base_offset, _, _ = info
    if position < segment.stored_size:
        data = segment.file.read(position, size)
        if not measure_valid(data, base_offset, segment.limit)[0]:
            raise BadBatch(segment.path(), position, _WRONG_CRC, expected=base_offset)


def read(segment: "Segment", first: BatchInfo, size: int) -> bytes:
    """Bytes from a batch that was found on, up to the next damaged one. The last batch may be
    truncated. Raises BadBatch if a header is wrong."""
    position = first[0]
    data = segment.file.read(position, min(size, segment.readable_end(position) - position))
    if position < segment.stored_size:
        checked_from, checked_to = segment.checked
        stop = position + len(data)
        if not checked_from <= position or stop > checked_to:
            if not is_chain(data, first[2], segment.limit if stop == segment.size else None):
                _check_headers(segment, first, stop)
            is_next = checked_from <= position <= checked_to
            segment.checked = (checked_from if is_next else position, stop)
    return data


def _check_headers(segment: "Segment", first: BatchInfo, stop: int) -> None:
    """Raises BadBatch at the first wrong header. Includes the batch after `stop`, because it shows
    whether the offset of the one before is right. Gaps are usual after compaction."""
    for info in segment.walk(first[0], first[2]):
        if info[0] >= stop:
            return


def read_valid_chunk(segment: "Segment", offset: Offset, size: int) -> "Chunk | None":
    """Valid batches of about `size` bytes, from the first one on that ends at `offset` or later.
    Verifies checksums, and skips what is damaged."""
    while True:
        for each in segment.damaged:
            if each.has(offset):
                if each.next_offset is None:
                    return None
                offset = each.next_offset
        try:
            found = find(segment, offset)
        except CorruptFile:
            continue
        if found is None:
            return None
        position, whole, base_offset = found[0], found[1], found[2]
        readable = segment.readable_end(position) - position
        data = segment.file.read(position, min(max(size, whole), readable))
        valid, next_offset = measure_valid(data, base_offset, segment.limit)
        if valid:
            return position, data[:valid], next_offset
        set_aside(segment, BadBatch(segment.path(), position, _WRONG_CRC, expected=base_offset))


def set_aside(segment: "Segment", bad: BadBatch) -> DamagedRange:
    """Find out which bytes are damaged, remember and report them."""
    found = DamageFinder(segment.file, segment.size, segment.limit).find(bad)
    if any((each.position, each.end) == (found.position, found.end) for each in segment.damaged):
        return found
    segment.add_damage(found)
    segment.on_repair(
        Repair(
            path=segment.path(),
            position=found.position,
            bytes_truncated=found.end - found.position,
            reason=found.describe(),
            kind=RepairKind.BATCH_DAMAGED,
        )
    )
    return found


def check_time_index(segment: "Segment") -> None:
    """Rebuild the indexes if the last entry of the time index does not match its batch. Retention
    and lookups by time depend on it."""
    try:
        check_time_entry(segment, segment.times.find_last())
    except BadIndex as bad:
        rebuild_indexes(segment, bad)


def check_time_entry(segment: "Segment", entry: tuple[int, int] | None) -> None:
    """Raises BadIndex if the batch of an entry has another offset or timestamp."""
    if entry is None:
        if segment.size and segment.first_timestamp > NO_TIMESTAMP:
            raise BadIndex(segment.path(TIME_INDEX), "it has no entry")
        return
    timestamp, relative = entry
    last_offset = segment.base_offset + relative
    found = None
    if relative >= 0:
        with contextlib.suppress(CorruptFile):
            found = find(segment, last_offset)
    if found is None or found[3] != last_offset or found[4] != timestamp:
        reason = f"the entry of time {timestamp} does not match the batch of offset {last_offset}"
        raise BadIndex(segment.path(TIME_INDEX), reason, last_offset)


def rebuild_indexes(segment: "Segment", bad: BadIndex) -> None:
    """Rebuild both indexes from the batches, because one of them is wrong."""
    damaged = segment.damaged
    is_active = segment.offsets.is_loaded
    segment.clear_indexes()
    position, expected = 0, segment.base_offset
    while True:
        try:
            for info in segment.walk(position, expected):
                verify(segment, info)
                at, size, _, last_offset, timestamp = info
                segment.index_batch(at, last_offset, timestamp)
                position, expected = at + size, Offset(last_offset + 1)
            break
        except BadBatch as error:
            found = set_aside(segment, error)
            if found.position < position:
                # An entry of the damaged batch may already be in the index.
                segment.clear_indexes()
                position, expected = 0, segment.base_offset
    if not is_active:
        segment.index_latest_timestamp()
        # On a full disk the new indexes stay in memory.
        with contextlib.suppress(StorageError):
            segment.flush_indexes()
            segment.unload_indexes()
    if segment.damaged == damaged and not any(each.has(bad.offset) for each in damaged):
        # Otherwise the index was right, and the batch is damaged.
        reason = f"rebuilt, because {bad.reason}"
        segment.on_repair(Repair(path=bad.path, reason=reason))
