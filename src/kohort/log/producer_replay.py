"""Rebuilds the producer state and the aborted transactions from the batches after a snapshot."""

from struct import Struct
from typing import Final

from kohort.log.limits import READ_BYTES
from kohort.log.producer_state import ProducerStateManager
from kohort.log.segment import Segment
from kohort.log.segment_lookup import read_valid_chunk
from kohort.types import Millis, Offset
from kohort.wire.batch import NO_PRODUCER_ID, peek
from kohort.wire.batch_header import LENGTH_END
from kohort.wire.errors import MalformedMessage

_HEADER_FIELDS: Final = Struct(">qi31xq10x")
"""Base offset, length and producer id of a batch header. Only batches with a producer id are
replayed, and they are few."""


def replay(
    segments: list[Segment], producers: ProducerStateManager, from_offset: Offset, now: Millis
) -> None:
    """Update the producer state with the batches after the snapshot. `now` counts as their append
    time, because their producers may have been active until the node stopped."""
    ends = [segment.base_offset for segment in segments[1:]] + [None]
    for segment, end in zip(segments, ends, strict=True):
        if end is not None and end <= from_offset:
            continue
        segment.remove_aborted(from_offset)
        offset = from_offset
        while (chunk := read_valid_chunk(segment, offset, READ_BYTES)) is not None:
            _replay_chunk(segment, producers, chunk[1], from_offset, now)
            offset = chunk[2]
        if end is not None:
            segment.flush_indexes()
            segment.close()


def _replay_chunk(
    segment: Segment,
    producers: ProducerStateManager,
    chunk: bytes,
    from_offset: Offset,
    now: Millis,
) -> None:
    position = 0
    while position < len(chunk):
        base_offset, length, producer_id = _HEADER_FIELDS.unpack_from(chunk, position)
        if producer_id != NO_PRODUCER_ID and base_offset >= from_offset:
            try:
                header = peek(chunk, position)
                aborted = producers.update(chunk, position, header, header.base_offset, now)
            except MalformedMessage:
                # Stored like this. Consumers detect it; producers start without state.
                return
            if aborted is not None:
                segment.add_aborted(aborted)
        position += LENGTH_END + length
