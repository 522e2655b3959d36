"""Decode fetched record batches to Arrow batches, without a Python object per record.

This module reads batch headers, checks checksums, decompresses, and drops control batches, aborted
transactions and offsets out of range. The compiled kernel finds the records; Arrow copies them.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kohort.client.errors import CorruptRecordError
from kohort.client.fetch.aborted_transactions import AbortedTransactionFilter
from kohort.pipeline import kernel
from kohort.pipeline.spark_schema import ARROW_HEADER, arrow_schema
from kohort.types import Offset, Partition, Topic, TopicPartition, value
from kohort.wire import batch, compression
from kohort.wire.api.k01_fetch import AbortedTransaction
from kohort.wire.batch_header import (
    HEADER_BYTES,
    BatchHeader,
    TimestampType,
    find_next_offset,
    split,
    verify_crc,
)
from kohort.wire.compression import Codec
from kohort.wire.errors import MalformedMessage

_GROUP_BYTES_MAX: Final = 1024 * 1024
"""Bytes decoded at once, unless a batch is larger. Data in the CPU cache decodes twice as fast."""

_MILLIS_MAX: Final = (2**63 - 1) // 1000
"""The latest timestamp that fits into 64 bits of microseconds."""


@value
class PartitionSlice:
    """Offsets to decode of one partition, from `first` up to but excluding `stop`."""

    topic: Topic
    partition: Partition
    first: Offset
    stop: Offset


class Decoder:
    """Decodes fetch responses to Arrow batches with the columns of Spark's Kafka source."""

    def __init__(
        self, wanted: PartitionSlice, *, includes_headers: bool, check_crcs: bool = True
    ) -> None:
        self._wanted = wanted
        self._includes_headers = includes_headers
        self._check_crcs = check_crcs
        self._schema = arrow_schema(includes_headers=includes_headers)
        self.next_offset = wanted.first
        """The offset of the next fetch."""

    def decode(
        self, content: bytes, aborted: Iterable[AbortedTransaction] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The wanted records; CorruptRecordError after those before a malformed batch.

        With a list of aborted transactions, even an empty one, only committed records are returned.
        """
        filter_ = None if aborted is None else AbortedTransactionFilter(aborted)
        group: list[tuple[int, BatchHeader, bytes | None]] = []
        size = at = 0
        try:
            for position, header in split(content, truncated_ok=True):
                if header.base_offset >= self._wanted.stop:
                    break
                at = position
                body = self._find_body(content, position, header, filter_)
                if body is not None:
                    group.append((position, header, body or None))
                    size += len(body) or header.size_in_bytes
                    if size >= _GROUP_BYTES_MAX:
                        yield from self._decode_group(content, group)
                        group, size = [], 0
                self.next_offset = max(self.next_offset, header.next_offset)
                at = position + header.size_in_bytes
        except MalformedMessage as error:
            yield from self._decode_group(content, group)
            if self.next_offset < self._wanted.stop:
                raise self._corrupt(content, at, self.next_offset, error) from error
            group = []
        yield from self._decode_group(content, group)
        self.next_offset = min(self.next_offset, self._wanted.stop)

    def _find_body(
        self,
        content: bytes,
        position: int,
        header: BatchHeader,
        aborted: AbortedTransactionFilter | None,
    ) -> bytes | None:
        """The decompressed records; b"" if they are not compressed, None to skip the batch."""
        if header.last_offset < self._wanted.first:
            return None
        if self._check_crcs:
            verify_crc(content, position, header)
        if aborted is not None:
            aborted.begin(header)
        if header.is_control:
            if aborted is not None:
                aborted.end(header, batch.decode(content, position, check_crc=False).records)
            return None
        if header.record_count == 0 or (aborted is not None and aborted.covers(header)):
            return None
        if header.codec is Codec.NONE:
            return b""
        body = content[position + HEADER_BYTES : position + header.size_in_bytes]
        return compression.decompress(header.codec, body)

    def _corrupt(
        self, content: bytes, position: int, offset: Offset, error: MalformedMessage
    ) -> CorruptRecordError:
        partition = TopicPartition(self._wanted.topic, self._wanted.partition)
        next_offset = find_next_offset(content, position)
        return CorruptRecordError(partition, offset, str(error), next_offset)

    def _decode_group(
        self, content: bytes, group: list[tuple[int, BatchHeader, bytes | None]]
    ) -> Iterator[pa.RecordBatch]:
        if not group:
            return
        try:
            rows = self._decode_batches(content, group)
        except MalformedMessage as error:
            if len(group) == 1:
                position, header, _ = group[0]
                offset = max(header.base_offset, self._wanted.first)
                raise self._corrupt(content, position, offset, error) from error
            # Return the records before the malformed batch first.
            for each in group:
                yield from self._decode_group(content, [each])
            return
        if rows is not None:
            yield rows

    def _decode_batches(
        self, content: bytes, group: list[tuple[int, BatchHeader, bytes | None]]
    ) -> pa.RecordBatch | None:
        buffer, batches = _join_bodies(content, group)
        records = np.empty(
            (kernel.RECORD_ROWS, int(batches[:, kernel.COUNT].sum())), dtype=np.int64
        )
        view = np.frombuffer(buffer, dtype=np.uint8)
        count = kernel.scan(view, batches, self._wanted.first, self._wanted.stop, records)
        if count < 0:
            _raise_reason(content, group[-1 - count])
        return self._build(buffer, view, group, records, count) if count else None

    def _build(
        self,
        buffer: bytes,
        view: NDArray[np.uint8],
        group: list[tuple[int, BatchHeader, bytes | None]],
        records: kernel.Numbers,
        count: int,
    ) -> pa.RecordBatch:
        wanted = self._wanted
        key, content = gather(buffer, records[kernel.KEY_AT : kernel.VALUE_SIZE + 1, :count])
        columns = [
            key,
            content,
            pa.repeat(pa.scalar(wanted.topic), count),
            pa.repeat(pa.scalar(wanted.partition, pa.int32()), count),
            pa.array(records[kernel.OFFSET, :count]),
            timestamps(records[kernel.TIME, :count]),
            _timestamp_types(group, records[kernel.OFFSET, :count]),
        ]
        if self._includes_headers:
            columns.append(_headers(buffer, view, records, count))
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _join_bodies(
    content: bytes, group: list[tuple[int, BatchHeader, bytes | None]]
) -> tuple[bytes, kernel.Numbers]:
    """One buffer with the records of all batches in order, and the position of each batch."""
    batches = np.empty((len(group), kernel.BATCH_COLUMNS), dtype=np.int64)
    is_in_place = all(body is None for _, _, body in group)
    pieces: list[bytes] = []
    at = 0
    for index, (position, header, body) in enumerate(group):
        start, end = position + HEADER_BYTES, position + header.size_in_bytes
        if not is_in_place:
            pieces.append(content[start:end] if body is None else body)
            start, end = at, at + len(pieces[-1])
            at = end
        is_appended = header.timestamp_type is TimestampType.LOG_APPEND_TIME
        batches[index] = (
            start,
            end,
            header.record_count,
            header.base_offset,
            header.last_offset_delta,
            header.base_timestamp,
            header.max_timestamp if is_appended else -1,
        )
    return (content if is_in_place else b"".join(pieces)), batches


def _raise_reason(content: bytes, rejected: tuple[int, BatchHeader, bytes | None]) -> None:
    """Let the wire decoder report what is wrong. If it finds nothing, the kernel has a bug."""
    position, header, _ = rejected
    batch.decode(content, position, check_crc=False)
    raise AssertionError(
        f"the kernel rejected a valid batch at offset {header.base_offset}; this is a bug in Kohort"
    )


def gather(buffer: bytes, spans: kernel.Numbers) -> tuple[pa.Array, pa.Array]:
    """Two binary columns: the keys and values of records or of headers.

    The buffer is read as one binary array of key, gap, value, gap, and so on: every fourth element
    is a key, and the second after it is its value.
    """
    key_at, key_size, value_at, value_size = spans
    count = spans.shape[1]
    edges = np.empty(4 * count + 1, dtype=np.int32)
    edges[0:-1:4] = key_at
    edges[1::4] = key_at + np.maximum(key_size, 0)
    edges[2::4] = value_at
    edges[3::4] = value_at + np.maximum(value_size, 0)
    edges[-1] = edges[-2] if count else 0
    whole = pa.Array.from_buffers(
        pa.binary(), 4 * count, [None, pa.py_buffer(edges), pa.py_buffer(buffer)]
    )
    return _take(whole, 0, key_size), _take(whole, 2, value_size)


def _take(whole: pa.Array, first: int, sizes: kernel.Numbers) -> pa.Array:
    indices = np.arange(first, len(whole), 4, dtype=np.int64)
    is_null = sizes < 0
    return whole.take(pa.array(indices, mask=is_null if is_null.any() else None))


def timestamps(times: kernel.Numbers) -> pa.Array:
    """Milliseconds to Spark's microseconds. A missing timestamp is -1, as in Spark's own source."""
    return pa.array(np.clip(times, -_MILLIS_MAX, _MILLIS_MAX) * 1000).cast(
        pa.timestamp("us", tz="UTC")
    )


def _timestamp_types(
    group: list[tuple[int, BatchHeader, bytes | None]], offsets: kernel.Numbers
) -> pa.Array:
    kinds = {header.timestamp_type for _, header, _ in group}
    if len(kinds) == 1:
        return pa.repeat(pa.scalar(int(kinds.pop()), pa.int32()), len(offsets))
    bases = np.array([header.base_offset for _, header, _ in group])
    types = np.array([int(header.timestamp_type) for _, header, _ in group], dtype=np.int32)
    return pa.array(types[np.searchsorted(bases, offsets, side="right") - 1])


def _headers(
    buffer: bytes, view: NDArray[np.uint8], records: kernel.Numbers, count: int
) -> pa.Array:
    counts = records[kernel.HEADERS, :count]
    edges = np.zeros(count + 1, dtype=np.int32)
    np.cumsum(counts, out=edges[1:])
    found = np.empty((4, int(edges[-1])), dtype=np.int64)
    outcome = kernel.scan_headers(view, records, count, found)
    if outcome < 0:
        offset = records[kernel.OFFSET, -1 - outcome]
        raise MalformedMessage("RecordBatch", "headers", 0, f"in the record at offset {offset}")
    keys, values = gather(buffer, found)
    # Header names that are not UTF-8 are a producer's error and must not fail the reader.
    pairs = pa.StructArray.from_arrays([_as_text(keys), values], fields=list(ARROW_HEADER))
    lists = pa.ListArray.from_arrays(pa.array(edges), pairs)
    if counts.all():
        return lists
    # A record without headers has null, as in Spark's own source.
    indices = pa.array(np.arange(count), mask=counts == 0)
    return lists.take(indices)


def _as_text(keys: pa.Array) -> pa.Array:
    try:
        return keys.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([each.as_py().decode(errors="replace") for each in keys], pa.string())
