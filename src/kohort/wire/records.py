"""The records of a batch of magic 2.

Decoding checks that every record has exactly its declared length and lies within its batch. The
batch header, the checksum and compression are handled elsewhere.

    length varint, attributes int8, timestamp_delta varlong, offset_delta varint,
    key bytes, value bytes, number of headers varint, and for each header: key string, value bytes
    Bytes and strings have a varint length; -1 is null. The attributes are unused.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NoReturn

from kohort import types
from kohort.types import Millis, Offset
from kohort.wire.batch_header import BatchHeader, TimestampType
from kohort.wire.errors import MalformedMessage, UnencodableMessage
from kohort.wire.varint import (
    VARINT,
    VARLONG,
    continue_uvarint,
    continue_uvarlong,
    read_varint,
    read_varlong,
)


@types.value
class Header:
    """A record header. Keys may repeat, and the order is kept."""

    key: str
    value: bytes | None


@types.value
class NewRecord:
    """A record to encode. Its index in the batch becomes its offset delta."""

    key: bytes | None
    value: bytes | None
    timestamp: Millis
    headers: tuple[Header, ...] = ()


@types.value(kw_only=False)
class Record:
    """A decoded record with its absolute offset and timestamp."""

    offset: Offset
    timestamp: Millis
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


def encode_records(
    records: Iterable[tuple[int, NewRecord | Record]], *, base_timestamp: int
) -> bytes:
    """Encode records, each given with its offset delta."""
    parts: list[bytes] = []
    for index, (offset_delta, record) in enumerate(records):
        key, value, headers = record.key, record.value, record.headers
        try:
            content = b"".join(
                (
                    b"\x00",
                    VARLONG[record.timestamp - base_timestamp],
                    VARINT[offset_delta],
                    _NULL if key is None else VARINT[len(key)] + key,
                    _NULL if value is None else VARINT[len(value)] + value,
                    VARINT[len(headers)],
                    *map(_encode_header, headers),
                )
            )
            parts += (VARINT[len(content)], content)
        except ValueError as error:
            raise UnencodableMessage("RecordBatch", f"records[{index}]", str(error)) from None
    return b"".join(parts)


def encode_record_prefix(key: bytes, value_size: int, offset_delta: int) -> bytes:
    """The bytes before the value of a record whose timestamp delta is 0. NO_HEADERS follows the
    value."""
    start = b"".join((b"\x00\x00", VARINT[offset_delta], VARINT[len(key)], key, VARINT[value_size]))
    return VARINT[len(start) + value_size + len(NO_HEADERS)] + start


def encode_simple_records(pairs: Iterable[tuple[bytes, bytes | None]]) -> bytes:
    """Encode key-value pairs as records without headers, all with timestamp delta 0."""
    parts: list[bytes] = []
    for offset_delta, (key, value) in enumerate(pairs):
        content = b"".join(
            (
                b"\x00\x00",
                VARINT[offset_delta],
                VARINT[len(key)],
                key,
                _NULL if value is None else VARINT[len(value)],
                value or b"",
                b"\x00",
            )
        )
        parts += (VARINT[len(content)], content)
    return b"".join(parts)


_NULL: Final = VARINT[-1]
NO_HEADERS: Final = VARINT[0]


def _encode_header(header: Header) -> bytes:
    key, value = header.key.encode(), header.value
    return VARINT[len(key)] + key + (_NULL if value is None else VARINT[len(value)] + value)


def read_records(  # noqa: C901 - not split, because a call per number is too slow
    body: bytes, header: BatchHeader, *, message: str, shift: int
) -> Iterator[Record]:
    """The records of a batch. Errors report `message` and positions that start at `shift`."""
    # Lengths stay zigzag-encoded; odd means negative. Validation after reading is safe, because
    # positions only increase and slices stop at the end of the body.
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    is_log_append_time = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    offset_max = 2 * header.last_offset_delta
    timestamp: int = header.max_timestamp
    index = start = pos = 0
    try:
        for index in range(header.record_count):  # noqa: B007 - the error names it
            start = pos
            length = body[pos]
            pos += 1
            if length > 127:
                length, pos = continue_uvarint(body, pos, length)
            end = pos + (length >> 1)
            n = body[pos + 1]
            pos += 2
            if n > 127:
                n, pos = continue_uvarlong(body, pos, n)
            if not is_log_append_time:
                timestamp = base_timestamp + ((n >> 1) ^ -(n & 1))
            offset = body[pos]
            pos += 1
            if offset > 127:
                offset, pos = continue_uvarint(body, pos, offset)
            odd = length | offset
            n = body[pos]
            pos += 1
            if n > 127:
                n, pos = continue_uvarint(body, pos, n)
            key = value = None
            if n != 1:
                key = body[pos : pos + (n >> 1)]
                pos += n >> 1
                odd |= n
            n = body[pos]
            pos += 1
            if n > 127:
                n, pos = continue_uvarint(body, pos, n)
            if n != 1:
                value = body[pos : pos + (n >> 1)]
                pos += n >> 1
                odd |= n
            headers, pos = _read_headers(body, pos, end) if body[pos] else ((), pos + 1)
            if pos != end or offset > offset_max or odd & 1:
                _reject()
            at, time = Offset(base_offset + (offset >> 1)), Millis(timestamp)
            yield Record(at, time, key, value, headers)
    except (IndexError, ValueError):
        field, position, reason = find_record_fault(body, start, header.last_offset_delta)
        field = f"records[{index}].{field}"
        raise MalformedMessage(message, field, shift + position, reason) from None
    if left := len(body) - pos:
        reason = f"{left} bytes after the last record"
        raise MalformedMessage(message, "records", shift + pos, reason)


def read_record_keys(
    body: bytes, header: BatchHeader, *, message: str, shift: int
) -> list[tuple[bytes | None, Offset]]:
    """The key and the offset of each record. Values and headers are skipped. Errors are reported
    as by `read_records`."""
    base_offset, offset_max, size = header.base_offset, 2 * header.last_offset_delta, len(body)
    keys: list[tuple[bytes | None, Offset]] = []
    start = pos = 0
    try:
        for _ in range(header.record_count):
            start = pos
            length = body[pos]
            pos += 1
            if length > 127:
                length, pos = continue_uvarint(body, pos, length)
            end = pos + (length >> 1)
            n = body[pos + 1]
            pos += 2
            if n > 127:
                n, pos = continue_uvarlong(body, pos, n)
            offset = body[pos]
            pos += 1
            if offset > 127:
                offset, pos = continue_uvarint(body, pos, offset)
            odd = length | offset
            n = body[pos]
            pos += 1
            if n > 127:
                n, pos = continue_uvarint(body, pos, n)
            key = None
            if n != 1:
                key = body[pos : pos + (n >> 1)]
                pos += n >> 1
                odd |= n
            if not pos < end <= size or offset > offset_max or odd & 1:
                _reject()
            keys.append((key, Offset(base_offset + (offset >> 1))))
            pos = end
    except (IndexError, ValueError):
        field, position, reason = find_record_fault(body, start, header.last_offset_delta)
        field = f"records[{len(keys)}].{field}"
        raise MalformedMessage(message, field, shift + position, reason) from None
    return keys


def find_value_positions(body: bytes, record_count: int) -> Iterator[tuple[int, int]]:
    """The start and end position of each record's value, in valid records."""
    pos = 0
    for _ in range(record_count):
        length, pos = read_varint(body, pos)
        end = pos + length
        at = _skip_varint(body, _skip_varint(body, pos + 1))
        key_length, at = read_varint(body, at)
        value_length, at = read_varint(body, at + max(0, key_length))
        yield at, at + max(0, value_length)
        pos = end


