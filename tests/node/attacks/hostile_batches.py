"""Small compressed batches with much inside, and batches whose header is wrong."""

import struct
import time

from kohort.types import Millis, Offset, ProducerEpoch, ProducerId
from kohort.wire.batch import BatchHeader
from kohort.wire.batch_header import LOG_APPEND_TIME_FLAG, MAGIC, assemble
from kohort.wire.compression import Codec, compress

RECORD = b"\x0e\x00\x00\x00\x02k\x01\x00"
"""Key k, no value, all deltas 0. The first byte is the length, as a zigzag varint."""

_COUNT_MAX = 2**31 - 1


def batch(body: bytes, count: int, codec: Codec, *, is_log_append_time: bool = False) -> bytes:
    """A batch with a valid checksum that claims to contain `count` records."""
    now = Millis(time.time_ns() // 1_000_000)
    header = BatchHeader(
        base_offset=Offset(0),
        batch_length=0,
        partition_leader_epoch=-1,
        magic=MAGIC,
        crc=0,
        attributes=codec | (LOG_APPEND_TIME_FLAG if is_log_append_time else 0),
        last_offset_delta=count - 1,
        base_timestamp=now,
        max_timestamp=now,
        producer_id=ProducerId(-1),
        producer_epoch=ProducerEpoch(-1),
        base_sequence=-1,
        record_count=count,
    )
    return assemble(header, compress(codec, body))


def same_records(count: int, *, is_log_append_time: bool = False) -> bytes:
    """Equal records compress to almost nothing. Their offset deltas are all 0, which is wrong."""
    return batch(RECORD * count, count, Codec.ZSTD, is_log_append_time=is_log_append_time)


def right_records(count: int) -> bytes:
    """Records with correct offset deltas."""
    records = bytearray()
    for delta in range(count):
        content = b"\x00\x00" + _varint(delta) + b"\x02k\x01\x00"
        records += _varint(len(content)) + content
    return batch(bytes(records), count, Codec.ZSTD)


def claimed_records(codec: Codec) -> bytes:
    """One record, and a header that claims as many as possible."""
    return batch(RECORD, _COUNT_MAX, codec)


def large_value(size: int, codec: Codec) -> bytes:
    """One correct record with a value of zeros."""
    content = b"\x00\x00\x00\x02k" + _varint(size) + bytes(size) + b"\x00"
    return batch(_varint(len(content)) + content, 1, codec)


def frame_length(size: int) -> bytes:
    return struct.pack(">i", size)


def _varint(number: int) -> bytes:
    """A number that is not negative, as a zigzag varint."""
    left, out = number << 1, bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out)
