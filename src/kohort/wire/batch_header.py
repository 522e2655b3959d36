"""The header of a record batch, 61 bytes: reading it, and the changes that a broker makes in it.

A log needs only the header for the offsets, the checksum and the producer of a batch. Only magic 2
is supported, which Kafka has written since 0.11.

    base_offset int64, batch_length int32, partition_leader_epoch int32, magic int8, crc uint32,
    attributes int16, last_offset_delta int32, base_timestamp int64, max_timestamp int64,
    producer_id int64, producer_epoch int16, base_sequence int32, record_count int32
    The length counts the bytes from the leader epoch on. The checksum covers the bytes from the
    attributes on.
"""

import struct
from collections.abc import Iterator
from enum import IntEnum
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Any, Final, NoReturn, Protocol

from kohort.types import Millis, Offset, ProducerEpoch, ProducerId, value
from kohort.wire.compression import Codec
from kohort.wire.errors import MalformedMessage, UnencodableMessage
from kohort.wire.varint import Buffer

_BEFORE_CRC: Final = ">qiibI"
_COVERED_BY_CRC: Final = ">hiqqqhii"
_HEADER: Final = struct.Struct(_BEFORE_CRC + _COVERED_BY_CRC[1:])
_LINKS: Final = struct.Struct(">qi11xi")
"""Base offset, length and last offset delta."""
_pack_before: Final = struct.Struct(_BEFORE_CRC).pack
_pack_covered: Final = struct.Struct(_COVERED_BY_CRC).pack

HEADER_BYTES: Final = _HEADER.size
LENGTH_END: Final = 12
MAGIC_AT: Final = 16
CRC_AT: Final = 17
ATTRIBUTES_AT: Final = 21
MAX_TIMESTAMP_AT: Final = 35
MAGIC: Final = 2

RECORD_BYTES_MIN: Final = 7
"""The size of a record without key, value and headers: one byte for each of its seven numbers."""

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME_FLAG: Final = 0x08
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20
DELETE_HORIZON_FLAG: Final = 0x40

NO_PARTITION_LEADER_EPOCH: Final = -1
NO_PRODUCER_ID: Final = ProducerId(-1)
NO_PRODUCER_EPOCH: Final = ProducerEpoch(-1)
NO_SEQUENCE: Final = -1
NO_TIMESTAMP: Final = Millis(-1)

_CODEC_MAX: Final = max(Codec)
_OFFSET_MAX: Final = 2**63 - 1


