"""Producer state snapshots: Kafka's .snapshot files, each named after its offset.

    version int16 (1), crc uint32, number of entries int32, and for each entry:
    producer_id int64, epoch int16, last_sequence int32, last_offset int64, offset_delta int32,
    timestamp int64, coordinator_epoch int32, transaction_start int64 (-1 for none)
    The checksum is the CRC-32C of all bytes after it.

Kafka writes one entry per producer, and so loses all but the last batch at a restart. Kohort
writes one entry per retained batch, in order: Kafka's reader keeps the last one, Kohort's all.
"""

import struct
from collections.abc import Mapping
from typing import Final

from kohort.log.disk import Disk, read_file, write_file
from kohort.log.file_names import SNAPSHOT, parse_segment_file, segment_file
from kohort.log.limits import Limits
from kohort.log.producer_state import (
    BatchMetadata,
    ProducerStateEntry,
    ProducerStateManager,
    is_expired,
)
from kohort.types import Millis, Offset, ProducerEpoch, ProducerId
from kohort.wire.batch import NO_SEQUENCE, NO_TIMESTAMP
from kohort.wire.batch_header import checksum

_VERSION: Final = 1
_HEAD: Final = struct.Struct(">hIi")
_COUNT: Final = struct.Struct(">i")
_ENTRY: Final = struct.Struct(">qhiqiqiq")
_CRC_END: Final = 6
_NONE: Final = -1

_FILES_KEPT: Final = 2
"""The last snapshot, and the one before it in case the last one is incomplete."""


class ProducerSnapshots:
    """The snapshot files of one partition."""

    def __init__(self, disk: Disk, directory: str, listed: Mapping[str, int]) -> None:
        self._disk = disk
        self._directory = directory
        files = [parse_segment_file(name) for name in listed]
        self._offsets = sorted(
            file.offset for file in files if file and file.kind == SNAPSHOT and not file.stage
        )

    def load(
        self, start_offset: Offset, end_offset: Offset, now: Millis, limits: Limits
    ) -> tuple[ProducerStateManager, Offset]:
        """The state in the latest complete snapshot, and its offset. Removes invalid snapshots."""
        while self._offsets:
            offset = self._offsets[-1]
            if start_offset <= offset <= end_offset:
                data = read_file(self._disk, self._path(offset))
                producers = decode_snapshot(data, now, limits)
                if producers is not None:
                    return producers, offset
            self._remove(-1)
        return ProducerStateManager(limits), start_offset

    def take(self, producers: ProducerStateManager, end_offset: Offset) -> None:
        """Write a snapshot without fsync: the checksum detects an incomplete one."""
        if self._offsets[-1:] == [end_offset]:
            return
        write_file(self._disk, self._path(end_offset), encode_snapshot(producers))
        self._offsets.append(end_offset)
        while len(self._offsets) > _FILES_KEPT:
            self._remove(0)

    def _remove(self, at: int) -> None:
        self._disk.remove(self._path(self._offsets[at]))
        del self._offsets[at]

    def _path(self, offset: Offset) -> str:
        return f"{self._directory}/{segment_file(offset, SNAPSHOT)}"


def encode_snapshot(producers: ProducerStateManager) -> bytes:
    entries = [
        _encode_entry(producer_id, producer, batch)
        for producer_id, producer in producers.items()
        for batch in (producer.batches or (None,))
    ]
    covered = b"".join((_COUNT.pack(len(entries)), *entries))
    return struct.pack(">hI", _VERSION, checksum(covered)) + covered


def _encode_entry(
    producer_id: ProducerId, producer: ProducerStateEntry, batch: BatchMetadata | None
) -> bytes:
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


def decode_snapshot(data: bytes, now: Millis, limits: Limits) -> ProducerStateManager | None:
    """None if the snapshot is incomplete, for example after a crash."""
    if len(data) < _HEAD.size:
        return None
    version, crc, count = _HEAD.unpack_from(data)
    is_whole = len(data) == _HEAD.size + count * _ENTRY.size
    if version != _VERSION or not is_whole or crc != checksum(memoryview(data)[_CRC_END:]):
        return None
    found: dict[ProducerId, ProducerStateEntry] = {}
    for fields in _ENTRY.iter_unpack(data[_HEAD.size :]):
        _decode_entry(found.setdefault(ProducerId(fields[0]), ProducerStateEntry()), fields)
    producers = ProducerStateManager(limits)
    for producer_id, producer in found.items():
        if not is_expired(producer, now, limits):
            producers.load(producer_id, producer)
    return producers


def _decode_entry(producer: ProducerStateEntry, fields: tuple[int, ...]) -> None:
    _, epoch, last_sequence, last_offset, delta, timestamp, coordinator_epoch, start = fields
    producer.begin_epoch(ProducerEpoch(epoch))
    producer.update_timestamp(Millis(timestamp), NO_TIMESTAMP)
    producer.coordinator_epoch = coordinator_epoch
    producer.transaction_start = None if start < 0 else Offset(start)
    if last_offset >= 0:
        producer.batches.append(
            BatchMetadata(
                last_sequence=last_sequence,
                last_offset=Offset(last_offset),
                offset_delta=delta,
                timestamp=Millis(timestamp),
            )
        )
