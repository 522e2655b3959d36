"""Producers on the disk: Kafka's .snapshot file, named after the offset it speaks for.

    version int16 (1), crc uint32, number of entries int32, and for each of them:
    producer_id int64, epoch int16, last_sequence int32, last_offset int64, offset_delta int32,
    timestamp int64, coordinator_epoch int32, transaction_start int64 (-1 for none)
    The checksum is a CRC-32C of all that follows it.

Kafka writes one entry per producer and so forgets all but the last batch over a restart. We write
one per remembered batch, the last one last: Kafka's reader ends up with the same, ours with all.
"""

import struct
from typing import Final

from kohort.log.limits import Limits
from kohort.log.producers import Producer, Producers, WrittenBatch, is_expired
from kohort.types import Millis, Offset, ProducerEpoch, ProducerId
from kohort.wire.batch import NO_SEQUENCE, NO_TIMESTAMP
from kohort.wire.batch_header import checksum

_VERSION: Final = 1
_HEAD: Final = struct.Struct(">hIi")
_COUNT: Final = struct.Struct(">i")
_ENTRY: Final = struct.Struct(">qhiqiqiq")
_CRC_END: Final = 6
_NONE: Final = -1


def encode_snapshot(producers: Producers) -> bytes:
    entries = [
        _encode_entry(producer_id, producer, batch)
        for producer_id, producer in producers.items()
        for batch in (producer.batches or (None,))
    ]
    covered = b"".join((_COUNT.pack(len(entries)), *entries))
    return struct.pack(">hI", _VERSION, checksum(covered)) + covered


def _encode_entry(producer_id: ProducerId, producer: Producer, batch: WrittenBatch | None) -> bytes:
    start = producer.transaction_start
    is_earlier = batch is not None and batch is not producer.batches[-1]
    return _ENTRY.pack(
        producer_id,
        producer.epoch,
        NO_SEQUENCE if batch is None else batch.last_sequence,
        _NONE if batch is None else batch.last_offset,
        0 if batch is None else batch.offset_delta,
        batch.timestamp if batch and is_earlier else producer.last_timestamp,
        producer.coordinator_epoch,
        _NONE if start is None else start,
    )


def decode_snapshot(data: bytes, now: Millis, limits: Limits) -> Producers | None:
    """None if the bytes are not a whole snapshot, as a crash may leave them."""
    if len(data) < _HEAD.size:
        return None
    version, crc, count = _HEAD.unpack_from(data)
    is_whole = len(data) == _HEAD.size + count * _ENTRY.size
    if version != _VERSION or not is_whole or crc != checksum(memoryview(data)[_CRC_END:]):
        return None
    found: dict[ProducerId, Producer] = {}
    for fields in _ENTRY.iter_unpack(data[_HEAD.size :]):
        _decode_entry(found.setdefault(ProducerId(fields[0]), Producer()), fields)
    producers = Producers(limits)
    for producer_id, producer in found.items():
        if not is_expired(producer, now, limits):
            producers.load(producer_id, producer)
    return producers


def _decode_entry(producer: Producer, fields: tuple[int, ...]) -> None:
    _, epoch, last_sequence, last_offset, delta, timestamp, coordinator_epoch, start = fields
    producer.begin_epoch(ProducerEpoch(epoch))
    producer.hear(Millis(timestamp), NO_TIMESTAMP)
    producer.coordinator_epoch = coordinator_epoch
    producer.transaction_start = None if start < 0 else Offset(start)
    if last_offset >= 0:
        producer.batches.append(
            WrittenBatch(
                last_sequence=last_sequence,
                last_offset=Offset(last_offset),
                offset_delta=delta,
                timestamp=Millis(timestamp),
            )
        )
