"""One file of batches and its indexes.

The last segment of a log grows: its indexes are in memory, and batches are added to it. All others
are sealed: they are only read, replaced as a whole, or removed. Nothing here decodes a record.
"""

import contextlib
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from kohort.log.disk import Disk, File, read_file
from kohort.log.errors import Damaged, StorageError
from kohort.log.index import (
    OFFSET_ENTRY,
    RELATIVE_OFFSET_MAX,
    TIME_ENTRY,
    AbortedTransaction,
    Index,
    decode_aborted,
    encode_aborted,
)
from kohort.log.limits import READ_BYTES
from kohort.log.names import LOG, OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX, segment_file
from kohort.log.settings import TopicSettings
from kohort.types import Millis, Offset
from kohort.wire.batch import NO_TIMESTAMP
from kohort.wire.batch_header import HEADER_BYTES, LENGTH_END
from kohort.wire.varint import Buffer

_GLANCE: Final = struct.Struct(">qi11xi8xq14xi")
"""Of a batch's header: base offset, length, last offset delta, max timestamp, record count."""

_LENGTH: Final = struct.Struct(">i")

_WALK_BYTES: Final = 4096 + HEADER_BYTES
"""Two index entries lie about 4096 bytes apart, so one read usually finds the batch."""

Glance: TypeAlias = tuple[int, int, Offset, Offset, Millis]
"""Position, size, base offset, last offset and max timestamp of a batch; no timestamp if
compaction has left it empty, since no record can then be found by it."""

