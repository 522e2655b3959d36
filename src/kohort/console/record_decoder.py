"""Decodes the records of a batch for display, with little memory. Pure.

A small compressed batch can hold gigabytes: long values, millions of records or headers. So the
decompressed size has a limit, records are decoded one by one, and of each field only the bytes that
are shown are copied. `wire.records` decodes whole records, which is faster.
"""

from collections.abc import Iterator
from typing import Final

from kohort.types import Millis, Offset, value
from kohort.wire import compression
from kohort.wire.batch_header import HEADER_BYTES, BatchHeader, TimestampType, verify_crc
from kohort.wire.compression import Codec
from kohort.wire.errors import MalformedMessage
from kohort.wire.varint import read_varint, read_varlong

DECOMPRESSED_BYTES_MAX: Final = 16 * 1024 * 1024
"""Of one batch. A batch of the default largest size, 1 MB, that was compressed to a tenth fits."""

SHOWN_BYTES: Final = 2_048
HEADERS_MAX: Final = 50
HEADER_NAME_BYTES_MAX: Final = 256


@value
class ShownBytes:
    """Bytes formatted as text or hexadecimal."""

    text: str
    is_text: bool
    """False: hexadecimal."""
    size: int
    is_cut: bool


@value
class DecodedRecord:
    """A record whose long fields are truncated."""

    offset: Offset
    timestamp_ms: Millis | None
    key: ShownBytes | None
    value: ShownBytes | None
    headers: tuple[tuple[str, ShownBytes | None], ...]


def decompress(content: bytes, position: int, header: BatchHeader) -> bytes:
    """The records of the batch at this position. Raises MalformedMessage, and TooLarge if they
    exceed DECOMPRESSED_BYTES_MAX."""
    verify_crc(content, position, header)
    body = content[position + HEADER_BYTES : position + header.size_in_bytes]
    # Compaction leaves an empty batch without any bytes, not even an empty compressed stream.
    if header.codec is Codec.NONE or not body:
        return body
    return compression.decompress(header.codec, body, DECOMPRESSED_BYTES_MAX)


def decode_records(body: bytes, header: BatchHeader, first: Offset) -> Iterator[DecodedRecord]:
    """The records of a batch from an offset on. Raises MalformedMessage."""
    # Without gaps, the place of a record in the batch is its offset delta: skip without decoding.
    is_dense = header.record_count == header.last_offset_delta + 1
    skipped = first - header.base_offset if is_dense else 0
    position = index = 0
    try:
        for index in range(header.record_count):
            start, position = _find_record(body, position)
            if index >= skipped:
                timestamp_delta, at = read_varlong(body, start + 1)
                offset_delta, at = read_varint(body, at)
                offset = Offset(header.base_offset + offset_delta)
                if offset >= first:
                    yield _decode_record(body, at, header, offset, timestamp_delta)
    except (IndexError, ValueError) as error:
        raise MalformedMessage("RecordBatch", f"records[{index}]", position, str(error)) from None


def _find_record(body: bytes, position: int) -> tuple[int, int]:
    """Where the content of the record at this position starts, and where it ends."""
    length, start = read_varint(body, position)
    if not 0 <= length <= len(body) - start:
        raise ValueError(f"a record of {length} bytes, but {len(body) - start} are left")
    return start, start + length


def _decode_record(
    body: bytes, position: int, header: BatchHeader, offset: Offset, timestamp_delta: int
) -> DecodedRecord:
    key, position = _read_bytes(body, position)
    content, position = _read_bytes(body, position)
    count, position = read_varint(body, position)
    headers = []
    for _ in range(min(count, HEADERS_MAX)):
        length, position = read_varint(body, position)
        name = body[position : position + min(max(0, length), HEADER_NAME_BYTES_MAX)]
        header_value, position = _read_bytes(body, position + max(0, length))
        headers.append((name.decode(errors="replace"), header_value))
    is_append_time = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    timestamp = header.max_timestamp if is_append_time else header.base_timestamp + timestamp_delta
    return DecodedRecord(
        offset=offset,
        timestamp_ms=None if timestamp < 0 else Millis(timestamp),
        key=key,
        value=content,
        headers=tuple(headers),
    )


def _read_bytes(body: bytes, position: int) -> tuple[ShownBytes | None, int]:
    size, position = read_varint(body, position)
    if size < 0:
        return None, position
    if size > len(body) - position:
        raise ValueError(f"a field of {size} bytes, but {len(body) - position} are left")
    return show(body[position : position + min(size, SHOWN_BYTES)], size), position + size


def show(data: bytes, size: int) -> ShownBytes:
    """`data` are the first bytes of a field of this size."""
    text = _find_text(data)
    return ShownBytes(
        text=data.hex(" ") if text is None else text,
        is_text=text is not None,
        size=size,
        is_cut=size > len(data),
    )


def _find_text(data: bytes) -> str | None:
    """The text, if it is UTF-8 without control or bidirectional characters."""
    for cut in range(4):
        try:
            text = data[: len(data) - cut].decode()
        except UnicodeDecodeError:
            # The truncation may have split a character.
            if len(data) < SHOWN_BYTES:
                return None
            continue
        is_plain = all(char.isprintable() or char in "\n\r\t" for char in text)
        return text if is_plain else None
    return None
