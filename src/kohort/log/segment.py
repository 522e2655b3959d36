"""One segment: a file of batches and its indexes.

The active segment is the last one of a log: batches are appended to it and its indexes are in
memory. All other segments are sealed: they are only read, replaced as a whole, or removed. No
record is decoded here.
"""

import contextlib
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from kohort.log import segment_lookup
from kohort.log.damage import (
    EPOCH_AND_MAGIC,
    NEARBY_BYTES,
    BadBatch,
    BatchInfo,
    DamagedRange,
    unpack_header,
)
from kohort.log.disk import Disk, File, read_file
from kohort.log.errors import StorageError
from kohort.log.file_names import LOG, OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX, segment_file
from kohort.log.index import (
    OFFSET_ENTRY,
    RELATIVE_OFFSET_MAX,
    TIME_ENTRY,
    AbortedTxn,
    Index,
    decode_aborted,
    encode_aborted,
)
from kohort.log.limits import READ_BYTES
from kohort.log.repair import OnRepair, ignore_repair
from kohort.log.topic_config import TopicSettings
from kohort.types import Millis, Offset
from kohort.wire.batch import NO_TIMESTAMP
from kohort.wire.batch_header import HEADER_BYTES, LENGTH_END
from kohort.wire.varint import Buffer

_LENGTH: Final = struct.Struct(">i")

Chunk: TypeAlias = tuple[int, bytes, Offset]
"""A position, the whole batches at this position, and the offset after the last one."""


