"""Where each key was seen last: what the first pass of compaction finds out.

Some topics say the same over and over, with other values: a group commits its partitions, and then
commits them again. Of batches that differ in nothing but their values it is worked out once which
keys they have. From then on another one is only compared, and its place noted.
"""

import hashlib
from collections.abc import Iterable
from typing import Final

from kohort.types import Offset
from kohort.wire.batch import BatchHeader, Codec, iter_records, read_keys
from kohort.wire.batch_header import HEADER_BYTES
from kohort.wire.records import find_values, read_first_key

_KEY_BYTES_MAX: Final = 31
"""Longer keys are held as a digest of 32 bytes: two keys then never look the same."""

_FORM_KEYS_MAX: Final = 200_000
"""Of all forms; protects memory while a log is compacted: some 200 bytes for each."""

_SEEN_MAX: Final = 100_000
"""Batches of which one was seen; a second one like it is worth a form."""

Sign = tuple[int, int, bytes]
"""Of a batch: its size, how many records it has, and the first one's key."""


class LastOffsets:
    """By key, the offset of its last record. `finish` comes before any look at them."""

    def __init__(self, first: Offset) -> None:
        """Records before `first` do not count."""
        self._first = first
        self._offsets: dict[bytes, int] = {}
        self._seen: set[Sign] = set()
        self._forms: dict[Sign, _Form] = {}
        self._form_keys = 0

    def __len__(self) -> int:
        return len(self._offsets)

    def note(self, chunk: bytes, position: int, header: BatchHeader) -> None:
        """The batch at a position, whose checksum is right; it comes after all noted before."""
        if (
            header.codec is not Codec.NONE
            or header.base_offset < self._first
            or not header.record_count
        ):
            self._note_each(chunk, position, header)
            return
        body = chunk[position + HEADER_BYTES : position + header.size_in_bytes]
        sign = len(body), header.record_count, read_first_key(body)
        form = self._forms.get(sign)
        if form is not None and form.fits(body):
            form.base_offset = header.base_offset
            return
        keys = self._note_each(chunk, position, header)
        if sign not in self._seen:
            if len(self._seen) >= _SEEN_MAX:
                self._seen.clear()
            self._seen.add(sign)
        elif form is None and self._form_keys < _FORM_KEYS_MAX and None not in keys:
            self._forms[sign] = _Form(body, header, [key for key in keys if key is not None])
            self._form_keys += len(keys)

    def finish(self) -> None:
        """What was only compared is noted."""
        offsets = self._offsets
        for form in self._forms.values():
            for key, delta in zip(form.keys, form.deltas, strict=True):
                offset = form.base_offset + delta
                offsets[key] = max(offsets[key], offset)
        self._forms.clear()
        self._seen.clear()

    def find(self, key: bytes) -> int:
        """-1 where the key was not seen."""
        return self._offsets.get(_shorten(key), -1)

    def values(self) -> Iterable[int]:
        return self._offsets.values()

    def _note_each(
        self, chunk: bytes, position: int, header: BatchHeader
    ) -> list[tuple[bytes, int] | None]:
        """Its keys as they are held here, each with its place in the batch; None for none."""
        if header.codec is Codec.NONE:
            pairs = read_keys(chunk, position, header)
        else:
            records = iter_records(chunk, position, check_crc=False)
            pairs = [(record.key, record.offset) for record in records]
        held: list[tuple[bytes, int] | None] = []
        for key, offset in pairs:
            if key is None:
                held.append(None)
                continue
            short = _shorten(key)
            held.append((short, offset - header.base_offset))
            if offset >= self._first:
                self._offsets[short] = offset
        return held


class _Form:
    """All of a batch but its values: whoever fits has the same keys in the same places."""

    __slots__ = ("_expected", "_mask", "base_offset", "deltas", "keys")

    def __init__(self, body: bytes, header: BatchHeader, keys: list[tuple[bytes, int]]) -> None:
        mask = bytearray(b"\xff" * len(body))
        for start, end in find_values(body, header.record_count):
            mask[start:end] = bytes(end - start)
        self._mask = int.from_bytes(mask)
        self._expected = int.from_bytes(body) & self._mask
        self.keys = tuple(key for key, _ in keys)
        self.deltas = tuple(delta for _, delta in keys)
        self.base_offset = header.base_offset

    def fits(self, body: bytes) -> bool:
        """`body` has the size of the first one."""
        return int.from_bytes(body) & self._mask == self._expected


def _shorten(key: bytes) -> bytes:
    if len(key) <= _KEY_BYTES_MAX:
        return key
    return hashlib.blake2b(key, digest_size=_KEY_BYTES_MAX + 1).digest()
