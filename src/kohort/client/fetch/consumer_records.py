"""ConsumerRecord, and the fast decoder of record batches.

The decoder is the consumer's inner loop. It handles only batches with one record per offset and
consistent sizes, as nearly all are. All others are decoded again by wire.records, which decides
whether they are valid.
"""

from collections.abc import Callable
from textwrap import indent
from typing import Any, Final, TypeAlias

from kohort import types
from kohort.types import Millis, Offset, Partition, Topic, TopicPartition
from kohort.wire.batch_header import LOG_APPEND_TIME_FLAG, BatchHeader, TimestampType
from kohort.wire.records import read_records
from kohort.wire.varint import read_varint, read_varlong

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]


@types.value
class ConsumerRecord:
    """A record with its topic, partition and offset."""

    topic: Topic
    partition: Partition
    offset: Offset
    timestamp: Millis
    """Since the epoch; -1 if there is none."""
    timestamp_type: TimestampType
    """CreateTime (the producer's clock) or LogAppendTime (the broker's)."""
    key: Any
    """Bytes or None, or the result of key.deserializer."""
    value: Any
    """Bytes or None, or the result of value.deserializer."""
    headers: Headers
    """In order; keys may repeat."""
    leader_epoch: int
    """Of the leader that appended the record; -1 if unknown."""


_DENSE_MAX: Final = 1 << 27
"""Limit of the fast decoder: offset deltas of at most four bytes."""


class BatchReader:
    """Decodes one batch in small parts, which stay in the CPU caches."""

    __slots__ = ("_buf", "_decoded", "_end", "_header", "_index", "_partition", "_pos", "_start")

    def __init__(
        self, buf: bytes, bounds: tuple[int, int], header: BatchHeader, partition: TopicPartition
    ) -> None:
        """`buf` holds the decompressed records within `bounds`."""
        self._buf = buf
        self._start, self._end = bounds
        self._pos = self._start
        self._header = header
        self._partition = partition
        self._index = 0
        is_dense = header.record_count == header.last_offset_delta + 1 <= _DENSE_MAX
        self._decoded: list[ConsumerRecord] | None = None if is_dense else self._read_all()

    @property
    def left(self) -> int:
        """The number of records not read yet."""
        count = self._header.record_count if self._decoded is None else len(self._decoded)
        return count - self._index

    def read(self, count: int) -> list[ConsumerRecord]:
        """Up to `count` records; MalformedMessage if the batch is invalid."""
        start = self._index
        stop = start + min(count, self.left)
        records = None
        if self._decoded is None:
            records = self._read_fast(start, stop)
        if records is None:
            if self._decoded is None:
                self._decoded = self._read_all()
            records = self._decoded[start:stop]
        self._index = stop
        return records

    def _read_fast(self, start: int, stop: int) -> list[ConsumerRecord] | None:
        """None if the batch needs the full decoder."""
        buf, header = self._buf, self._header
        base = header.base_offset
        runs = [
            (range(base + max(start, first), base + min(stop, last)), width)
            for width, first, last in _WIDTHS
        ]
        if header.attributes & LOG_APPEND_TIME_FLAG:
            read, timestamp = _read_appended, header.max_timestamp
        else:
            read, timestamp = _read_created, header.base_timestamp
        clock, epoch = header.timestamp_type, header.partition_leader_epoch
        try:
            records, pos = read(buf, self._pos, runs, *self._partition, timestamp, clock, epoch)
        except (IndexError, TypeError, ValueError):
            return None
        # Each record ends where its size says, so the last one shows whether any exceeds the batch.
        if pos > self._end or (stop == header.record_count and pos != self._end):
            return None
        self._pos = pos
        return records

    def _read_all(self) -> list[ConsumerRecord]:
        header, (topic, partition) = self._header, self._partition
        body = self._buf[self._start : self._end]
        read = read_records(body, header, message="RecordBatch", shift=0)
        return [
            ConsumerRecord(
                topic=topic,
                partition=partition,
                offset=each.offset,
                timestamp=each.timestamp,
                timestamp_type=header.timestamp_type,
                key=each.key,
                value=each.value,
                headers=tuple((h.key, h.value) for h in each.headers),
                leader_epoch=header.partition_leader_epoch,
            )
            for each in read
        ]


