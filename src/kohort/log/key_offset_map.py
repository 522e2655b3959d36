"""The offset of the last record of each key, collected by the first pass of compaction.

`KeyOffsetMap.add` reads the keys of every batch. A batch that differs from an earlier one only in
its values has the same keys, so the fast path (`wire.repeated_batches`) stores only its offset.
"""

import hashlib
from collections.abc import Iterable
from typing import Final

from kohort.types import Offset
from kohort.wire.batch import BatchHeader, Codec, iter_records, read_keys
from kohort.wire.batch_header import HEADER_BYTES
from kohort.wire.records import find_value_positions
from kohort.wire.repeated_batches import RepeatedBatches

_KEY_BYTES_MAX: Final = 31
"""Longer keys are stored as a digest of 32 bytes, which cannot equal a shorter key."""


class _RepeatedBatch:
    """Batches with the same keys in the same order, and the base offset of the last one."""

    __slots__ = ("base_offset", "keys")

    def __init__(self, base_offset: Offset, keys: list[tuple[bytes, int]]) -> None:
        self.base_offset = base_offset
        self.keys = keys


class KeyOffsetMap:
    """Maps each key to the offset of its last record. Call `finish` before reading it."""

    def __init__(self, first: Offset) -> None:
        """Records before `first` are ignored."""
        self._first = first
        self._offsets: dict[bytes, int] = {}
        self._repeated_batches: RepeatedBatches[_RepeatedBatch] = RepeatedBatches()
        self._repeated: list[_RepeatedBatch] = []

    def __len__(self) -> int:
        return len(self._offsets)

    def add(self, chunk: bytes, position: int, header: BatchHeader) -> None:
        """Add the batch at a position. The caller has verified its checksum and adds batches in
        offset order."""
        if header.codec is not Codec.NONE or header.base_offset < self._first:
            self.add_each(chunk, position, header)
            return
        body = chunk[position + HEADER_BYTES : position + header.size_in_bytes]
        shape = len(body), header.record_count
        repeated = self._repeated_batches.find(shape, body)
        if repeated is not None:
            repeated.base_offset = header.base_offset
            return
        keys = self.add_each(chunk, position, header)
        if len(keys) < header.record_count or not self._repeated_batches.is_repeated(
            (shape, *keys[:1])
        ):
            return
        repeated = _RepeatedBatch(header.base_offset, keys)
        gaps = find_value_positions(body, header.record_count)
        if self._repeated_batches.store(shape, body, len(keys), gaps, repeated):
            self._repeated.append(repeated)

    def finish(self) -> None:
        """Add the keys of the batches that took the fast path."""
        offsets = self._offsets
        for repeated in self._repeated:
            for key, delta in repeated.keys:
                offsets[key] = max(offsets[key], repeated.base_offset + delta)
        self._repeated.clear()
        self._repeated_batches = RepeatedBatches()

    def find(self, key: bytes) -> int:
        """-1 for a key that was not added."""
        return self._offsets.get(_shorten(key), -1)

    def values(self) -> Iterable[int]:
        return self._offsets.values()

    def add_each(self, chunk: bytes, position: int, header: BatchHeader) -> list[tuple[bytes, int]]:
        """The slow path: read every key. Returns each stored key with its offset delta."""
        if header.codec is Codec.NONE:
            pairs = read_keys(chunk, position, header)
        else:
            records = iter_records(chunk, position, check_crc=False)
            pairs = [(record.key, record.offset) for record in records]
        stored = []
        for key, offset in pairs:
            if key is None:
                continue
            short = _shorten(key)
            stored.append((short, offset - header.base_offset))
            if offset >= self._first:
                self._offsets[short] = offset
        return stored


def _shorten(key: bytes) -> bytes:
    if len(key) <= _KEY_BYTES_MAX:
        return key
    return hashlib.blake2b(key, digest_size=_KEY_BYTES_MAX + 1).digest()