class Segment:
    __slots__ = (
        "_aborted",
        "_created_ms",
        "_directory",
        "_disk",
        "_entry_position",
        "_file",
        "_first_timestamp",
        "_has_aborted_file",
        "_has_partial_write",
        "_interval",
        "_is_aborted_changed",
        "_latest",
        "_stage",
        "base_offset",
        "checked",
        "damaged",
        "limit",
        "offsets",
        "on_repair",
        "size",
        "stored_size",
        "times",
    )

    def __init__(
        self,
        disk: Disk,
        directory: str,
        base_offset: Offset,
        sizes: Mapping[str, int],
        *,
        stage: str = "",
    ) -> None:
        """A sealed segment. `sizes` has the size of each of its files by name."""
        self._disk = disk
        self._directory = directory
        self._stage = stage
        self.base_offset = base_offset
        self.size = sizes[segment_file(base_offset, LOG, stage)]
        self.offsets = self._index(OFFSET_INDEX, OFFSET_ENTRY, sizes)
        self.times = self._index(TIME_INDEX, TIME_ENTRY, sizes)
        self._has_aborted_file = segment_file(base_offset, TRANSACTION_INDEX, stage) in sizes
        self._aborted: list[AbortedTxn] | None = None
        self._is_aborted_changed = False
        self._file: File | None = None
        self._latest: tuple[Millis, Offset] | None = None
        self._first_timestamp: Millis | None = None
        self._created_ms = NO_TIMESTAMP
        self._entry_position = 0
        self._interval = 0
        self._has_partial_write = False
        self.limit: Offset | None = None
        """The base offset of the next segment; None for the last one."""
        self.damaged: tuple[DamagedRange, ...] = ()
        """What is known to be damaged, in the order of the file. It is found by reading."""
        self.on_repair: OnRepair = ignore_repair
        self.stored_size = self.size
        """Before this position are batches of an earlier process, see `segment_lookup.read`."""
        self.checked = (0, 0)

    @classmethod
    def create(
        cls, disk: Disk, directory: str, base_offset: Offset, now: Millis, *, stage: str = ""
    ) -> "Segment":
        """An empty segment, open for append. Existing files of the same name are truncated."""
        sizes = {segment_file(base_offset, LOG, stage): 0}
        segment = cls(disk, directory, base_offset, sizes, stage=stage)
        segment.create_files(now)
        return segment

    @classmethod
    def unwritten(cls, disk: Disk, directory: str) -> "Segment":
        """The first segment of a log, without files. `create_files` must come before an append."""
        return cls(disk, directory, Offset(0), {segment_file(0, LOG): 0})

    def create_files(self, now: Millis) -> None:
        """The log file comes last, so that a failure before it changes nothing."""
        for kind in (TIME_INDEX, OFFSET_INDEX, LOG):
            self._disk.create(self.path(kind)).close()
        self.open_for_append(now)

    def path(self, kind: str = LOG) -> str:
        return f"{self._directory}/{segment_file(self.base_offset, kind, self._stage)}"

    # Append

    def open_for_append(self, now: Millis) -> None:
        """Load the indexes for append. Batches after the last index entry are not read."""
        self.offsets.load()
        self.times.load()
        last = self.offsets.find_last()
        self._entry_position = last[1] if last else 0
        self._created_ms = now
        self._latest = None

    def append(self, data: Buffer, last_offset: Offset, max_timestamp: Millis) -> None:
        """Append one batch. After a StorageError none of it counts: a partial write is truncated
        now, or before the next append."""
        self._write(data)
        self.index_batch(self.size, last_offset, max_timestamp)
        self.size += len(data)

    def append_all(self, batches: Sequence[tuple[bytes, Offset, Millis]]) -> None:
        """Append batches, each with its last offset and max timestamp, with one write: all or
        none."""
        self._write(b"".join([data for data, _, _ in batches]))
        for data, last_offset, max_timestamp in batches:
            self.index_batch(self.size, last_offset, max_timestamp)
            self.size += len(data)

    def _write(self, data: Buffer) -> None:
        file = self.file
        if self._has_partial_write:
            self._truncate_partial_write()
        try:
            file.append(data)
        except StorageError:
            self._has_partial_write = True
            with contextlib.suppress(StorageError):
                self._truncate_partial_write()
            raise

    def index_batch(self, position: int, last_offset: Offset, max_timestamp: Millis) -> None:
        """Add index entries for the batch at a position if they are due."""
        latest = self.latest
        if max_timestamp > latest[0]:
            self._latest = latest = (max_timestamp, last_offset)
        if position - self._entry_position > self._interval:
            self.offsets.append(last_offset - self.base_offset, position)
            self._index_latest()
            self._entry_position = position

    def set_index_interval(self, interval_bytes: int) -> None:
        self._interval = interval_bytes

    def should_roll(
        self,
        settings: TopicSettings,
        size: int,
        last_offset: Offset,
        timestamp: Millis,
        now: Millis,
        *,
        batches: int = 1,
    ) -> bool:
        """Whether the log must roll before it appends a batch (or the last of several batches)."""
        if not self.size:
            return False
        return (
            self.size + size > settings.segment_bytes
            or self._age_ms(timestamp, now) > settings.segment_ms
            or last_offset - self.base_offset > RELATIVE_OFFSET_MAX
            or len(self.offsets) + batches > settings.segment_index_bytes // OFFSET_ENTRY.size
            # One entry is reserved for the one that is added when the segment is sealed.
            or len(self.times) + batches > settings.segment_index_bytes // TIME_ENTRY.size - 1
        )

    def _age_ms(self, timestamp: Millis, now: Millis) -> int:
        first = self.first_timestamp
        return timestamp - first if first >= 0 else now - self._created_ms

    def flush_indexes(self) -> None:
        self.offsets.flush()
        self.times.flush()
        self._flush_aborted()

    def seal(self) -> None:
        """End append: write the indexes, with an entry for the latest timestamp."""
        self.index_latest_timestamp()
        self.flush_indexes()
        self.unload_indexes()

    def unload_indexes(self) -> None:
        """Free the memory of the indexes. They must be flushed before."""
        self.offsets.unload()
        self.times.unload()

    def index_latest_timestamp(self) -> None:
        """Add a time index entry for the latest timestamp, as when the segment is sealed."""
        if self.latest[0] > NO_TIMESTAMP:
            self._index_latest()

    def sync(self) -> None:
        """Sync all files of a sealed segment."""
        self.file.sync()
        self.offsets.sync()
        self.times.sync()

    def truncate(self, size: int) -> None:
        self.file.truncate(size)
        self.file.sync()
        self.size = size
        self.stored_size = min(self.stored_size, size)

    def _index_latest(self) -> None:
        timestamp, offset = self.latest
        last = self.times.find_last()
        if last is None or timestamp > last[0]:
            self.times.append(timestamp, offset - self.base_offset)

    def _truncate_partial_write(self) -> None:
        self.file.truncate(self.size)
        self._has_partial_write = False

    # Timestamps

    @property
    def latest(self) -> tuple[Millis, Offset]:
        """The latest timestamp, and the last offset of the first batch with it."""
        if self._latest is None:
            if not self.times.is_loaded:
                segment_lookup.check_time_index(self)
            last = self.times.find_last()
            if last is None:
                self._latest = (NO_TIMESTAMP, self.base_offset)
            else:
                self._latest = (Millis(last[0]), Offset(self.base_offset + last[1]))
        return self._latest

    @property
    def created_ms(self) -> Millis:
        return self._created_ms

    @property
    def first_timestamp(self) -> Millis:
        """The max timestamp of the first batch. The age of a segment starts there."""
        if self._first_timestamp is None:
            if not self.size:
                return NO_TIMESTAMP
            try:
                self._first_timestamp = next(self.walk(0))[4]
            except (BadBatch, StopIteration):
                return NO_TIMESTAMP
        return self._first_timestamp

    # Read

    @property
    def file(self) -> File:
        if self._file is None:
            self._file = self._disk.open(self.path())
        return self._file

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def find(self, offset: int) -> BatchInfo | None:
        """The batch that contains an offset. If compaction has removed it: the next batch.

        Raises CorruptFile if the offset is in a damaged range.
        """
        return segment_lookup.find(self, offset)

    def walk(self, position: int, expected: Offset | None = None) -> Iterator[BatchInfo]:
        """The batches from a position on, except damaged ones. Reads only their headers.

        Raises BadBatch at the first header that is invalid, or whose offset is lower than that of
        the batch before or than `expected`.
        """
        end, damaged = self.size, self.damaged
        start, data, at = position, b"", 0
        previous: BatchInfo | None = None
        lowest = previous_lowest = self.base_offset if expected is None else expected
        highest = self.base_offset + RELATIVE_OFFSET_MAX if self.limit is None else self.limit - 1
        while position < end:
            if damaged and (skipped := self._skip_damage(position)) > position:
                position, previous = skipped, None
                continue
            at = position - start
            if at + HEADER_BYTES > len(data):
                start, at = position, 0
                data = self.file.read(position, min(NEARBY_BYTES, end - position))
                if len(data) < HEADER_BYTES:
                    break
            base_offset, length, tag, delta, timestamp, count = unpack_header(data, at)
            size = LENGTH_END + length
            last_offset = base_offset + delta
            if (
                base_offset < lowest
                or last_offset > highest
                or tag != EPOCH_AND_MAGIC
                or delta < 0
                or not HEADER_BYTES <= size <= end - position
            ):
                break
            # Where the walk starts in the middle, the first offset is the lowest.
            is_first = previous is None and expected is None
            previous_lowest = base_offset if is_first else lowest
            lowest = last_offset + 1
            previous = (
                position,
                size,
                base_offset,
                last_offset,
                timestamp if count else NO_TIMESTAMP,
            )
            yield previous
            position += size
        if position < end:
            raise self._bad_batch(position, data[at:], lowest, previous, previous_lowest)

    def _bad_batch(
        self,
        position: int,
        header: bytes,
        lowest: Offset,
        previous: BatchInfo | None,
        previous_lowest: Offset,
    ) -> BadBatch:
        base_offset: Offset | None = None
        if len(header) < HEADER_BYTES:
            reason = "the batch header is truncated"
        else:
            base_offset, length, tag, _, _, _ = unpack_header(header)
            size = LENGTH_END + length
            if tag != EPOCH_AND_MAGIC:
                reason = "the leader epoch or the magic of the batch is invalid"
            elif not HEADER_BYTES <= size <= self.size - position:
                reason = f"the batch size {size} is invalid"
            else:
                reason = f"the base offset is {base_offset}, expected {lowest} or more"
                if base_offset >= lowest:
                    reason = f"the base offset {base_offset} is too high"
        return BadBatch(
            self.path(),
            position,
            reason,
            expected=lowest,
            base_offset=base_offset,
            previous=previous,
            previous_expected=previous_lowest,
        )

    def _skip_damage(self, position: int) -> int:
        for each in self.damaged:
            if each.position <= position < each.end:
                position = each.end
        return position

    def add_damage(self, found: DamagedRange) -> None:
        """Remember a damaged range, so that the batches around it can be read."""
        ranges = [each for each in self.damaged if not found.position <= each.position < found.end]
        self.damaged = tuple(sorted([*ranges, found], key=lambda each: each.position))

    def readable_end(self, position: int) -> int:
        """Where the next damaged range starts, or the segment ends."""
        for each in self.damaged:
            if each.position > position:
                return each.position
        return self.size

    def clear_indexes(self) -> None:
        """Remove all entries, before they are built again."""
        self.offsets.truncate_to(0)
        self.times.truncate_to(0)
        self._entry_position = 0
        self._latest = None

    def chunks(self, position: int, size: int = READ_BYTES) -> Iterator[Chunk]:
        """Chunks of whole batches of about `size` bytes, up to the first invalid batch length or
        the end of the file."""
        end = self.size
        while position < end:
            # The file may have been closed since the last chunk; the property reopens it.
            file = self.file
            data = file.read(position, min(size, end - position))
            whole, last = _whole_batches(data)
            if not whole and len(data) >= LENGTH_END:
                length = LENGTH_END + _LENGTH.unpack_from(data, 8)[0]
                if HEADER_BYTES <= length <= end - position:
                    data = file.read(position, length)
                    whole, last = _whole_batches(data)
            if not whole:
                return
            base_offset, _, _, delta, _, _ = unpack_header(data, last)
            yield position, data[:whole], Offset(base_offset + delta + 1)
            position += whole

    def read_next_offset(self) -> Offset:
        """The offset after the last batch."""
        next_offset = self.base_offset
        for info in segment_lookup.walk_from(self, RELATIVE_OFFSET_MAX):
            next_offset = Offset(info[3] + 1)
        return next_offset

    # Aborted transactions

    @property
    def aborted(self) -> list[AbortedTxn]:
        """The aborted transactions whose abort marker is in this segment."""
        if self._aborted is None:
            self._aborted = []
            if self._has_aborted_file:
                path = self.path(TRANSACTION_INDEX)
                self._aborted = decode_aborted(read_file(self._disk, path))
        return self._aborted

    def add_aborted(self, transaction: AbortedTxn) -> None:
        self.aborted.append(transaction)
        self._is_aborted_changed = True

    def remove_aborted(self, from_offset: Offset) -> None:
        """Remove those that end at an offset or later, before a replay adds them again."""
        kept = [each for each in self.aborted if each.last_offset < from_offset]
        if len(kept) != len(self.aborted):
            self._aborted = kept
            self._is_aborted_changed = True

    def _flush_aborted(self) -> None:
        if self._is_aborted_changed:
            # Atomically, because only a scan of the whole log could rebuild it.
            self._disk.write_atomically(self.path(TRANSACTION_INDEX), encode_aborted(self.aborted))
            self._is_aborted_changed = False

    def _index(self, kind: str, entry: struct.Struct, sizes: Mapping[str, int]) -> Index:
        name = segment_file(self.base_offset, kind, self._stage)
        return Index(self._disk, f"{self._directory}/{name}", entry, sizes.get(name, 0))


def _whole_batches(data: bytes) -> tuple[int, int]:
    """The number of bytes in whole batches according to the batch lengths, and the position of the
    last one."""
    position, last, end = 0, 0, len(data)
    while end - position >= HEADER_BYTES:
        size: int = LENGTH_END + _LENGTH.unpack_from(data, position + 8)[0]
        if not HEADER_BYTES <= size <= end - position:
            break
        last = position
        position += size
    return position, last
