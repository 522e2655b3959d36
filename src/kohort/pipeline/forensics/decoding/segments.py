"""A segment file becomes Arrow batches with the columns of bronze, some megabytes at a time.

Every batch is checked against its checksum. A log that is still written to may end within a batch:
`find_end` tells how much of its last segment is sound. Anything else that is not sound is damage,
and is refused with the file and the position. Memory holds one window, and one large batch.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kohort.pipeline import kernel
from kohort.pipeline.decode import gather, moments
from kohort.pipeline.errors import PipelineError
from kohort.pipeline.forensics.decoding.files import Segment, open_segment, read_segment
from kohort.types import value
from kohort.wire import batch, compression
from kohort.wire.batch_header import CODEC_MASK, HEADER_BYTES, LENGTH_END, peek_whole, verify_crc
from kohort.wire.compression import Codec
from kohort.wire.errors import MalformedMessage

WINDOW_BYTES: Final = 4 * 1024 * 1024
"""How much of a file is read and decoded at once; bounds what a task needs of memory."""

TORN_BYTES_MAX: Final = 64 * 1024 * 1024
"""The most that can be torn off: more than a broker ever writes without a sync of its own."""

_PIECE_BYTES_MAX: Final = 64 * 1024 * 1024
"""How much compressed batches may grow to before they are handed on."""

SCHEMA: Final = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
    ]
)


class DamagedLog(PipelineError):
    """A file is not what its broker wrote; there is no telling what is missing."""


class _Unsound(Exception):
    """Where a segment stops making sense, and why."""

    def __init__(self, position: int, reason: str, *, may_be_torn: bool = True) -> None:
        super().__init__(reason)
        self.position = position
        self.reason = reason
        self.may_be_torn = may_be_torn


@value
class Window:
    """Whole batches in a row, where in the file they begin, and a row of `kernel.walk` for each."""

    position: int
    content: bytes
    batches: kernel.Numbers


@value
class End:
    """How much of a segment can be used; the reason is None if that is all of it."""

    size: int
    reason: str | None


def windows(segment: Segment, *, checks_crcs: bool = True) -> Iterator[Window]:
    """All batches of a segment; DamagedLog where one is not sound."""
    try:
        yield from _windows(segment, checks_crcs=checks_crcs)
    except _Unsound as unsound:
        raise _damage(segment, unsound) from None


def find_end(segment: Segment) -> End:
    """How much of the last segment of a log is sound: of a live one, the rest may be torn off.

    Where anything sound follows what is not, it is damage and no torn end.
    """
    try:
        for _ in _windows(segment, checks_crcs=True):
            pass
    except _Unsound as unsound:
        torn = segment.size - unsound.position
        if not unsound.may_be_torn or torn > TORN_BYTES_MAX:
            raise _damage(segment, unsound) from None
        rest = read_segment(segment, unsound.position, torn)
        if kernel.find_sound(_view(rest), 1) >= 0:
            raise _damage(segment, unsound) from None
        return End(size=unsound.position, reason=unsound.reason)
    return End(size=segment.size, reason=None)


@value
class Found:
    """Records as `kernel.scan` describes them, and the bytes it speaks of."""

    buffer: bytes
    records: kernel.Numbers

    def arrow(self, segment: Segment) -> pa.RecordBatch:
        records, count = self.records, self.records.shape[1]
        key, content = gather(self.buffer, records[kernel.KEY_AT : kernel.VALUE_SIZE + 1])
        columns = [
            pa.repeat(pa.scalar(segment.topic), count),
            pa.repeat(pa.scalar(segment.partition, pa.int32()), count),
            pa.array(records[kernel.OFFSET]),
            moments(records[kernel.TIME]),
            key,
            content,
        ]
        return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def records_of(segment: Segment, window: Window, wanted: kernel.Numbers) -> Iterator[Found]:
    """The records of the wanted batches of a window."""
    for buffer, batches in _lay_out(segment, window, wanted):
        records = np.empty(
            (kernel.RECORD_ROWS, int(batches[:, kernel.COUNT].sum())), dtype=np.int64
        )
        count = kernel.scan(_view(buffer), batches, segment.first, segment.stop, records)
        if count < 0:
            _refuse_batch(segment, window, batches[-1 - count])
        yield Found(buffer=buffer, records=records[:, :count])


def _windows(segment: Segment, *, checks_crcs: bool) -> Iterator[Window]:
    position, content = 0, b""
    with open_segment(segment) as stream:
        while position < segment.size:
            left = segment.size - position - len(content)
            size = max(WINDOW_BYTES, _batch_size(position, content)) - len(content)
            piece = stream.read(min(size, left))
            if left and not piece:
                raise _Unsound(position, f"the file is {left} bytes shorter than it was")
            content += piece
            batches = np.empty((len(content) // HEADER_BYTES, kernel.WALK_COLUMNS), dtype=np.int64)
            count, end = kernel.walk(_view(content), batches, checks_crcs)
            if count:
                yield Window(position=position, content=content[:end], batches=batches[:count])
            elif len(content) >= _batch_size(position, content) or len(piece) == left:
                _explain(position, content)
            position, content = position + end, content[end:]


def _batch_size(position: int, content: bytes) -> int:
    """How large the batch that begins here says it is; no more than a header if it cannot say."""
    if len(content) < HEADER_BYTES:
        return HEADER_BYTES
    size = LENGTH_END + int.from_bytes(content[8:LENGTH_END], signed=True)
    if content[16] in (0, 1) and size > LENGTH_END:
        reason = f"magic {content[16]} is not supported: it was written before Kafka 0.11"
        raise _Unsound(position, reason, may_be_torn=False)
    return max(size, HEADER_BYTES) if content[16] == 2 else HEADER_BYTES


def _explain(position: int, content: bytes) -> NoReturn:
    """The careful reader says what is wrong. If it finds nothing, the kernel is what is wrong."""
    try:
        verify_crc(content, 0, peek_whole(content))
    except MalformedMessage as error:
        raise _Unsound(position, f"{error.field}: {error.reason}") from None
    raise AssertionError(f"the kernel refused a sound batch at position {position}")


def _damage(segment: Segment, unsound: _Unsound) -> DamagedLog:
    return DamagedLog(f"{segment.path}: damaged at position {unsound.position}: {unsound.reason}")


def _lay_out(
    segment: Segment, window: Window, wanted: kernel.Numbers
) -> Iterator[tuple[bytes, kernel.Numbers]]:
    """The wanted batches where their records can be read: in place, or decompressed."""
    if not (wanted[:, kernel.ATTRIBUTES] & CODEC_MASK).any():
        if len(wanted):
            yield window.content, wanted
        return
    for rows in _shares(segment, window, wanted):
        pieces = [piece for _, piece in rows]
        batches = np.array([row for row, _ in rows], dtype=np.int64)
        ends = np.cumsum([len(piece) for piece in pieces])
        batches[:, kernel.START] = ends - [len(piece) for piece in pieces]
        batches[:, kernel.END] = ends
        yield b"".join(pieces), batches


def _shares(
    segment: Segment, window: Window, wanted: Iterable[kernel.Numbers]
) -> Iterator[list[tuple[kernel.Numbers, bytes]]]:
    share: list[tuple[kernel.Numbers, bytes]] = []
    size = 0
    for row in wanted:
        body = window.content[row[kernel.START] : row[kernel.END]]
        codec = Codec(int(row[kernel.ATTRIBUTES]) & CODEC_MASK)
        try:
            piece = compression.decompress(codec, body)
        except MalformedMessage as error:
            at = window.position + int(row[kernel.POSITION])
            raise _damage(segment, _Unsound(at, error.reason)) from None
        share.append((row, piece))
        size += len(piece)
        if size >= _PIECE_BYTES_MAX:
            yield share
            share, size = [], 0
    if share:
        yield share


def _refuse_batch(segment: Segment, window: Window, guilty: kernel.Numbers) -> NoReturn:
    at = int(guilty[kernel.POSITION])
    try:
        batch.decode(window.content, at, check_crc=False)
    except MalformedMessage as error:
        reason = f"{error.field}: {error.reason}"
        raise _damage(segment, _Unsound(window.position + at, reason)) from None
    raise AssertionError(f"the kernel refused a sound batch at {window.position + at}")


def _view(content: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(content, dtype=np.uint8)
