"""Records as a program gets them, and the loop that makes them from a batch's bytes.

The loop is the consumer's inner one: it is written for speed and takes only what nearly all batches
are, with a record for each offset and sizes that agree. Whatever it doubts is read again by the
wire's own careful reader, whose word counts.
"""

from collections.abc import Callable
from textwrap import indent
from typing import Any, Final, TypeAlias

from kohort import types
from kohort.client.topic_partition import TopicPartition
from kohort.types import Millis, Offset, Partition, Topic
from kohort.wire.batch_header import LOG_APPEND_TIME_FLAG, BatchHeader, TimestampType
from kohort.wire.records import read_records
from kohort.wire.varint import read_varint, read_varlong

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]


@types.value
class ConsumerRecord:
    """One record, where it was, and what it says."""

    topic: Topic
    partition: Partition
    offset: Offset
    timestamp: Millis
    """Since the epoch; -1 where there is none."""
    timestamp_type: TimestampType
    """Whose clock: its producer's or its broker's."""
    key: Any
    """Bytes or None, unless there is a key.deserializer."""
    value: Any
    """Bytes or None, unless there is a value.deserializer."""
    headers: Headers
    """Keys may repeat, and their order is kept."""
    leader_epoch: int
    """Of the leader that took it; -1 where it is not known."""


_DENSE_MAX: Final = 1 << 27
"""More records than this have not been seen in one batch; the careful reader takes any number."""


class BatchReader:
    """Reads the records of one batch, some at a time: what is small stays in the caches."""

    __slots__ = ("_buf", "_careful", "_end", "_header", "_index", "_partition", "_pos", "_start")

    def __init__(
        self, buf: bytes, bounds: tuple[int, int], header: BatchHeader, partition: TopicPartition
    ) -> None:
        """The records lie within the bounds, decompressed."""
        self._buf = buf
        self._start, self._end = bounds
        self._pos = self._start
        self._header = header
        self._partition = partition
        self._index = 0
        is_dense = header.record_count == header.last_offset_delta + 1 <= _DENSE_MAX
        self._careful: list[ConsumerRecord] | None = None if is_dense else self._read_carefully()

    @property
    def left(self) -> int:
        """How many are still to be read."""
        count = self._header.record_count if self._careful is None else len(self._careful)
        return count - self._index

    def read(self, count: int) -> list[ConsumerRecord]:
        """The next ones, at most so many; MalformedMessage where they are not what they claim."""
        start = self._index
        stop = start + min(count, self.left)
        records = None
        if self._careful is None:
            records = self._read_fast(start, stop)
        if records is None:
            if self._careful is None:
                self._careful = self._read_carefully()
            records = self._careful[start:stop]
        self._index = stop
        return records

    def _read_fast(self, start: int, stop: int) -> list[ConsumerRecord] | None:
        """None in any doubt."""
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
        # Each record has ended where it says, so if one goes beyond the batch, the last one does.
        if pos > self._end or (stop == header.record_count and pos != self._end):
            return None
        self._pos = pos
        return records

    def _read_carefully(self) -> list[ConsumerRecord]:
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
                headers=tuple((note.key, note.value) for note in each.headers),
                leader_epoch=header.partition_leader_epoch,
            )
            for each in read
        ]


# The loop. It is put together from text, because a call for every number would cost more than all
# the rest: numbers of up to two bytes are read in place. They are zigzagged, so that an odd one is
# negative; looking up what they mean is quicker than working it out.

_TWO_BYTES: Final = 1 << 14

_SIZES: Final[list[int | None]] = [None if n & 1 else n >> 1 for n in range(_TWO_BYTES)]
"""What a length means; a negative one means nothing, but for -1, which is null."""
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
    else:  # which two bytes cannot hold, so there are more
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
pos += 1  # attributes, of which none has a meaning yet
{delta}
if delta != last:
    last = delta
    timestamp = {timestamp}
pos += width  # the offset's delta, which is known
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
    exec(_LOOP.format(record=indent(record, " " * 12)), names)  # noqa: S102  # our own text
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
"""How many bytes the delta of an offset takes, from which one on and up to which."""
