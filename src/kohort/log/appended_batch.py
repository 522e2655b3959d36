"""Batches that are appended to a partition: what the log changes in them, the result, and those
that this node has built."""

from typing import NamedTuple

from kohort.log.limits import LEADER_EPOCH
from kohort.types import Millis, Offset, value
from kohort.wire.batch import (
    BatchHeader,
    TimestampType,
    assign_offset,
    assign_timestamp,
    peek,
)


@value
class Appended:
    """The offsets of an appended batch, or for a duplicate, those of the original."""

    base_offset: Offset
    last_offset: Offset
    append_ms: Millis
    """The timestamp under LogAppendTime; -1 under CreateTime."""
    start_offset: Offset
    is_duplicate: bool


def place_batch(
    batch: bytes,
    header: BatchHeader,
    base_offset: Offset,
    timestamp_type: TimestampType,
    now: Millis,
) -> tuple[bytearray, BatchHeader]:
    """A copy with the offset, the leader epoch and the timestamp type of the log."""
    data = bytearray(batch)
    if TimestampType.LOG_APPEND_TIME in (timestamp_type, header.timestamp_type):
        is_changed = timestamp_type is TimestampType.LOG_APPEND_TIME
        timestamp = now if is_changed else header.max_timestamp
        assign_timestamp(data, timestamp_type=timestamp_type, max_timestamp=timestamp)
        header = peek(data)
    assign_offset(data, base_offset=base_offset, partition_leader_epoch=LEADER_EPOCH)
    return data, header


class TrustedBatch(NamedTuple):
    """A batch that this node has built for a known base offset. All records have one timestamp."""

    data: bytes
    record_count: int
    timestamp: Millis
