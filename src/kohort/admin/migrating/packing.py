"""Batches as they came from A into batches as B takes them. Pure.

A batch that B would take as it is travels as it is. Whatever was compacted, cut or written by
another clock is put together anew, with the same compression; small ones in a row become one.
What belongs to aborted transactions stays behind.
"""

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Final

from kohort.client.fetching.aborted import Aborted
from kohort.client.fetching.parcel import FetchedBatches
from kohort.client.fetching.records import BatchReader, ConsumerRecord
from kohort.client.topic_partition import TopicPartition
from kohort.types import Offset, ProducerEpoch, ProducerId, value
from kohort.wire import compression
from kohort.wire.batch import NO_PARTITION_LEADER_EPOCH, decode
from kohort.wire.batch_header import (
    CODEC_MASK,
    HEADER_BYTES,
    MAGIC,
    BatchHeader,
    TimestampType,
    seal,
    split,
    verify_crc,
)
from kohort.wire.compression import Codec
from kohort.wire.records import Header, NewRecord, encode_records

SEQUENCES: Final = 2**31
"""Sequence numbers begin again after as many."""

_TOGETHER_BYTES_MAX: Final = 512 * 1024
"""Batches are put together up to this size: large enough that requests are few."""


class TooLarge(Exception):
    """One record that B's max.message.bytes does not let in."""

    def __init__(self, offset: Offset, size: int) -> None:
        super().__init__(f"the record at offset {offset} takes {size} bytes")


@value
class Opened:
    """A batch with the records of it that are wanted."""

    header: BatchHeader
    records: list[ConsumerRecord]
    body: bytes | None
    """As it came, if all of it may go on as it is."""


@value
class Load:
    """What is sent as one batch."""

    codec: Codec
    records: list[ConsumerRecord]
    body: bytes
    """Its records as they travel, compressed."""

    @property
    def offsets(self) -> tuple[Offset, ...]:
        return tuple(record.offset for record in self.records)


def open_batches(fetched: FetchedBatches) -> Iterator[Opened]:
    """What is wanted of it, batch by batch. MalformedMessage where a batch is damaged."""
    aborted = None if fetched.aborted is None else Aborted(fetched.aborted)
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
        wanted = read_batch(fetched.content, pos, header, fetched.partition)
        if wanted and wanted[0].offset < fetched.first:
            wanted = [record for record in wanted if record.offset >= fetched.first]
        if wanted:
            is_whole = len(wanted) == header.last_offset_delta + 1 and _is_plain(header)
            start, end = pos + HEADER_BYTES, pos + header.size_in_bytes
            body = bytes(fetched.content[start:end]) if is_whole else None
            yield Opened(header=header, records=wanted, body=body)


def read_batch(
    content: bytes, pos: int, header: BatchHeader, partition: TopicPartition
) -> list[ConsumerRecord]:
    """Its records, by the consumer's own quick reader."""
    start, end = pos + HEADER_BYTES, pos + header.size_in_bytes
    # Compaction leaves an emptied batch without any bytes, not even those of an empty stream.
    if header.codec is not Codec.NONE and start < end:
        content = compression.decompress(header.codec, content[start:end])
        start, end = 0, len(content)
    return BatchReader(content, (start, end), header, partition).read(header.record_count)


def end_of(fetched: FetchedBatches) -> Offset:
    """Where its reader stands afterwards."""
    after = [header.next_offset for _, header in split(fetched.content, truncated_ok=True)]
    return max(fetched.first, *after[-1:])


def _is_plain(header: BatchHeader) -> bool:
    return header.timestamp_type is TimestampType.CREATE_TIME and not header.has_delete_horizon


def pack(opened: Iterable[Opened], bytes_max: int) -> Iterator[Load]:
    """What to send, in the same order, each at most of this size."""
    row: list[Opened] = []
    size = 0
    for each in opened:
        is_apart = row and each.header.codec is not row[0].header.codec
        if is_apart or size + each.header.size_in_bytes > min(bytes_max, _TOGETHER_BYTES_MAX):
            yield from _pack_row(row, bytes_max)
            row, size = [], 0
        row.append(each)
        size += each.header.size_in_bytes
    yield from _pack_row(row, bytes_max)


def _pack_row(row: list[Opened], bytes_max: int) -> Iterator[Load]:
    if not row:
        return
    codec = row[0].header.codec
    body = row[0].body if len(row) == 1 else None
    if body is not None and len(body) + HEADER_BYTES <= bytes_max:
        yield Load(codec=codec, records=row[0].records, body=body)
        return
    yield from _pack_records(codec, [r for each in row for r in each.records], bytes_max)


def _pack_records(codec: Codec, records: list[ConsumerRecord], bytes_max: int) -> Iterator[Load]:
    plain = encode_records(enumerate(map(_renew, records)), base_timestamp=records[0].timestamp)
    body = compression.compress(codec, plain)
    size = len(body) + HEADER_BYTES
    if size <= bytes_max:
        yield Load(codec=codec, records=records, body=body)
        return
    if len(records) == 1:
        raise TooLarge(records[0].offset, size)
    middle = len(records) // 2
    yield from _pack_records(codec, records[:middle], bytes_max)
    yield from _pack_records(codec, records[middle:], bytes_max)


def _renew(record: ConsumerRecord) -> NewRecord:
    return NewRecord(
        key=record.key,
        value=record.value,
        timestamp=record.timestamp,
        headers=tuple(Header(key=name, value=content) for name, content in record.headers),
    )


def seal_load(
    load: Load, *, producer_id: ProducerId, producer_epoch: ProducerEpoch, number: int
) -> bytes:
    """The batch as B takes it from its producer; `number` of its records came before."""
    timestamps = [record.timestamp for record in load.records]
    header = BatchHeader(
        base_offset=Offset(0),
        batch_length=0,
        partition_leader_epoch=NO_PARTITION_LEADER_EPOCH,
        magic=MAGIC,
        crc=0,
        attributes=load.codec & CODEC_MASK,
        last_offset_delta=len(timestamps) - 1,
        base_timestamp=timestamps[0],
        max_timestamp=max(timestamps),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=number % SEQUENCES,
        record_count=len(timestamps),
    )
    return seal(header, load.body)


def checksum(records: Iterable[ConsumerRecord], so_far: int) -> int:
    """CRC-32 of records, whatever batches and offsets they have; goes on from that of others."""
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
        for name, note in record.headers:
            label = name.encode()
            parts += (_pack_pair(len(label), -1 if note is None else len(note)), label, note or b"")
    return zlib.crc32(b"".join(parts), so_far)


_pack_sizes: Final = struct.Struct(">qiii").pack
_pack_pair: Final = struct.Struct(">ii").pack
