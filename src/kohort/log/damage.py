"""Damaged batches of a segment file: how they are described, and where the next valid batch is.

The checksum of a batch does not cover its base offset, length, leader epoch and magic. A damaged
length hides the batches after it, and a damaged base offset moves records to other offsets. So a
batch is checked against its neighbours too. Nothing here changes a file.
"""

from struct import Struct
from typing import Final, TypeAlias

from kohort.log.disk import File
from kohort.log.errors import CorruptFile
from kohort.log.limits import LEADER_EPOCH, READ_BYTES
from kohort.types import Millis, Offset, value
from kohort.wire.batch_header import (
    ATTRIBUTES_AT,
    HEADER_BYTES,
    LENGTH_END,
    MAGIC,
    BatchHeader,
    checksum,
    peek,
    verify_crc,
)
from kohort.wire.errors import MalformedMessage

BatchInfo: TypeAlias = tuple[int, int, Offset, Offset, Millis]
"""Position, size, base offset, last offset and max timestamp of a batch. The timestamp is
NO_TIMESTAMP if compaction has removed all records."""

EPOCH_AND_MAGIC: Final = Struct(">ib").pack(LEADER_EPOCH, MAGIC)
"""Bytes 12 to 16 of every batch header."""

unpack_header: Final = Struct(">qi5s6xi8xq14xi").unpack_from
"""Base offset, length, leader epoch with magic, last offset delta, max timestamp and record count
of a batch header."""

NEARBY_BYTES: Final = 4096 + HEADER_BYTES
"""Index entries are about 4096 bytes apart by default, so one read usually finds the batch."""

_LINKS: Final = Struct(">qi5s6xi")
"""Base offset, length, leader epoch with magic, and last offset delta of a batch header."""

_LINKS_AND_CRC: Final = Struct(">qi5sI2xi")

_LENGTH_MIN: Final = HEADER_BYTES - LENGTH_END


@value
class DamagedRange:
    """Bytes of a segment file that contain no valid batch."""

    position: int
    end: int
    first_offset: Offset
    next_offset: Offset | None
    """The base offset of the next valid batch; None if there is none in this segment."""
    reason: str

    def has(self, offset: int) -> bool:
        return self.first_offset <= offset and (
            self.next_offset is None or offset < self.next_offset
        )

    def describe(self) -> str:
        if self.next_offset is None:
            return f"offsets from {self.first_offset} to the end of the segment: {self.reason}"
        return f"offsets {self.first_offset} to {self.next_offset - 1}: {self.reason}"


class BadBatch(CorruptFile):
    """A batch is invalid, or does not follow the one before."""

    def __init__(
        self,
        path: str,
        position: int,
        reason: str,
        *,
        expected: Offset,
        base_offset: Offset | None = None,
        previous: BatchInfo | None = None,
        previous_expected: Offset = Offset(0),  # a number
    ) -> None:
        """`expected` is the lowest offset that the batch may have. `base_offset` is the one that
        it has, if its header is otherwise plausible."""
        super().__init__(path, f"read at {position}", reason)
        self.position = position
        self.expected = expected
        self.base_offset = base_offset
        self.previous = previous
        self.previous_expected = previous_expected


def is_chain(data: bytes, expected: int, limit: int | None) -> bool:
    """Whether the batches in `data` have plausible headers, and offsets without gaps below `limit`.
    The last batch may be truncated. Written for speed: no checksum is computed."""
    position, end = 0, len(data) - HEADER_BYTES
    unpack = _LINKS.unpack_from
    while position <= end:
        base_offset, length, tag, delta = unpack(data, position)
        if base_offset != expected or tag != EPOCH_AND_MAGIC or length < _LENGTH_MIN or delta < 0:
            return False
        expected = base_offset + delta + 1
        position += LENGTH_END + length
    return limit is None or expected <= limit


def measure_valid(data: bytes, expected: int, limit: int | None) -> tuple[int, Offset]:
    """The size of the whole batches at the start of `data` that are valid, checksums included, and
    the offset after the last of them."""
    position, end = 0, len(data)
    unpack = _LINKS_AND_CRC.unpack_from
    view = memoryview(data)
    while end - position >= HEADER_BYTES:
        base_offset, length, tag, crc, delta = unpack(data, position)
        stop = position + LENGTH_END + length
        if (
            base_offset < expected
            or tag != EPOCH_AND_MAGIC
            or not _LENGTH_MIN <= length <= end - position - LENGTH_END
            or delta < 0
            or checksum(view[position + ATTRIBUTES_AT : stop]) != crc
        ):
            break
        next_offset = base_offset + delta + 1
        if limit is not None and next_offset > limit:
            break
        position, expected = stop, next_offset
    return position, Offset(expected)


class DamageFinder:
    """Examines one segment file of `size` bytes. `limit` is the base offset of the next segment."""

    def __init__(self, file: File, size: int, limit: Offset | None) -> None:
        self._file = file
        self._size = size
        self._limit = limit

    def find(self, bad: BadBatch) -> DamagedRange:
        """The damaged range at a bad batch. It starts with the batch before if that one is to
        blame: its length or its base offset may be wrong."""
        position, first, reason = bad.position, bad.expected, bad.reason
        if bad.previous is not None:
            at, _, base_offset, _, _ = bad.previous
            is_displaced = (
                bad.base_offset is not None
                and bad.previous_expected <= bad.base_offset < bad.expected
                and bad.previous_expected < base_offset
                and self.find_header(bad.position, bad.previous_expected) is not None
            )
            if is_displaced or self.find_header(at, 0) is None:
                position, first = at, bad.previous_expected
                reason = (
                    f"the base offset {base_offset} is too high"
                    if is_displaced
                    else "the checksum of the batch is wrong"
                )
        end, next_offset = self._find_next(position, first)
        return DamagedRange(
            position=position, end=end, first_offset=first, next_offset=next_offset, reason=reason
        )

    def find_header(self, position: int, offset_min: int) -> BatchHeader | None:
        """The header of the batch at a position, or None if there is no valid batch."""
        try:
            header = peek(self._file.read(position, HEADER_BYTES))
            if (
                header.size_in_bytes > self._size - position
                or header.partition_leader_epoch != LEADER_EPOCH
                or header.base_offset < offset_min
                or (self._limit is not None and header.next_offset > self._limit)
            ):
                return None
            verify_crc(self._file.read(position, header.size_in_bytes), 0, header)
        except MalformedMessage:
            return None
        return header

    def _find_next(self, position: int, offset_min: int) -> tuple[int, Offset | None]:
        """The position and base offset of the first valid batch after a damaged one."""
        # Its length is usually right. The search below could find a batch inside a record.
        start = self._file.read(position, HEADER_BYTES)
        if len(start) == HEADER_BYTES:
            base_offset, length, _, delta = _LINKS.unpack_from(start)
            follows = position + LENGTH_END + length
            if position < follows < self._size:
                header = self.find_header(follows, offset_min)
                if header is not None and header.base_offset == base_offset + delta + 1:
                    return follows, header.base_offset
        position += 1
        while position < self._size:
            data = self._file.read(position, READ_BYTES)
            at = data.find(EPOCH_AND_MAGIC, LENGTH_END)
            while at >= 0:
                header = self.find_header(position + at - LENGTH_END, offset_min)
                if header is not None:
                    return position + at - LENGTH_END, header.base_offset
                at = data.find(EPOCH_AND_MAGIC, at + 1)
            if len(data) < READ_BYTES:
                break
            position += len(data) - HEADER_BYTES
        return self._size, None
