"""Batches that are appended to a partition: the result, and those that this node has built."""

from typing import NamedTuple

from kohort.types import Millis, Offset, value


@value
class Appended:
    """The offsets of an appended batch, or for a duplicate, those of the original."""

    base_offset: Offset
    last_offset: Offset
    append_ms: Millis
    """The timestamp under LogAppendTime; -1 under CreateTime."""
    start_offset: Offset
    is_duplicate: bool


class TrustedBatch(NamedTuple):
    """A batch that this node has built for a known base offset. All records have one timestamp."""

    data: bytes
    record_count: int
    timestamp: Millis
