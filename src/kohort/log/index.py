"""A segment's indexes: where to begin looking for an offset, a time, an aborted transaction.

    .index      relative offset int32, position int32: the last offset of the batch at a position
    .timeindex  timestamp int64, relative offset int32: the latest time so far, and the last
                offset of the first batch that had it
    .txnindex   version int16, producer id, first, last and last stable offset int64

An index of a growing segment is held in memory and written now and then, since all of it can be
made again from the log. Afterwards it is looked up on the disk.
"""

import struct
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from kohort.log.disk import Disk, read_file
from kohort.log.errors import StorageError
from kohort.types import Offset, ProducerId, value

OFFSET_ENTRY: Final = struct.Struct(">ii")
TIME_ENTRY: Final = struct.Struct(">qi")
_ABORTED_ENTRY: Final = struct.Struct(">hqqqq")
_ABORTED_VERSION: Final = 0

RELATIVE_OFFSET_MAX: Final = 2**31 - 1


class Index:
    """Pairs of numbers in ascending order of the first, which is what they are looked up by."""

    __slots__ = ("_disk", "_entry", "_held", "_kept_bytes", "_path")

    def __init__(self, disk: Disk, path: str, entry: struct.Struct, kept_bytes: int) -> None:
        self._disk = disk
        self._path = path
        self._entry = entry
        # Part of an entry at the end is what a crash left.
        self._kept_bytes = kept_bytes - kept_bytes % entry.size
        self._held: bytearray | None = None

    def __len__(self) -> int:
        held_bytes = self._kept_bytes if self._held is None else len(self._held)
        return held_bytes // self._entry.size

    def find_at_most(self, key: int) -> tuple[int, int] | None:
        """The last pair whose first number is not above the key."""
        entry = self._entry
        held = self._held
        if held is not None:
            at = bisect_right(
                range(len(self)), key, key=lambda n: entry.unpack_from(held, n * entry.size)[0]
            )
            return self._unpack(held, at - 1) if at else None
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
        if self._held is not None:
            return self._unpack(self._held, count - 1) if count else None
        return self.find_at_most(2**63 - 1)

    def entries(self) -> Iterator[tuple[int, int]]:
        data = bytes(self._held) if self._held is not None else self._read()
        yield from self._entry.iter_unpack(data)

    # While the segment grows

    def hold(self) -> None:
        """Read into memory, to be added to."""
        if self._held is None:
            self._held = bytearray(self._read())

    def keep_first(self, count: int) -> None:
        """Forget all entries but the first ones, those on the disk as well."""
        self.hold()
        assert self._held is not None
        del self._held[count * self._entry.size :]
        self._kept_bytes = min(self._kept_bytes, len(self._held))

    def append(self, first: int, second: int) -> None:
        assert self._held is not None, f"{self._path} is not held in memory"
        self._held += self._entry.pack(first, second)

    def flush(self) -> None:
        """Write what the file lacks. A flush that failed is made good by the next one."""
        held = self._held
        if held is None:
            return
        file = (self._disk.open if self._kept_bytes else self._disk.create)(self._path)
        try:
            if file.size() != self._kept_bytes:
                file.truncate(self._kept_bytes)
            if len(held) > self._kept_bytes:
                file.append(memoryview(held)[self._kept_bytes :])
                self._kept_bytes = len(held)
        finally:
            file.close()

    def let_go(self) -> None:
        """Out of memory; only after a flush."""
        assert self._held is None or len(self._held) == self._kept_bytes
        self._held = None

    def sync(self) -> None:
        file = self._disk.open(self._path)
        try:
            file.sync()
        finally:
            file.close()

    def _read(self) -> bytes:
        if not self._kept_bytes:
            return b""
        return read_file(self._disk, self._path)[: self._kept_bytes]

    def _whole(self, data: bytes) -> bytes:
        if len(data) != self._entry.size:
            raise StorageError(self._path, "look up", "the index is shorter than it was")
        return data

    def _unpack(self, data: bytes | bytearray, at: int) -> tuple[int, int]:
        first, second = self._entry.unpack_from(data, at * self._entry.size)
        return first, second


@value
class AbortedTransaction:
    """From first_offset to the marker at last_offset, what this producer wrote does not count."""

    producer_id: ProducerId
    first_offset: Offset
    last_offset: Offset
    last_stable_offset: Offset
    """Where the first transaction still open began when this one ended."""


def encode_aborted(transactions: list[AbortedTransaction]) -> bytes:
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


def decode_aborted(data: bytes) -> list[AbortedTransaction]:
    """A part of an entry at the end is what a crash left, and is passed over."""
    whole = len(data) - len(data) % _ABORTED_ENTRY.size
    return [
        AbortedTransaction(
            producer_id=ProducerId(producer_id),
            first_offset=Offset(first),
            last_offset=Offset(last),
            last_stable_offset=Offset(stable),
        )
        for _, producer_id, first, last, stable in _ABORTED_ENTRY.iter_unpack(data[:whole])
    ]
