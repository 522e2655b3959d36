"""One segment: a file of batches and its indexes.

The active segment is the last one of a log: batches are appended to it and its indexes are in
memory. All other segments are sealed: they are only read, replaced as a whole, or removed. No
record is decoded here.
"""

import contextlib
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from kohort.log.disk import Disk, File, read_file
from kohort.log.errors import CorruptFile, StorageError
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
from kohort.log.topic_config import TopicSettings
from kohort.types import Millis, Offset
from kohort.wire.batch import NO_TIMESTAMP
from kohort.wire.batch_header import HEADER_BYTES, LENGTH_END
from kohort.wire.varint import Buffer

_HEADER_FIELDS: Final = struct.Struct(">qi11xi8xq14xi")
"""Base offset, length, last offset delta, max timestamp and record count of a batch header."""

_LENGTH: Final = struct.Struct(">i")

_HEADER_READ_BYTES: Final = 4096 + HEADER_BYTES
"""Index entries are about 4096 bytes apart by default, so one read usually finds the batch."""

BatchInfo: TypeAlias = tuple[int, int, Offset, Offset, Millis]
"""Position, size, base offset, last offset and max timestamp of a batch. The timestamp is
NO_TIMESTAMP if compaction has removed all records."""

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
        "offsets",
        "size",
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
            self._first_timestamp = next(self.walk(0))[4]
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
        """The batch that contains an offset. If compaction has removed it: the next batch."""
        entry = self.offsets.find_at_most(offset - self.base_offset)
        for info in self.walk(entry[1] if entry else 0):
            if info[3] >= offset:
                return info
        return None

    def walk(self, position: int) -> Iterator[BatchInfo]:
        """The batches from a position on. Reads only their headers."""
        end = self.size
        start, data = position, b""
        while position < end:
            at = position - start
            if at + HEADER_BYTES > len(data):
                start, at = position, 0
                data = self.file.read(position, min(_HEADER_READ_BYTES, end - position))
            if len(data) - at < HEADER_BYTES:
                raise CorruptFile(
                    self.path(), f"read at {position}", "the batch header is truncated"
                )
            base_offset, length, delta, timestamp, count = _HEADER_FIELDS.unpack_from(data, at)
            size = LENGTH_END + length
            if not HEADER_BYTES <= size <= end - position:
                raise CorruptFile(self.path(), f"read at {position}", f"invalid batch size {size}")
            last_offset = Offset(base_offset + delta)
            yield position, size, base_offset, last_offset, timestamp if count else NO_TIMESTAMP
            position += size

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
            base_offset, _, delta, _, _ = _HEADER_FIELDS.unpack_from(data, last)
            yield position, data[:whole], Offset(base_offset + delta + 1)
            position += whole

    def read_next_offset(self) -> Offset:
        """The offset after the last batch."""
        last = self.offsets.find_last()
        next_offset = self.base_offset
        for info in self.walk(last[1] if last else 0):
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