def _skip_varint(body: bytes, pos: int) -> int:
    while body[pos] > 127:
        pos += 1
    return pos + 1


def _read_headers(body: bytes, pos: int, end: int) -> tuple[tuple[Header, ...], int]:
    count, pos = read_varint(body, pos)
    if not 0 <= count <= (end - pos) // 2:
        _reject()
    headers = []
    for _ in range(count):
        length, pos = read_varint(body, pos)
        if length < 0:
            _reject()
        key = body[pos : pos + length].decode()
        length, pos = read_varint(body, pos + length)
        if length < -1:
            _reject()
        value = None if length == -1 else body[pos : pos + length]
        pos += max(0, length)
        headers.append(Header(key=key, value=value))
    return tuple(headers), pos


def _reject() -> NoReturn:
    """Leave the fast path. `find_record_fault` then reads the record again to find the reason."""
    raise ValueError


def find_record_fault(body: bytes, start: int, last_offset_delta: int) -> tuple[str, int, str]:
    """The field, position and reason of the error in the record at `start`."""
    field, at = "length", start
    try:
        end = _skip_bytes(body, at, length_min=0)
        _, pos = read_varint(body, at)
        body = body[:end]
        field, at = "timestamp_delta", pos + 1
        _, pos = read_varlong(body, at)
        field, at = "offset_delta", pos
        delta, pos = read_varint(body, at)
        if not 0 <= delta <= last_offset_delta:
            return field, at, f"{delta} is not between 0 and {last_offset_delta}"
        for name in ("key", "value"):
            field, at = name, pos
            pos = _skip_bytes(body, at, length_min=-1)
        field, at = "headers", pos
        count, pos = read_varint(body, at)
        if not 0 <= count <= (len(body) - pos) // 2:
            return field, at, f"{count} headers do not fit into {len(body) - pos} bytes"
        for number in range(count):
            field, at = f"headers[{number}].key", pos
            pos = _skip_bytes(body, at, length_min=0)
            body[read_varint(body, at)[1] : pos].decode()
            field, at = f"headers[{number}].value", pos
            pos = _skip_bytes(body, at, length_min=-1)
    except IndexError:
        return field, at, "the bytes end within the field"
    except ValueError as error:
        return field, at, str(error)
    return "length", start, f"{len(body) - pos} bytes after the last field of the record"


def _skip_bytes(body: bytes, pos: int, *, length_min: int) -> int:
    length, pos = read_varint(body, pos)
    if not length_min <= length <= len(body) - pos:
        raise ValueError(f"length {length}, but {len(body) - pos} bytes are left")
    return pos + max(0, length)
