"""Decode a segment file into Arrow batches with the columns of bronze, a few megabytes at a time.

The checksum of every batch is verified. A log that is still being written may end within a batch:
`find_end` returns the valid part of its last segment. Any other invalid batch is damage, reported
with file and position. Memory holds one window and one large batch.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kohort.pipeline import kernel
from kohort.pipeline.decode import gather, timestamps
from kohort.pipeline.errors import PipelineError
from kohort.pipeline.forensics import tables
from kohort.pipeline.forensics.decoders.batches import schema_of
from kohort.pipeline.forensics.decoders.segment_files import SegmentFile, open_segment, read_segment
from kohort.types import value
from kohort.wire import batch, compression
from kohort.wire.batch_header import CODEC_MASK, HEADER_BYTES, LENGTH_END, peek_whole, verify_crc
from kohort.wire.compression import Codec
from kohort.wire.errors import MalformedMessage

WINDOW_BYTES: Final = 4 * 1024 * 1024
"""The amount of a file that is read and decoded at once; limits the memory of a task."""

TORN_BYTES_MAX: Final = 64 * 1024 * 1024
"""The largest incomplete end: more than a broker writes between two syncs."""

_PIECE_BYTES_MAX: Final = 64 * 1024 * 1024
"""The size of decompressed batches that are decoded together."""

SCHEMA: Final = schema_of(tables.RECORDS)


class DamagedLog(PipelineError):
    """A segment file is damaged; the amount of lost data is unknown."""


class _InvalidBatch(Exception):
    """The position of the first invalid batch, and the reason."""

    def __init__(self, position: int, reason: str, *, may_be_torn: bool = True) -> None:
        super().__init__(reason)
        self.position = position
        self.reason = reason
        self.may_be_torn = may_be_torn


@value
class Window:
    """Consecutive complete batches, their file position, and a row of `kernel.walk` for each."""

    position: int
    content: bytes
    batches: kernel.Numbers


@value
class ValidEnd:
    """The size of the valid part of a segment; the reason is None if all of it is valid."""

    size: int
    reason: str | None


def windows(segment: SegmentFile, *, checks_crcs: bool = True) -> Iterator[Window]:
    """All batches of a segment; raises DamagedLog at an invalid one."""
    try:
        yield from _windows(segment, checks_crcs=checks_crcs)
    except _InvalidBatch as invalid:
        raise _damage(segment, invalid) from None


def find_end(segment: SegmentFile) -> ValidEnd:
    """The valid part of the last segment of a log; its end may be incomplete.

    If a valid batch follows an invalid one, the segment is damaged.
    """
    try:
        for _ in _windows(segment, checks_crcs=True):
            pass
    except _InvalidBatch as invalid:
        torn = segment.size - invalid.position
        if not invalid.may_be_torn or torn > TORN_BYTES_MAX:
            raise _damage(segment, invalid) from None
        rest = read_segment(segment, invalid.position, torn)
        if kernel.find_valid(_view(rest), 1) >= 0:
            raise _damage(segment, invalid) from None
        return ValidEnd(size=invalid.position, reason=invalid.reason)
    return ValidEnd(size=segment.size, reason=None)


@value
class ScannedRecords:
    """Records as found by `kernel.scan`, and their bytes."""

    buffer: bytes
    records: kernel.Numbers

    def arrow(self, segment: SegmentFile) -> pa.RecordBatch:
        records, count = self.records, self.records.shape[1]
        key, content = gather(self.buffer, records[kernel.KEY_AT : kernel.VALUE_SIZE + 1])
        columns = [
            pa.repeat(pa.scalar(segment.topic), count),
            pa.repeat(pa.scalar(segment.partition, pa.int32()), count),
            pa.array(records[kernel.OFFSET]),
            timestamps(records[kernel.TIME]),
            key,
            content,
        ]
        return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def records_of(
    segment: SegmentFile, window: Window, wanted: kernel.Numbers
) -> Iterator[ScannedRecords]:
    """The records of the wanted batches of a window."""
    for buffer, batches in _lay_out(segment, window, wanted):
        records = np.empty(
            (kernel.RECORD_ROWS, int(batches[:, kernel.COUNT].sum())), dtype=np.int64
        )
        count = kernel.scan(_view(buffer), batches, segment.first, segment.stop, records)
        if count < 0:
            _refuse_batch(segment, window, batches[-1 - count])
        yield ScannedRecords(buffer=buffer, records=records[:, :count])


def _windows(segment: SegmentFile, *, checks_crcs: bool) -> Iterator[Window]:
    position, content = 0, b""
    with open_segment(segment) as stream:
        while position < segment.size:
            left = segment.size - position - len(content)
            size = max(WINDOW_BYTES, _batch_size(position, content)) - len(content)
            piece = stream.read(min(size, left))
            if left and not piece:
                raise _InvalidBatch(position, f"the file is {left} bytes shorter than it was")
            content += piece
            batches = np.empty((len(content) // HEADER_BYTES, kernel.WALK_COLUMNS), dtype=np.int64)
            count, end = kernel.walk(_view(content), batches, checks_crcs)
            if count:
                yield Window(position=position, content=content[:end], batches=batches[:count])
            elif len(content) >= _batch_size(position, content) or len(piece) == left:
                _explain(position, content)
            position, content = position + end, content[end:]


def _batch_size(position: int, content: bytes) -> int:
    """The size in the header of the batch that starts here; the header size if it is invalid."""
    if len(content) < HEADER_BYTES:
        return HEADER_BYTES
    size = LENGTH_END + int.from_bytes(content[8:LENGTH_END], signed=True)
    if content[16] in (0, 1) and size > LENGTH_END:
        reason = f"magic {content[16]} is not supported: it was written before Kafka 0.11"
        raise _InvalidBatch(position, reason, may_be_torn=False)
    return max(size, HEADER_BYTES) if content[16] == 2 else HEADER_BYTES


def _explain(position: int, content: bytes) -> NoReturn:
    """Raise the error that kohort.wire finds. If it finds none, the kernel has a bug."""
    try:
        verify_crc(content, 0, peek_whole(content))
    except MalformedMessage as error:
        raise _InvalidBatch(position, f"{error.field}: {error.reason}") from None
    raise AssertionError(f"the kernel rejected a valid batch at position {position}")


def _damage(segment: SegmentFile, invalid: _InvalidBatch) -> DamagedLog:
    return DamagedLog(f"{segment.path}: damaged at position {invalid.position}: {invalid.reason}")


def _lay_out(
    segment: SegmentFile, window: Window, wanted: kernel.Numbers
) -> Iterator[tuple[bytes, kernel.Numbers]]:
    """The wanted batches in place or decompressed, with the positions of their records."""
    if not (wanted[:, kernel.ATTRIBUTES] & CODEC_MASK).any():
        if len(wanted):
            yield window.content, wanted
        return
    for rows in _decompressed(segment, window, wanted):
        pieces = [piece for _, piece in rows]
        batches = np.array([row for row, _ in rows], dtype=np.int64)
        ends = np.cumsum([len(piece) for piece in pieces])
        batches[:, kernel.START] = ends - [len(piece) for piece in pieces]
        batches[:, kernel.END] = ends
        yield b"".join(pieces), batches


def _decompressed(
    segment: SegmentFile, window: Window, wanted: Iterable[kernel.Numbers]
) -> Iterator[list[tuple[kernel.Numbers, bytes]]]:
    group: list[tuple[kernel.Numbers, bytes]] = []
    size = 0
    for row in wanted:
        body = window.content[row[kernel.START] : row[kernel.END]]
        codec = Codec(int(row[kernel.ATTRIBUTES]) & CODEC_MASK)
        try:
            piece = compression.decompress(codec, body)
        except MalformedMessage as error:
            at = window.position + int(row[kernel.POSITION])
            raise _damage(segment, _InvalidBatch(at, error.reason)) from None
        group.append((row, piece))
        size += len(piece)
        if size >= _PIECE_BYTES_MAX:
            yield group
            group, size = [], 0
    if group:
        yield group


def _refuse_batch(segment: SegmentFile, window: Window, bad: kernel.Numbers) -> NoReturn:
    at = int(bad[kernel.POSITION])
    try:
        batch.decode(window.content, at, check_crc=False)
    except MalformedMessage as error:
        reason = f"{error.field}: {error.reason}"
        raise _damage(segment, _InvalidBatch(window.position + at, reason)) from None
    raise AssertionError(f"the kernel rejected a valid batch at {window.position + at}")


def _view(content: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(content, dtype=np.uint8)
