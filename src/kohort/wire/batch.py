"""Batches of records in Kafka's format of magic 2: the unit that is produced, kept and fetched.

A NewBatch says what to write and becomes bytes; bytes become a Batch. What can be read without
the records is in batch_header, and is offered here too.
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
    assign_offset,
    assign_timestamp,
    make_header,
    peek,
    peek_whole,
    seal,
    split,
    verify_crc,
)
from kohort.wire.compression import DECOMPRESSED_BYTES_MAX, Codec
from kohort.wire.errors import MalformedMessage, UnencodableMessage
from kohort.wire.records import (
    Header,
    NewRecord,
    Record,
    encode_pairs,
    encode_records,
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
    "assign_offset",
    "assign_timestamp",
    "decode",
    "encode",
    "encode_moment",
    "encode_retained",
    "iter_records",
    "peek",
    "read_keys",
    "seal_moment",
    "split",
    "verify_crc",
]

_FIRST_OFFSET: Final = Offset(0)


@value
class NewBatch:
    """Records to be written together; the first one gets base_offset, the others follow it."""

    records: tuple[NewRecord, ...]
    base_offset: Offset = _FIRST_OFFSET
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH
    codec: Codec = Codec.NONE
    log_append_time: Millis | None = None
    """When given, the time of every record, whatever its own says."""
    is_transactional: bool = False
    is_control: bool = False
    producer_id: ProducerId = NO_PRODUCER_ID
    producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH
    base_sequence: int = NO_SEQUENCE


@value
class Batch:
    """A batch as read."""

    header: BatchHeader
    records: tuple[Record, ...]


def decode(
    buf: Buffer, pos: int = 0, *, check_crc: bool = True, max_bytes: int = DECOMPRESSED_BYTES_MAX
) -> Batch:
    """The batch at pos. Other bytes may follow it; max_bytes bounds what it decompresses to."""
    header, records = _open(buf, pos, check_crc=check_crc, max_bytes=max_bytes)
    return Batch(header=header, records=tuple(records))


def iter_records(
    buf: Buffer, pos: int = 0, *, check_crc: bool = True, max_bytes: int = DECOMPRESSED_BYTES_MAX
) -> Iterator[Record]:
    """The records of the batch at pos, each decoded when it is asked for.

    Header, checksum and compression are checked before this returns, a record when its turn comes.
    """
    return _open(buf, pos, check_crc=check_crc, max_bytes=max_bytes)[1]


def read_keys(buf: Buffer, pos: int, header: BatchHeader) -> list[tuple[bytes | None, Offset]]:
    """The key and the offset of each record of the batch at pos, which is not compressed; its
    header was peeked, and its checksum is not looked at."""
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
    # Compaction leaves an emptied batch without any bytes, not even those of an empty stream.
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
        raise MalformedMessage("RecordBatch", "records", position, reason) from error
    if header.record_count * RECORD_BYTES_MIN > len(body):
        reason = f"{header.record_count} records in {len(body)} bytes"
        raise MalformedMessage("RecordBatch", "record_count", start - 4, reason)
    return body


def encode(batch: NewBatch) -> bytes:
    """The bytes of a batch that is to be produced, or appended as it is."""
    records = batch.records
    if not records:
        raise UnencodableMessage("RecordBatch", "records", "a new batch holds at least one")
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


def encode_moment(pairs: Sequence[tuple[bytes, bytes | None]], timestamp: Millis) -> bytes:
    """As `encode`, for keys and values that were all written at one moment: what a node keeps."""
    return seal_moment(encode_pairs(pairs), len(pairs), timestamp)


def seal_moment(
    body: bytes,
    record_count: int,
    timestamp: Millis,
    base_offset: Offset = _FIRST_OFFSET,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
) -> bytes:
    """The batch of so many records, encoded already, that were all written at one moment."""
    return seal(
        make_header(
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
    """The bytes of a batch of which compaction keeps only these records, perhaps none.

    Its span of offsets and its producer's numbers stay as they were: the log then has no gap, and
    the producer's next sequence number is still known.
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
    return seal(header, body)
