"""The 61 bytes before a batch's records: reading them, and what a broker changes in them.

A log needs no more than this to know which offsets a batch spans, whether it is whole and who
wrote it, so nothing here looks at records. Only magic 2 is known, which Kafka has written since
0.11.

    base_offset int64, batch_length int32, partition_leader_epoch int32, magic int8, crc uint32,
    attributes int16, last_offset_delta int32, base_timestamp int64, max_timestamp int64,
    producer_id int64, producer_epoch int16, base_sequence int32, record_count int32
    The length counts from the leader epoch on, the checksum covers all from the attributes on.
"""

import struct
from collections.abc import Iterator
from enum import IntEnum
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Any, Final, NoReturn, Protocol

from kohort.types import Millis, Offset, ProducerEpoch, ProducerId, maker, value
from kohort.wire.compression import Codec
from kohort.wire.errors import MalformedMessage, UnencodableMessage
from kohort.wire.varint import Buffer

_BEFORE_CRC: Final = ">qiibI"
_COVERED_BY_CRC: Final = ">hiqqqhii"
_HEADER: Final = struct.Struct(_BEFORE_CRC + _COVERED_BY_CRC[1:])
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
"""A record with neither key, value nor headers: one byte for each of its seven numbers."""

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
    """Whose clock a record's timestamp is from: its producer's or its broker's."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


_TIMESTAMP_TYPES: Final = tuple(TimestampType)


@value
class BatchHeader:
    """What a batch says of itself."""

    base_offset: Offset
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: Millis
    """Of the first record; with a delete horizon, the horizon itself (KIP-534)."""
    max_timestamp: Millis
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    base_sequence: int
    record_count: int
    """Compaction may leave fewer records than offsets, or none at all."""

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


make_header: Final = maker(BatchHeader)
"""From all fields in their order: every batch that is written or read has one."""


def peek(buf: Buffer, pos: int = 0) -> BatchHeader:
    """The header of the batch at pos; the records need not be there, and are not looked at."""
    _check_start(buf, pos)
    header = make_header(*_HEADER.unpack_from(buf, pos))
    _check_header(header, pos)
    return header


def peek_whole(buf: Buffer, pos: int = 0) -> BatchHeader:
    """The header of the batch at pos, all of which must be there."""
    header = peek(buf, pos)
    if header.size_in_bytes > len(buf) - pos:
        reason = f"{len(buf) - pos} bytes of {header.size_in_bytes} are here"
        _refuse("batch_length", pos + 8, reason)
    return header


def split(buf: Buffer, *, truncated_ok: bool = False) -> Iterator[tuple[int, BatchHeader]]:
    """Where each of the batches in a row begins, and its header.

    A fetch response may end within a batch, since brokers cut at a number of bytes: with
    truncated_ok the walk ends before such a batch, otherwise it is malformed.
    """
    pos = 0
    while pos < len(buf):
        if truncated_ok and _is_truncated(buf, pos):
            return
        header = peek_whole(buf, pos)
        yield pos, header
        pos += header.size_in_bytes


def verify_crc(buf: Buffer, pos: int = 0, header: BatchHeader | None = None) -> None:
    """Raises MalformedMessage unless the batch at pos is what its writer wrote.

    Whoever has peeked the header of a whole batch passes it on, to spare a second look.
    """
    if header is None:
        header = peek_whole(buf, pos)
    computed = _checksum(buf, pos, header.size_in_bytes)
    if computed != header.crc:
        _refuse("crc", pos + CRC_AT, f"{header.crc:#010x} is stored, {computed:#010x} is computed")


def assign_offset(
    buf: bytearray | memoryview,
    pos: int = 0,
    *,
    base_offset: Offset,
    partition_leader_epoch: int,
) -> None:
    """Gives a produced batch its place in the log, in the bytes themselves.

    The checksum does not cover these fields, so that a broker need not compute it again.
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
    """Says whose clock a batch's times are from and the latest of them, and seals it anew.

    With LOG_APPEND_TIME every record then has that time, without a change to its bytes.
    """
    header = peek_whole(buf, pos)
    attributes = header.attributes & ~LOG_APPEND_TIME_FLAG
    if timestamp_type is TimestampType.LOG_APPEND_TIME:
        attributes |= LOG_APPEND_TIME_FLAG
    _put(_INT64, buf, pos + MAX_TIMESTAMP_AT, "max_timestamp", max_timestamp)
    _put(_INT16, buf, pos + ATTRIBUTES_AT, "attributes", attributes)
    _put(_UINT32, buf, pos + CRC_AT, "crc", _checksum(buf, pos, header.size_in_bytes))


def seal(header: BatchHeader, body: bytes) -> bytes:
    """The bytes of a batch, for whose records' bytes the length and checksum are worked out."""
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
    """From the package's compiled module alone, where it is found.

    The package itself reads its own metadata and makes a command line when it is imported. That
    takes as long as importing all of wire, and the first to join a group would wait for it.
    """
    package = PathFinder.find_spec("crc32c")
    inside = None if package is None else package.submodule_search_locations
    compiled = PathFinder.find_spec("crc32c._crc32c", inside or ())
    if compiled is None or compiled.loader is None:
        from crc32c import crc32c  # noqa: PLC0415  # as above

        return crc32c
    module: Any = module_from_spec(compiled)
    compiled.loader.exec_module(module)
    made: _Crc32c = module.crc32c
    return made


def checksum(data: Buffer) -> int:
    """CRC-32C, which seals batches and the files that stand beside them."""
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
        _refuse("header", pos, f"{len(buf) - pos} bytes of {HEADER_BYTES} are here")


def _check_magic(buf: Buffer, pos: int) -> None:
    """Comes before any other check: older formats share only the bytes up to the magic."""
    if len(buf) - pos > MAGIC_AT and buf[pos + MAGIC_AT] != MAGIC:
        _refuse("magic", pos + MAGIC_AT, f"magic {buf[pos + MAGIC_AT]} is not supported")


def _check_header(header: BatchHeader, pos: int) -> None:
    size = LENGTH_END + header.batch_length
    if size < HEADER_BYTES:
        _refuse("batch_length", pos + 8, f"{header.batch_length} is less than a header takes")
    codec = header.attributes & CODEC_MASK
    if codec > _CODEC_MAX:
        _refuse("attributes", pos + ATTRIBUTES_AT, f"no codec has the number {codec}")
    last_offset_delta = header.last_offset_delta
    if last_offset_delta < 0:
        _refuse("last_offset_delta", pos + 23, f"{last_offset_delta} is negative")
    if header.base_offset + last_offset_delta > _OFFSET_MAX:
        _refuse("base_offset", pos, f"{header.base_offset} leaves no room for the batch's offsets")
    count = header.record_count
    if not 0 <= count <= last_offset_delta + 1:
        _refuse("record_count", pos + 57, f"{count} records in {last_offset_delta + 1} offsets")
    if codec == Codec.NONE and count * RECORD_BYTES_MIN > size - HEADER_BYTES:
        _refuse("record_count", pos + 57, f"{count} records in {size - HEADER_BYTES} bytes")


def _is_truncated(buf: Buffer, pos: int) -> bool:
    _check_magic(buf, pos)
    left = len(buf) - pos
    if left < HEADER_BYTES:
        return True
    length = int.from_bytes(buf[pos + 8 : pos + LENGTH_END], signed=True)
    return length > left - LENGTH_END


def _refuse(field: str, position: int, reason: str) -> NoReturn:
    raise MalformedMessage("RecordBatch", field, position, reason)
