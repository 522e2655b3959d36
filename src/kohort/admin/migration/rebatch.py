"""Converts batches of the source into batches that the target accepts. Pure.

A batch that the target accepts is copied without re-encoding. A batch that was compacted, is read
in part or has log-append time is encoded again with the same compression. Small consecutive
batches are merged. Records of aborted transactions are dropped.
"""

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Final

from kohort.client.fetch.aborted_transactions import AbortedTransactionFilter
from kohort.client.fetch.completed_fetch import FetchedBatches
from kohort.client.fetch.consumer_records import BatchReader, ConsumerRecord
from kohort.types import Offset, ProducerEpoch, ProducerId, TopicPartition, value
from kohort.wire import compression
from kohort.wire.batch import NO_PARTITION_LEADER_EPOCH, decode
from kohort.wire.batch_header import (
    CODEC_MASK,
    HEADER_BYTES,
    MAGIC,
    BatchHeader,
    TimestampType,
    assemble,
    split,
    verify_crc,
)
from kohort.wire.compression import Codec
from kohort.wire.records import Header, NewRecord, encode_records

SEQUENCES: Final = 2**31
"""Sequence numbers wrap around here."""

_MERGED_BYTES_MAX: Final = 512 * 1024
"""Batches are merged up to this size, so that requests are few."""


class RecordTooLarge(Exception):
    """A record exceeds the target's max.message.bytes."""

    def __init__(self, offset: Offset, size: int) -> None:
        super().__init__(f"the record at offset {offset} takes {size} bytes")


@value
class DecodedBatch:
    """A batch and those of its records that are copied."""

    header: BatchHeader
    records: list[ConsumerRecord]
    body: bytes | None
    """The encoded records, if the batch can be copied without re-encoding."""


@value
class OutgoingBatch:
    """One batch to send."""

    codec: Codec
    records: list[ConsumerRecord]
    body: bytes
    """The encoded and compressed records."""

    @property
    def offsets(self) -> tuple[Offset, ...]:
        return tuple(record.offset for record in self.records)


def decode_batches(fetched: FetchedBatches) -> Iterator[DecodedBatch]:
    """The batches with the records to copy. Raises MalformedMessage."""
    aborted = None if fetched.aborted is None else AbortedTransactionFilter(fetched.aborted)
    for pos, header in split(fetched.content, truncated_ok=True):
        verify_crc(fetched.content, pos, header)
        if aborted is not None:
            aborted.begin(header)
        if header.is_control:
            if aborted is not None:
                aborted.end(header, decode(fetched.content, pos, check_crc=False).records)
            continue
        if aborted is not None and aborted.covers(header):
            continue
        records = read_batch(fetched.content, pos, header, fetched.partition)
        if records and records[0].offset < fetched.first:
            records = [record for record in records if record.offset >= fetched.first]
        if records:
            is_whole = len(records) == header.last_offset_delta + 1 and _is_copyable(header)
            start, end = pos + HEADER_BYTES, pos + header.size_in_bytes
            body = bytes(fetched.content[start:end]) if is_whole else None
            yield DecodedBatch(header=header, records=records, body=body)


def read_batch(
    content: bytes, pos: int, header: BatchHeader, partition: TopicPartition
) -> list[ConsumerRecord]:
    """The records of a batch."""
    start, end = pos + HEADER_BYTES, pos + header.size_in_bytes
    # Compaction leaves an empty batch without bytes, which is not a valid compressed stream.
    if header.codec is not Codec.NONE and start < end:
        content = compression.decompress(header.codec, content[start:end])
        start, end = 0, len(content)
    return BatchReader(content, (start, end), header, partition).read(header.record_count)


def end_of(fetched: FetchedBatches) -> Offset:
    """The position after these batches."""
    after = [header.next_offset for _, header in split(fetched.content, truncated_ok=True)]
    return max(fetched.first, *after[-1:])


def _is_copyable(header: BatchHeader) -> bool:
    return header.timestamp_type is TimestampType.CREATE_TIME and not header.has_delete_horizon


def rebatch(batches: Iterable[DecodedBatch], bytes_max: int) -> Iterator[OutgoingBatch]:
    """Batches to send, in the same order, each at most `bytes_max` long."""
    run: list[DecodedBatch] = []
    size = 0
    for each in batches:
        has_other_codec = run and each.header.codec is not run[0].header.codec
        if has_other_codec or size + each.header.size_in_bytes > min(bytes_max, _MERGED_BYTES_MAX):
            yield from _merge(run, bytes_max)
            run, size = [], 0
        run.append(each)
        size += each.header.size_in_bytes
    yield from _merge(run, bytes_max)


def _merge(run: list[DecodedBatch], bytes_max: int) -> Iterator[OutgoingBatch]:
    if not run:
        return
    codec = run[0].header.codec
    body = run[0].body if len(run) == 1 else None
    if body is not None and len(body) + HEADER_BYTES <= bytes_max:
        yield OutgoingBatch(codec=codec, records=run[0].records, body=body)
        return
    yield from _encode(codec, [r for each in run for r in each.records], bytes_max)


def _encode(codec: Codec, records: list[ConsumerRecord], bytes_max: int) -> Iterator[OutgoingBatch]:
    encoded = encode_records(
        enumerate(map(_new_record, records)), base_timestamp=records[0].timestamp
    )
    body = compression.compress(codec, encoded)
    size = len(body) + HEADER_BYTES
    if size <= bytes_max:
        yield OutgoingBatch(codec=codec, records=records, body=body)
        return
    if len(records) == 1:
        raise RecordTooLarge(records[0].offset, size)
    middle = len(records) // 2
    yield from _encode(codec, records[:middle], bytes_max)
    yield from _encode(codec, records[middle:], bytes_max)


def _new_record(record: ConsumerRecord) -> NewRecord:
    return NewRecord(
        key=record.key,
        value=record.value,
        timestamp=record.timestamp,
        headers=tuple(Header(key=name, value=content) for name, content in record.headers),
    )


def seal_batch(
    batch: OutgoingBatch, *, producer_id: ProducerId, producer_epoch: ProducerEpoch, number: int
) -> bytes:
    """The batch with header; `number` records of this producer precede it."""
    timestamps = [record.timestamp for record in batch.records]
    header = BatchHeader(
        base_offset=Offset(0),
        batch_length=0,
        partition_leader_epoch=NO_PARTITION_LEADER_EPOCH,
        magic=MAGIC,
        crc=0,
        attributes=batch.codec & CODEC_MASK,
        last_offset_delta=len(timestamps) - 1,
        base_timestamp=timestamps[0],
        max_timestamp=max(timestamps),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=number % SEQUENCES,
        record_count=len(timestamps),
    )
    return assemble(header, batch.body)


def checksum(records: Iterable[ConsumerRecord], so_far: int) -> int:
    """CRC-32 of records, independent of batches and offsets; continues from `so_far`."""
    parts: list[bytes] = []
    for record in records:
        key, content = record.key, record.value
        parts += (
            _pack_sizes(
                record.timestamp,
                -1 if key is None else len(key),
                -1 if content is None else len(content),
                len(record.headers),
            ),
            key or b"",
            content or b"",
        )
        for name, content in record.headers:
            label = name.encode()
            parts += (
                _pack_pair(len(label), -1 if content is None else len(content)),
                label,
                content or b"",
            )
    return zlib.crc32(b"".join(parts), so_far)


_pack_sizes: Final = struct.Struct(">qiii").pack
_pack_pair: Final = struct.Struct(">ii").pack