class TimestampType(IntEnum):
    """Whether timestamps are set by the producer or by the broker."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


_TIMESTAMP_TYPES: Final = tuple(TimestampType)


@value(kw_only=False)
class BatchHeader:
    base_offset: Offset
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: Millis
    """The timestamp of the first record, or the delete horizon if there is one (KIP-534)."""
    max_timestamp: Millis
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    base_sequence: int
    record_count: int
    """After compaction there may be fewer records than offsets, or none."""

    @property
    def size_in_bytes(self) -> int:
        return LENGTH_END + self.batch_length

    @property
    def last_offset(self) -> Offset:
        return Offset(self.base_offset + self.last_offset_delta)

    @property
    def next_offset(self) -> Offset:
        return Offset(self.base_offset + self.last_offset_delta + 1)

    @property
    def codec(self) -> Codec:
        return Codec(self.attributes & CODEC_MASK)

    @property
    def timestamp_type(self) -> TimestampType:
        return _TIMESTAMP_TYPES[bool(self.attributes & LOG_APPEND_TIME_FLAG)]

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_FLAG)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_FLAG)

    @property
    def has_delete_horizon(self) -> bool:
        return bool(self.attributes & DELETE_HORIZON_FLAG)


def peek(buf: Buffer, pos: int = 0) -> BatchHeader:
    """The header of the batch at pos. The records are not read and may be missing."""
    _check_start(buf, pos)
    header = BatchHeader(*_HEADER.unpack_from(buf, pos))
    _check_header(header, pos)
    return header


def peek_whole(buf: Buffer, pos: int = 0) -> BatchHeader:
    """The header of the batch at pos. Raises MalformedMessage if the batch is truncated."""
    header = peek(buf, pos)
    if header.size_in_bytes > len(buf) - pos:
        reason = f"only {len(buf) - pos} of {header.size_in_bytes} bytes"
        _reject("batch_length", pos + 8, reason)
    return header


def split(buf: Buffer, *, truncated_ok: bool = False) -> Iterator[tuple[int, BatchHeader]]:
    """The position and the header of each of several consecutive batches.

    The last batch of a fetch response may be truncated. With `truncated_ok` such a batch is
    omitted, otherwise it is malformed.
    """
    pos = 0
    while pos < len(buf):
        if truncated_ok and _is_truncated(buf, pos):
            return
        header = peek_whole(buf, pos)
        yield pos, header
        pos += header.size_in_bytes


def verify_crc(buf: Buffer, pos: int = 0, header: BatchHeader | None = None) -> None:
    """Raises MalformedMessage if the checksum of the batch at pos is wrong.

    Pass the header if it is already read.
    """
    if header is None:
        header = peek_whole(buf, pos)
    computed = _checksum(buf, pos, header.size_in_bytes)
    if computed != header.crc:
        _reject("crc", pos + CRC_AT, f"stored {header.crc:#010x}, computed {computed:#010x}")


def find_next_offset(buf: Buffer, pos: int = 0) -> Offset | None:
    """The first offset after the malformed batch at pos, as far as its bytes tell; else None.

    The header of the next batch is preferred, because a wrong checksum may be that of a damaged
    offset delta.
    """
    if len(buf) - pos < HEADER_BYTES:
        return None
    base_offset, length, delta = _LINKS.unpack_from(buf, pos)
    follows = pos + LENGTH_END + length
    if length > 0 and len(buf) - follows >= HEADER_BYTES and buf[follows + MAGIC_AT] == MAGIC:
        following, _, _ = _LINKS.unpack_from(buf, follows)
        if following > base_offset:
            return Offset(following)
    if buf[pos + MAGIC_AT] != MAGIC or delta < 0 or base_offset + delta >= _OFFSET_MAX:
        return None
    return Offset(base_offset + delta + 1)


def assign_offset(
    buf: bytearray | memoryview,
    pos: int = 0,
    *,
    base_offset: Offset,
    partition_leader_epoch: int,
) -> None:
    """Set the offset and the leader epoch of a produced batch in place.

    The checksum does not cover these fields, so it does not change.
    """
    _check_start(buf, pos)
    _put(_INT64, buf, pos, "base_offset", base_offset)
    _put(_INT32, buf, pos + LENGTH_END, "partition_leader_epoch", partition_leader_epoch)


def assign_timestamp(
    buf: bytearray | memoryview,
    pos: int = 0,
    *,
    timestamp_type: TimestampType,
    max_timestamp: Millis,
) -> None:
    """Set the timestamp type and the max timestamp of a batch in place, and update the checksum.

    With LOG_APPEND_TIME all records then have that timestamp. Their bytes do not change.
    """
    header = peek_whole(buf, pos)
    attributes = header.attributes & ~LOG_APPEND_TIME_FLAG
    if timestamp_type is TimestampType.LOG_APPEND_TIME:
        attributes |= LOG_APPEND_TIME_FLAG
    _put(_INT64, buf, pos + MAX_TIMESTAMP_AT, "max_timestamp", max_timestamp)
    _put(_INT16, buf, pos + ATTRIBUTES_AT, "attributes", attributes)
    _put(_UINT32, buf, pos + CRC_AT, "crc", _checksum(buf, pos, header.size_in_bytes))


def assemble(header: BatchHeader, body: bytes) -> bytes:
    """The bytes of a batch with encoded records `body`. Computes the length and the checksum."""
    length = HEADER_BYTES - LENGTH_END + len(body)
    try:
        covered = _pack_covered(
            header.attributes,
            header.last_offset_delta,
            header.base_timestamp,
            header.max_timestamp,
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            header.record_count,
        )
        crc = _crc32c()(body, _crc32c()(covered))
        before = _pack_before(header.base_offset, length, header.partition_leader_epoch, MAGIC, crc)
    except struct.error as error:
        raise UnencodableMessage("RecordBatch", "header", str(error)) from None
    return b"".join((before, covered, body))


class _Crc32c(Protocol):
    def __call__(self, data: Buffer, value: int = 0, /) -> int: ...


@cache
def _crc32c() -> _Crc32c:
    """Load only the compiled module of the crc32c package, if it is found.

    Importing the package itself reads its metadata and builds a command line parser. That takes as
    long as importing all of kohort.wire, and would delay the first request.
    """
    package = PathFinder.find_spec("crc32c")
    inside = None if package is None else package.submodule_search_locations
    compiled = PathFinder.find_spec("crc32c._crc32c", inside or ())
    if compiled is None or compiled.loader is None:
        from crc32c import crc32c  # noqa: PLC0415  # as above

        return crc32c
    module: Any = module_from_spec(compiled)
    compiled.loader.exec_module(module)
    function: _Crc32c = module.crc32c
    return function


def checksum(data: Buffer) -> int:
    """CRC-32C, the checksum of batches and of producer snapshots."""
    return _crc32c()(data)


def _checksum(buf: Buffer, pos: int, size: int) -> int:
    return _crc32c()(memoryview(buf)[pos + ATTRIBUTES_AT : pos + size])


_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
_UINT32: Final = struct.Struct(">I")
_INT64: Final = struct.Struct(">q")


def _put(
    layout: struct.Struct, buf: bytearray | memoryview, at: int, field: str, value: int
) -> None:
    try:
        layout.pack_into(buf, at, value)
    except struct.error as error:
        raise UnencodableMessage("RecordBatch", field, str(error)) from None


def _check_start(buf: Buffer, pos: int) -> None:
    _check_magic(buf, pos)
    if len(buf) - pos < HEADER_BYTES:
        _reject("header", pos, f"only {len(buf) - pos} of {HEADER_BYTES} bytes")


def _check_magic(buf: Buffer, pos: int) -> None:
    """Check this first: older formats have only the bytes up to the magic in common."""
    if len(buf) - pos > MAGIC_AT and buf[pos + MAGIC_AT] != MAGIC:
        _reject("magic", pos + MAGIC_AT, f"magic {buf[pos + MAGIC_AT]} is not supported")


def _check_header(header: BatchHeader, pos: int) -> None:
    size = LENGTH_END + header.batch_length
    if size < HEADER_BYTES:
        _reject("batch_length", pos + 8, f"{header.batch_length} is less than the size of a header")
    codec = header.attributes & CODEC_MASK
    if codec > _CODEC_MAX:
        _reject("attributes", pos + ATTRIBUTES_AT, f"unknown codec {codec}")
    last_offset_delta = header.last_offset_delta
    if last_offset_delta < 0:
        _reject("last_offset_delta", pos + 23, f"{last_offset_delta} is negative")
    if header.base_offset + last_offset_delta > _OFFSET_MAX:
        _reject(
            "base_offset", pos, f"{header.base_offset} is too large for the offsets of the batch"
        )
    count = header.record_count
    if not 0 <= count <= last_offset_delta + 1:
        _reject("record_count", pos + 57, f"{count} records for {last_offset_delta + 1} offsets")
    if codec == Codec.NONE and count * RECORD_BYTES_MIN > size - HEADER_BYTES:
        _reject("record_count", pos + 57, f"{count} records in {size - HEADER_BYTES} bytes")


def _is_truncated(buf: Buffer, pos: int) -> bool:
    _check_magic(buf, pos)
    left = len(buf) - pos
    if left < HEADER_BYTES:
        return True
    length = int.from_bytes(buf[pos + 8 : pos + LENGTH_END], signed=True)
    return length > left - LENGTH_END


def _reject(field: str, position: int, reason: str) -> NoReturn:
    raise MalformedMessage("RecordBatch", field, position, reason)