# The loop is generated, because a function call per varint would cost more than all the rest:
# varints of up to two bytes are decoded inline. Zigzag decoding is a table lookup, which is faster
# than arithmetic.

_TWO_BYTES: Final = 1 << 14

_SIZES: Final[list[int | None]] = [None if n & 1 else n >> 1 for n in range(_TWO_BYTES)]
"""Decoded lengths: -1 is null, other negative ones are invalid."""
_SIZES[1] = -1

_DELTAS: Final = [(n >> 1) ^ -(n & 1) for n in range(_TWO_BYTES)]

_NUMBER: Final = """\
n = body[pos]
pos += 1
if n < 128:
    {name} = {meanings}[n]
else:
    n += (body[pos] << 7) - 128
    pos += 1
    if n < 16384:
        {name} = {meanings}[n]
    else:  # longer than two bytes
        {name}, pos = {read}(body, pos - 2)"""

_BYTES: Final = """\
{size}
if size >= 0:
    size += pos
    record.{name} = body[pos:size]
    pos = size
else:
    record.{name} = None"""

_RECORD: Final = """\
{length}
end = pos + size
pos += 1  # attributes, all unused
{delta}
if delta != last:
    last = delta
    timestamp = {timestamp}
pos += width  # the offset delta, which is known
record = new(ConsumerRecord)
{key}
{value}
if body[pos]:
    record.headers, pos = read_headers(body, pos, end)
else:
    record.headers = ()
    pos += 1
if pos != end:
    raise ValueError
record.topic = topic
record.partition = partition
record.offset = offset
record.timestamp = timestamp
record.timestamp_type = timestamp_type
record.leader_epoch = leader_epoch
add(record)"""

_LOOP: Final = """\
def read(body, pos, runs, topic, partition, base_timestamp, timestamp_type, leader_epoch):
    records = []
    add = records.append
    sizes, deltas = all_sizes, all_deltas
    last = None
    timestamp = base_timestamp
    for offsets, width in runs:
        for offset in offsets:
{record}
    return records, pos"""


def _build_loop(timestamp: str) -> Callable[..., tuple[list[ConsumerRecord], int]]:
    size = _NUMBER.format(name="size", meanings="sizes", read="read_size")
    record = _RECORD.format(
        length=size,
        delta=_NUMBER.format(name="delta", meanings="deltas", read="read_varlong"),
        timestamp=timestamp,
        key=_BYTES.format(size=size, name="key"),
        value=_BYTES.format(size=size, name="value"),
    )
    names: dict[str, Any] = {
        "ConsumerRecord": ConsumerRecord,
        "all_deltas": _DELTAS,
        "all_sizes": _SIZES,
        "new": object.__new__,
        "read_headers": _read_headers,
        "read_size": _read_size,
        "read_varlong": read_varlong,
    }
    exec(_LOOP.format(record=indent(record, " " * 12)), names)  # noqa: S102  # the text above
    loop: Callable[..., tuple[list[ConsumerRecord], int]] = names["read"]
    return loop


def _read_size(buf: bytes, pos: int) -> tuple[int, int]:
    size, pos = read_varint(buf, pos)
    if size < 0:
        raise ValueError
    return size, pos


def _read_headers(body: bytes, pos: int, end: int) -> tuple[Headers, int]:
    count, pos = read_varint(body, pos)
    if not 0 <= count <= (end - pos) // 2:
        raise ValueError
    headers = []
    for _ in range(count):
        length, pos = read_varint(body, pos)
        name_end = pos + length
        size, start = read_varint(body, name_end)
        if length < 0 or size < -1:
            raise ValueError
        name = body[pos:name_end].decode()
        pos = start + max(0, size)
        headers.append((name, None if size == -1 else body[start:pos]))
    return tuple(headers), pos


_read_created: Final = _build_loop("base_timestamp + delta")
_read_appended: Final = _build_loop("base_timestamp")

_WIDTHS: Final = (
    (1, 0, 1 << 6),
    (2, 1 << 6, 1 << 13),
    (3, 1 << 13, 1 << 20),
    (4, 1 << 20, _DENSE_MAX),
)
"""Bytes of an offset delta; the first delta with that size, and the end."""
