"""Record batches in Kafka's format of magic 2: the unit that is produced, stored and fetched.

`encode` turns a NewBatch into bytes, `decode` turns bytes into a Batch. The functions of
batch_header, which read only the header, are exported here too.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from kohort.types import Millis, Offset, ProducerEpoch, ProducerId, value
from kohort.wire import compression
from kohort.wire.batch_header import (
    CONTROL_FLAG,
    HEADER_BYTES,
    LOG_APPEND_TIME_FLAG,
    MAGIC,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    RECORD_BYTES_MIN,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    TimestampType,
    assemble,
    assign_offset,
    assign_timestamp,
    peek,
    peek_whole,
    split,
    verify_crc,
)
from kohort.wire.compression import DECOMPRESSED_BYTES_MAX, Codec
from kohort.wire.errors import MalformedMessage, UnencodableMessage
from kohort.wire.records import (
    Header,
    NewRecord,
    Record,
    encode_records,
    encode_simple_records,
    read_record_keys,
    read_records,
)
from kohort.wire.varint import Buffer

__all__ = [
    "NO_PARTITION_LEADER_EPOCH",
    "NO_PRODUCER_EPOCH",
    "NO_PRODUCER_ID",
    "NO_SEQUENCE",
    "NO_TIMESTAMP",
    "Batch",
    "BatchHeader",
    "Codec",
    "Header",
    "NewBatch",
    "NewRecord",
    "Record",
    "TimestampType",
    "assemble_simple_batch",
    "assign_offset",
    "assign_timestamp",
    "decode",
    "encode",
    "encode_retained",
    "encode_simple_batch",
    "iter_records",
    "peek",
    "read_body",
    "read_keys",
    "split",
    "verify_crc",
]

_FIRST_OFFSET: Final = Offset(0)


@value
class NewBatch:
    """Records to encode as one batch. The first one gets base_offset."""

    records: tuple[NewRecord, ...]
    base_offset: Offset = _FIRST_OFFSET
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH
    codec: Codec = Codec.NONE
    log_append_time: Millis | None = None
    """If set, it replaces the timestamps of all records."""
    is_transactional: bool = False
    is_control: bool = False
    producer_id: ProducerId = NO_PRODUCER_ID
    producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH
    base_sequence: int = NO_SEQUENCE


@value
class Batch:
    """A decoded batch."""

    header: BatchHeader
    records: tuple[Record, ...]


def decode(
    buf: Buffer, pos: int = 0, *, check_crc: bool = True, max_bytes: int = DECOMPRESSED_BYTES_MAX
) -> Batch:
    """The batch at pos. Other bytes may follow it. max_bytes limits the decompressed size."""
    header, records = _open(buf, pos, check_crc=check_crc, max_bytes=max_bytes)
    return Batch(header=header, records=tuple(records))


def iter_records(
    buf: Buffer, pos: int = 0, *, check_crc: bool = True, max_bytes: int = DECOMPRESSED_BYTES_MAX
) -> Iterator[Record]:
    """The records of the batch at pos, decoded lazily.

    Header, checksum and compression are checked before this returns, a record when it is decoded.
    """
    return _open(buf, pos, check_crc=check_crc, max_bytes=max_bytes)[1]


def read_body(buf: Buffer, header: BatchHeader, max_bytes: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    """The encoded records of the batch at position 0, decompressed. The checksum is not verified.

    max_bytes limits the decompressed size.
    """
    body = bytes(memoryview(buf)[HEADER_BYTES : header.size_in_bytes])
    if header.codec is Codec.NONE or not body:
        return body
    return _decompress(body, header, HEADER_BYTES, max_bytes)


def read_keys(buf: Buffer, pos: int, header: BatchHeader) -> list[tuple[bytes | None, Offset]]:
    """The key and the offset of each record of the uncompressed batch at pos. The checksum is not
    verified."""
    start = pos + HEADER_BYTES
    body = bytes(memoryview(buf)[start : pos + header.size_in_bytes])
    return read_record_keys(body, header, message="RecordBatch", shift=start)


def _open(
    buf: Buffer, pos: int, *, check_crc: bool, max_bytes: int
) -> tuple[BatchHeader, Iterator[Record]]:
    header = peek_whole(buf, pos)
    if check_crc:
        verify_crc(buf, pos, header)
    start = pos + HEADER_BYTES
    body = bytes(memoryview(buf)[start : pos + header.size_in_bytes])
    # Compaction leaves empty batches with no body, which is not a valid compressed stream.
    if header.codec is Codec.NONE or not body:
        return header, read_records(body, header, message="RecordBatch", shift=start)
    body = _decompress(body, header, start, max_bytes)
    return header, read_records(body, header, message="RecordBatch (decompressed)", shift=0)


def _decompress(body: bytes, header: BatchHeader, start: int, max_bytes: int) -> bytes:
    try:
        body = compression.decompress(header.codec, body, max_bytes)
    except MalformedMessage as error:
        reason = f"{error.message}: {error.reason}"
        position = start + error.position
        raise type(error)("RecordBatch", "records", position, reason) from error
    if header.record_count * RECORD_BYTES_MIN > len(body):
        reason = f"{header.record_count} records in {len(body)} bytes"
        raise MalformedMessage("RecordBatch", "record_count", start - 4, reason)
    return body


def encode(batch: NewBatch) -> bytes:
    """Encode a batch to produce or append."""
    records = batch.records
    if not records:
        raise UnencodableMessage("RecordBatch", "records", "a new batch needs at least one record")
    max_timestamp = batch.log_append_time
    if max_timestamp is None:
        max_timestamp = max(record.timestamp for record in records)
    header = BatchHeader(
        base_offset=batch.base_offset,
        batch_length=0,
        partition_leader_epoch=batch.partition_leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=_attributes(batch),
        last_offset_delta=len(records) - 1,
        base_timestamp=records[0].timestamp,
        max_timestamp=max_timestamp,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        record_count=len(records),
    )
    return _encode(header, enumerate(records))


def encode_simple_batch(
    pairs: Sequence[tuple[bytes, bytes | None]],
    timestamp: Millis,
    base_offset: Offset = _FIRST_OFFSET,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
) -> bytes:
    """Encode key-value pairs that all have one timestamp. Equals `encode` of the same records."""
    body = encode_simple_records(pairs)
    return assemble_simple_batch(body, len(pairs), timestamp, base_offset, partition_leader_epoch)


def assemble_simple_batch(
    body: bytes,
    record_count: int,
    timestamp: Millis,
    base_offset: Offset = _FIRST_OFFSET,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
) -> bytes:
    """Build a batch from already encoded records that all have one timestamp."""
    return assemble(
        BatchHeader(
            base_offset,
            0,
            partition_leader_epoch,
            MAGIC,
            0,
            0,
            record_count - 1,
            timestamp,
            timestamp,
            NO_PRODUCER_ID,
            NO_PRODUCER_EPOCH,
            NO_SEQUENCE,
            record_count,
        ),
        body,
    )


def _attributes(batch: NewBatch) -> int:
    attributes = int(batch.codec)
    if batch.log_append_time is not None:
        attributes |= LOG_APPEND_TIME_FLAG
    if batch.is_transactional:
        attributes |= TRANSACTIONAL_FLAG
    if batch.is_control:
        attributes |= CONTROL_FLAG
    return attributes


def encode_retained(header: BatchHeader, records: tuple[Record, ...]) -> bytes:
    """Encode a batch after compaction with the retained records, possibly none.

    Its offset range and producer fields do not change: the log then has no gap, and the producer's
    next sequence number remains known.
    """
    base_timestamp, max_timestamp = header.base_timestamp, header.max_timestamp
    if not header.has_delete_horizon:
        base_timestamp = records[0].timestamp if records else NO_TIMESTAMP
    if records and header.timestamp_type is TimestampType.CREATE_TIME:
        max_timestamp = max(record.timestamp for record in records)
    header = replace(
        header,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        record_count=len(records),
    )
    return _encode(header, ((record.offset - header.base_offset, record) for record in records))


def _encode(header: BatchHeader, records: Iterable[tuple[int, NewRecord | Record]]) -> bytes:
    body = encode_records(records, base_timestamp=header.base_timestamp)
    if body:
        body = compression.compress(header.codec, body)
    return assemble(header, body)
