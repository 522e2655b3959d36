"""Finding things in a log's segments: by offset, by time, by transaction."""

from kohort.log.errors import Damaged
from kohort.log.index import AbortedTransaction
from kohort.log.segment import Chunk, Glance, Segment
from kohort.log.segments import Segments
from kohort.types import Millis, Offset, value
from kohort.wire.batch import NO_TIMESTAMP, Batch, BatchHeader, Record, TimestampType, decode
from kohort.wire.errors import MalformedMessage


@value
class Found:
    """A record that was looked for."""

    offset: Offset
    timestamp: Millis
    leader_epoch: int


def find_chunk(segments: Segments, offset: Offset, size: int) -> Chunk | None:
    """Whole batches from the one that holds an offset on; None at the end of the log."""
    for segment in segments.from_offset(offset):
        found = segment.find(offset)
        if found is not None:
            return next(segment.chunks(found[0], size))
    return None


def find_by_time(segments: Segments, timestamp: Millis, start_offset: Offset) -> Found | None:
    """The first record at or after a time, from an offset on. One batch is decoded, seldom two."""
    for segment in segments.from_offset(start_offset):
        if segment.latest[0] < timestamp:
            continue
        entry = segment.times.find_at_most(timestamp)
        first = max(start_offset, segment.base_offset + (entry[1] if entry else 0))
        start = segment.offsets.find_at_most(first - segment.base_offset)
        for glance in segment.walk(start[1] if start else 0):
            if glance[4] < timestamp or glance[3] < start_offset:
                continue
            batch = _decode(segment, glance)
            for record in batch.records:
                if record.timestamp >= timestamp and record.offset >= start_offset:
                    return _found(record, batch.header)
    return None


def find_latest_time(segments: Segments, start_offset: Offset) -> Found | None:
    """The first record of those with the latest timestamp."""
    candidates = [*segments.from_offset(start_offset)]
    segment = max(candidates, key=lambda candidate: candidate.latest[0])
    timestamp, offset = segment.latest
    if timestamp == NO_TIMESTAMP or offset < start_offset:
        return None
    glance = segment.find(offset)
    assert glance is not None, f"the time index of {segment.path()} points at nothing"
    batch = _decode(segment, glance)
    records = batch.records
    if batch.header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        # All records have it, and Kafka names the last one.
        records = records[::-1]
    for record in records:
        if record.timestamp == timestamp:
            return _found(record, batch.header)
    return None


def find_aborted(segments: Segments, start: Offset, end: Offset) -> tuple[AbortedTransaction, ...]:
    """The aborted transactions that overlap a range of offsets."""
    found: list[AbortedTransaction] = []
    for segment in segments.from_offset(start):
        for each in segment.aborted:
            if each.last_offset >= start and each.first_offset < end:
                found.append(each)
            if each.last_stable_offset >= end:
                # Whatever ended later had begun later as well.
                return tuple(found)
    return tuple(found)


def _decode(segment: Segment, glance: Glance) -> Batch:
    position, size = glance[0], glance[1]
    try:
        return decode(segment.file.read(position, size))
    except MalformedMessage as error:
        raise Damaged(segment.path(), f"decode at {position}", str(error)) from error


def _found(record: Record, header: BatchHeader) -> Found:
    return Found(
        offset=record.offset,
        timestamp=record.timestamp,
        leader_epoch=header.partition_leader_epoch,
    )
