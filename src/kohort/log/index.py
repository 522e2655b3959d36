"""The indexes of a segment: offset index, time index and transaction index.

    .index      relative offset int32, position int32: the last offset of the batch at a position
    .timeindex  timestamp int64, relative offset int32: the latest timestamp so far, and the last
                offset of the first batch with it
    .txnindex   version int16, producer id, first, last and last stable offset int64

The indexes of the active segment are held in memory and flushed occasionally, because they can be
rebuilt from the log. The indexes of sealed segments are searched on disk.
"""

import struct
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from kohort.log.disk import Disk, read_file
from kohort.log.errors import BadIndex
from kohort.types import Offset, ProducerId, value

OFFSET_ENTRY: Final = struct.Struct(">ii")
TIME_ENTRY: Final = struct.Struct(">qi")
_ABORTED_ENTRY: Final = struct.Struct(">hqqqq")
_ABORTED_VERSION: Final = 0

RELATIVE_OFFSET_MAX: Final = 2**31 - 1


class Index:
    """Pairs of numbers, sorted by the first one, which is the lookup key."""

    __slots__ = ("_disk", "_entries", "_entry", "_file_bytes", "_path")

    def __init__(self, disk: Disk, path: str, entry: struct.Struct, file_bytes: int) -> None:
        self._disk = disk
        self._path = path
        self._entry = entry
        # A crash may leave a partial entry at the end of the file.
        self._file_bytes = file_bytes - file_bytes % entry.size
        self._entries: bytearray | None = None

    def __len__(self) -> int:
        total_bytes = self._file_bytes if self._entries is None else len(self._entries)
        return total_bytes // self._entry.size

    @property
    def is_loaded(self) -> bool:
        """Whether the entries are in memory, as those of the active segment are."""
        return self._entries is not None

    def find_at_most(self, key: int) -> tuple[int, int] | None:
        """The last pair whose first number is at most `key`."""
        entry = self._entry
        entries = self._entries
        if entries is not None:
            at = bisect_right(
                range(len(self)), key, key=lambda n: entry.unpack_from(entries, n * entry.size)[0]
            )
            return self._unpack(entries, at - 1) if at else None
        if not len(self):
            return None
        file = self._disk.open(self._path)
        try:
            at = bisect_right(
                range(len(self)),
                key,
                key=lambda n: entry.unpack(self._whole(file.read(n * entry.size, entry.size)))[0],
            )
            if not at:
                return None
            return self._unpack(self._whole(file.read((at - 1) * entry.size, entry.size)), 0)
        finally:
            file.close()

    def find_last(self) -> tuple[int, int] | None:
        count = len(self)
        if self._entries is not None:
            return self._unpack(self._entries, count - 1) if count else None
        return self.find_at_most(2**63 - 1)

    def entries(self) -> Iterator[tuple[int, int]]:
        data = bytes(self._entries) if self._entries is not None else self._read()
        yield from self._entry.iter_unpack(data)

    # Active segment

    def load(self) -> None:
        """Read the index into memory, so that entries can be appended."""
        if self._entries is None:
            self._entries = bytearray(self._read())

    def truncate_to(self, count: int) -> None:
        """Keep only the first `count` entries. The next flush truncates the file."""
        self.load()
        assert self._entries is not None
        del self._entries[count * self._entry.size :]
        self._file_bytes = min(self._file_bytes, len(self._entries))

    def append(self, first: int, second: int) -> None:
        assert self._entries is not None, f"{self._path} is not loaded"
        self._entries += self._entry.pack(first, second)

    def flush(self) -> None:
        """Write the new entries to the file. A flush after a failed one repairs the file."""
        entries = self._entries
        if entries is None:
            return
        file = (self._disk.open if self._file_bytes else self._disk.create)(self._path)
        try:
            if file.size() != self._file_bytes:
                file.truncate(self._file_bytes)
            if len(entries) > self._file_bytes:
                file.append(memoryview(entries)[self._file_bytes :])
                self._file_bytes = len(entries)
        finally:
            file.close()

    def unload(self) -> None:
        """Free the memory. Call `flush` before."""
        assert self._entries is None or len(self._entries) == self._file_bytes
        self._entries = None

    def sync(self) -> None:
        file = self._disk.open(self._path)
        try:
            file.sync()
        finally:
            file.close()

    def _read(self) -> bytes:
        if not self._file_bytes:
            return b""
        return read_file(self._disk, self._path)[: self._file_bytes]

    def _whole(self, data: bytes) -> bytes:
        if len(data) != self._entry.size:
            raise BadIndex(self._path, "the file has become shorter")
        return data

    def _unpack(self, data: bytes | bytearray, at: int) -> tuple[int, int]:
        first, second = self._entry.unpack_from(data, at * self._entry.size)
        return first, second


@value
class AbortedTxn:
    """The records of a producer from `first_offset` to the abort marker at `last_offset`."""

    producer_id: ProducerId
    first_offset: Offset
    last_offset: Offset
    last_stable_offset: Offset
    """The last stable offset after this transaction ended."""


def encode_aborted(transactions: list[AbortedTxn]) -> bytes:
    return b"".join(
        _ABORTED_ENTRY.pack(
            _ABORTED_VERSION,
            each.producer_id,
            each.first_offset,
            each.last_offset,
            each.last_stable_offset,
        )
        for each in transactions
    )


def decode_aborted(data: bytes) -> list[AbortedTxn]:
    """Ignores a partial entry at the end, which a crash may leave."""
    whole = len(data) - len(data) % _ABORTED_ENTRY.size
    return [
        AbortedTxn(
            producer_id=ProducerId(producer_id),
            first_offset=Offset(first),
            last_offset=Offset(last),
            last_stable_offset=Offset(stable),
        )
        for _, producer_id, first, last, stable in _ABORTED_ENTRY.iter_unpack(data[:whole])
    ]
