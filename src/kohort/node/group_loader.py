"""Reads the records of `__consumer_offsets` back when a node starts.

`read_batches` is the plain path: every record of every batch, in order. `GroupLoader` is the fast
path. Of commits that differ only in their numbers it decodes the last one and skips the others,
because each replaces the one before. Both lead to the same state of the coordinator: commits that
wait are decoded before any other record of their group that could depend on them.

Checksums are verified by `PartitionLog.batches`, which skips and reports damaged batches.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final

from kohort.coordinator.record_codec import Decoded, Skipped, decode_record
from kohort.coordinator.records import (
    ClassicGroupMetadata,
    OffsetCommitted,
    TransactionEnded,
    UnknownRecord,
)
from kohort.types import GroupId
from kohort.wire import records as stored
from kohort.wire.batch import BatchHeader, Codec, iter_records, split
from kohort.wire.batch_header import HEADER_BYTES, LENGTH_END, peek_whole
from kohort.wire.control_batch import MarkerType, find_marker
from kohort.wire.errors import MalformedMessage
from kohort.wire.repeated_batches import RepeatedBatches
from kohort.wire.varint import read_uvarint

_SHAPE: Final = Struct(">8xi4xb4xhi30xi")
"""Parts of the batch header: length, magic, attributes, last offset delta, record count."""

_VERSION: Final = Struct(">h")
_NUMBERS_BYTES: Final = 12
"""An offset and a leader epoch."""
_TIME_BYTES: Final = 8

_WITH_EPOCH: Final = (3, 4)
"""The versions of OffsetCommitValue with offset, leader epoch, metadata and timestamp."""


def read_batches(chunk: bytes) -> Iterator[Decoded]:
    """Decode the records of consecutive batches, written by Kohort or by Apache Kafka."""
    for position, header in split(chunk):
        yield from _read_batch(chunk, position, header)


def _read_batch(chunk: bytes, position: int, header: BatchHeader) -> Iterator[Decoded]:
    records = iter_records(chunk, position, check_crc=False)
    if header.is_control:
        for record in records:
            marker = find_marker(record)
            if marker is not None:
                yield TransactionEnded(
                    producer_id=header.producer_id,
                    is_commit=marker.type is MarkerType.COMMIT,
                )
        return
    producer_id = header.producer_id if header.is_transactional else None
    epoch = header.producer_epoch if header.is_transactional else None
    for record in records:
        yield decode_record(record.key, record.value, producer_id, epoch)


class _RepeatedCommit:
    """Commits that differ only in their numbers; the last of them is in its group's `waiting`."""

    __slots__ = ("header", "waiting")

    def __init__(self, header: BatchHeader, waiting: "dict[_RepeatedCommit, bytes]") -> None:
        self.header = header
        self.waiting = waiting


class GroupLoader:
    """Loads the log of one partition: `read` its chunks in their order, then `finish`."""

    def __init__(self) -> None:
        self._repeated_batches: RepeatedBatches[_RepeatedCommit] = RepeatedBatches()
        self._waiting: dict[GroupId, dict[_RepeatedCommit, bytes]] = {}
        """By group: commits that are not decoded yet, in log order. The later one wins."""

    def read(self, chunk: bytes) -> Iterator[Decoded]:
        position, end = 0, len(chunk)
        find = self._repeated_batches.find
        while position < end:
            shape, commit, body, stop = None, None, b"", end
            if end - position >= HEADER_BYTES:
                shape = _SHAPE.unpack_from(chunk, position)
                stop = position + LENGTH_END + shape[0]
                if stop <= end:
                    body = chunk[position + HEADER_BYTES : stop]
                    commit = find(shape, body)
            if commit is not None:
                waiting = commit.waiting
                # A dict keeps the place of an existing key, so the key is removed first.
                waiting.pop(commit, None)
                waiting[commit] = body
            else:
                try:
                    header = peek_whole(chunk, position)
                    records = list(_read_batch(chunk, position, header))
                except MalformedMessage as error:
                    # Its checksum is right, so it was written like this.
                    offset = _base_offset(chunk, position)
                    yield Skipped(key=b"", reason=f"batch at offset {offset}: {error}")
                    position = stop
                    continue
                if not self._learn(shape, header, records, body):
                    yield from self._in_order(records)
            position = stop

    def finish(self) -> Iterator[OffsetCommitted]:
        """Decode the commits that still wait."""
        for waiting in self._waiting.values():
            yield from _take(waiting)

    def _in_order(self, records: list[Decoded]) -> Iterator[Decoded]:
        for record in records:
            # The members of a group and the end of a transaction do not depend on waiting commits:
            # a commit that came later than the transaction's wins in either order.
            if not isinstance(
                record, Skipped | UnknownRecord | ClassicGroupMetadata | TransactionEnded
            ):
                yield from _take(self._waiting.get(record.group_id, {}))
            yield record

    def _learn(
        self, shape: object, header: BatchHeader, records: list[Decoded], body: bytes
    ) -> bool:
        """Whether the batch became a template; it then waits."""
        if header.codec is not Codec.NONE or header.is_transactional or header.is_control:
            return False
        group_id = _find_committing_group(records)
        first = records[0] if records else None
        if group_id is None or not isinstance(first, OffsetCommitted):
            return False
        if not self._repeated_batches.is_repeated((shape, group_id, first.topic, first.partition)):
            return False
        gaps = _find_numbers(body, header.record_count)
        waiting = self._waiting.setdefault(group_id, {})
        commit = _RepeatedCommit(header, waiting)
        if gaps is None or not self._repeated_batches.store(
            shape, body, len(records), gaps, commit
        ):
            return False
        waiting[commit] = body
        return True


def _base_offset(chunk: bytes, position: int) -> int:
    return int.from_bytes(chunk[position : position + 8], signed=True)


def _take(waiting: dict[_RepeatedCommit, bytes]) -> Iterator[OffsetCommitted]:
    for commit, body in waiting.items():
        for each in stored.read_records(body, commit.header, message="RecordBatch", shift=0):
            record = decode_record(each.key, each.value)
            assert isinstance(record, OffsetCommitted), f"{record} was a commit before"
            yield record
    waiting.clear()


def _find_committing_group(records: list[Decoded]) -> GroupId | None:
    """The group of a batch that holds nothing but commits of one group."""
    group_ids = {each.group_id if isinstance(each, OffsetCommitted) else None for each in records}
    return group_ids.pop() if len(group_ids) == 1 else None


def _find_numbers(body: bytes, count: int) -> list[tuple[int, int]] | None:
    """Where the numbers of each commit are; None if a value has another version.

    The batch was read before, so it is well-formed.
    """
    gaps = []
    for start, _ in stored.find_value_positions(body, count):
        (version,) = _VERSION.unpack_from(body, start)
        if version not in _WITH_EPOCH:
            return None
        numbers = start + _VERSION.size
        time = _find_time(body, numbers + _NUMBERS_BYTES, version)
        gaps += [(numbers, numbers + _NUMBERS_BYTES), (time, time + _TIME_BYTES)]
    return gaps


def _find_time(body: bytes, position: int, version: int) -> int:
    """Where the time of a commit is: behind its metadata, which is a string of either kind."""
    if version == 4:
        length, position = read_uvarint(body, position)
        return position + length - 1
    (length,) = _VERSION.unpack_from(body, position)
    return position + _VERSION.size + int(length)