Chunk: TypeAlias = tuple[int, bytes, Offset]
"""A position, the whole batches there, and the offset after the last of them."""


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
        "_interval",
        "_is_aborted_changed",
        "_is_torn",
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
        """A sealed segment; sizes are those of its files, by their names."""
        self._disk = disk
        self._directory = directory
        self._stage = stage
        self.base_offset = base_offset
        self.size = sizes[segment_file(base_offset, LOG, stage)]
        self.offsets = self._index(OFFSET_INDEX, OFFSET_ENTRY, sizes)
        self.times = self._index(TIME_INDEX, TIME_ENTRY, sizes)
        self._has_aborted_file = segment_file(base_offset, TRANSACTION_INDEX, stage) in sizes
        self._aborted: list[AbortedTransaction] | None = None
        self._is_aborted_changed = False
        self._file: File | None = None
        self._latest: tuple[Millis, Offset] | None = None
        self._first_timestamp: Millis | None = None
        self._created_ms = NO_TIMESTAMP
        self._entry_position = 0
        self._interval = 0
        self._is_torn = False

    @classmethod
    def create(
        cls, disk: Disk, directory: str, base_offset: Offset, now: Millis, *, stage: str = ""
    ) -> "Segment":
        """An empty segment, ready to grow. A leftover of the same name is emptied."""
        names = [segment_file(base_offset, kind, stage) for kind in (LOG, OFFSET_INDEX, TIME_INDEX)]
        for name in reversed(names):
            disk.create(f"{directory}/{name}").close()
        segment = cls(disk, directory, base_offset, dict.fromkeys(names, 0), stage=stage)
        segment.grow(now)
        return segment

    def path(self, kind: str = LOG) -> str:
        return f"{self._directory}/{segment_file(self.base_offset, kind, self._stage)}"

    # Growing

    def grow(self, now: Millis) -> None:
        """From here on batches are added. Says nothing of what the log holds after its indexes."""
        self.offsets.hold()
        self.times.hold()
        last = self.offsets.find_last()
        self._entry_position = last[1] if last else 0
        self._created_ms = now
        self._latest = None

    def append(self, data: Buffer, last_offset: Offset, max_timestamp: Millis) -> None:
        """All of the data is in the file, or none of it and a StorageError says so."""
        self._write(data)
        self.note(self.size, last_offset, max_timestamp)
        self.size += len(data)

    def append_all(self, batches: Sequence[tuple[bytes, Offset, Millis]]) -> None:
        """As many batches, each with its last offset and its time, in one write: all or none."""
        self._write(b"".join([data for data, _, _ in batches]))
        for data, last_offset, max_timestamp in batches:
            self.note(self.size, last_offset, max_timestamp)
            self.size += len(data)

    def _write(self, data: Buffer) -> None:
        file = self.file
        if self._is_torn:
            self._mend()
        try:
            file.append(data)
        except StorageError:
            self._is_torn = True
            with contextlib.suppress(StorageError):
                self._mend()
            raise

    def note(self, position: int, last_offset: Offset, max_timestamp: Millis) -> None:
        """Makes index entries for the batch at a position, where they are due."""
        latest = self.latest
        if max_timestamp > latest[0]:
            self._latest = latest = (max_timestamp, last_offset)
        if position - self._entry_position > self._interval:
            self.offsets.append(last_offset - self.base_offset, position)
            self._note_latest()
            self._entry_position = position

    def index_every(self, interval_bytes: int) -> None:
        self._interval = interval_bytes

    def must_roll(
        self,
        settings: TopicSettings,
        size: int,
        last_offset: Offset,
        timestamp: Millis,
        now: Millis,
        *,
        batches: int = 1,
    ) -> bool:
        """Whether a batch, or the last of some, belongs into the next segment."""
        if not self.size:
            return False
        return (
            self.size + size > settings.segment_bytes
            or self._waited_ms(timestamp, now) > settings.segment_ms
            or last_offset - self.base_offset > RELATIVE_OFFSET_MAX
            or len(self.offsets) + batches > settings.segment_index_bytes // OFFSET_ENTRY.size
            # One place is reserved for the entry that seals the segment.
            or len(self.times) + batches > settings.segment_index_bytes // TIME_ENTRY.size - 1
        )

    def _waited_ms(self, timestamp: Millis, now: Millis) -> int:
        first = self.first_timestamp
        return timestamp - first if first >= 0 else now - self._created_ms

    def flush_indexes(self) -> None:
        self.offsets.flush()
        self.times.flush()
        self._flush_aborted()

    def seal(self) -> None:
        """Nothing will be added: the indexes go to the disk, with the latest time of all."""
        self.note_all()
        self.flush_indexes()
        self.let_go()

    def let_go(self) -> None:
        """Indexes out of memory, after they were flushed."""
        self.offsets.let_go()
        self.times.let_go()

    def note_all(self) -> None:
        """The latest time gets an entry, as if the segment ended here."""
        if self.latest[0] > NO_TIMESTAMP:
            self._note_latest()

    def sync(self) -> None:
        """Everything of a sealed segment."""
        self.file.sync()
        self.offsets.sync()
        self.times.sync()

    def truncate(self, size: int) -> None:
        """Cut what recovery found to be worthless."""
        self.file.truncate(size)
        self.file.sync()
        self.size = size

    def _note_latest(self) -> None:
        timestamp, offset = self.latest
        last = self.times.find_last()
        if last is None or timestamp > last[0]:
            self.times.append(timestamp, offset - self.base_offset)

    def _mend(self) -> None:
        self.file.truncate(self.size)
        self._is_torn = False

    # Times

    @property
    def latest(self) -> tuple[Millis, Offset]:
        """The latest timestamp, and the last offset of the first batch that has it."""
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
        """The latest one of the first batch; the age of a segment counts from there."""
        if self._first_timestamp is None:
            if not self.size:
                return NO_TIMESTAMP
            self._first_timestamp = next(self.walk(0))[4]
        return self._first_timestamp

    # Reading

    @property
    def file(self) -> File:
        if self._file is None:
            self._file = self._disk.open(self.path())
        return self._file

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def find(self, offset: int) -> Glance | None:
        """The batch that holds an offset, or where compaction has removed it, the next one."""
        entry = self.offsets.find_at_most(offset - self.base_offset)
        for glance in self.walk(entry[1] if entry else 0):
            if glance[3] >= offset:
                return glance
        return None

    def walk(self, position: int) -> Iterator[Glance]:
        """The batches from a position on, by a few bytes of their headers."""
        end = self.size
        start, data = position, b""
        while position < end:
            at = position - start
            if at + HEADER_BYTES > len(data):
                start, at = position, 0
                data = self.file.read(position, min(_WALK_BYTES, end - position))
            if len(data) - at < HEADER_BYTES:
                raise Damaged(self.path(), f"read at {position}", "a header is cut short")
            base_offset, length, delta, timestamp, count = _GLANCE.unpack_from(data, at)
            size = LENGTH_END + length
            if not HEADER_BYTES <= size <= end - position:
                raise Damaged(self.path(), f"read at {position}", f"a batch of {size} bytes")
            last_offset = Offset(base_offset + delta)
            yield position, size, base_offset, last_offset, timestamp if count else NO_TIMESTAMP
            position += size

    def chunks(self, position: int, size: int = READ_BYTES) -> Iterator[Chunk]:
        """Runs of whole batches, each about a size, up to the first batch of which the length is
        impossible: there the batches end before the file does."""
        end = self.size
        while position < end:
            # Asked for anew each time: between two chunks the file may have been closed.
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
            base_offset, _, delta, _, _ = _GLANCE.unpack_from(data, last)
            yield position, data[:whole], Offset(base_offset + delta + 1)
            position += whole

    def find_next_offset(self) -> Offset:
        """The offset after the last batch."""
        last = self.offsets.find_last()
        next_offset = self.base_offset
        for glance in self.walk(last[1] if last else 0):
            next_offset = Offset(glance[3] + 1)
        return next_offset

    # Aborted transactions

    @property
    def aborted(self) -> list[AbortedTransaction]:
        """Those whose markers are in this segment."""
        if self._aborted is None:
            self._aborted = []
            if self._has_aborted_file:
                path = self.path(TRANSACTION_INDEX)
                self._aborted = decode_aborted(read_file(self._disk, path))
        return self._aborted

    def note_aborted(self, transaction: AbortedTransaction) -> None:
        self.aborted.append(transaction)
        self._is_aborted_changed = True

    def forget_aborted(self, from_offset: Offset) -> None:
        """Those that end at an offset or later: they are about to be found again."""
        kept = [each for each in self.aborted if each.last_offset < from_offset]
        if len(kept) != len(self.aborted):
            self._aborted = kept
            self._is_aborted_changed = True

    def _flush_aborted(self) -> None:
        if self._is_aborted_changed:
            # In one step, since only a walk through the log could make it again.
            self._disk.write_atomically(self.path(TRANSACTION_INDEX), encode_aborted(self.aborted))
            self._is_aborted_changed = False

    def _index(self, kind: str, entry: struct.Struct, sizes: Mapping[str, int]) -> Index:
        name = segment_file(self.base_offset, kind, self._stage)
        return Index(self._disk, f"{self._directory}/{name}", entry, sizes.get(name, 0))


def _whole_batches(data: bytes) -> tuple[int, int]:
    """How many bytes are whole batches, if lengths can be believed, and where the last begins."""
    position, last, end = 0, 0, len(data)
    while end - position >= HEADER_BYTES:
        size: int = LENGTH_END + _LENGTH.unpack_from(data, position + 8)[0]
        if not HEADER_BYTES <= size <= end - position:
            break
        last = position
        position += size
    return position, last
