"""Opens the log of a partition: without checks after a clean shutdown, with recovery otherwise.

Batches before the recovery point were synced and are trusted. Later batches are validated: each
must be complete, have a valid checksum, and follow the one before. The log is truncated at the
first invalid batch. Indexes and producer state are rebuilt as needed.
"""

import contextlib
from bisect import bisect_left
from collections.abc import Mapping
from itertools import pairwise
from struct import Struct
from typing import Final

from kohort.log.disk import Disk
from kohort.log.errors import CorruptFile
from kohort.log.file_names import (
    LOG,
    OFFSET_INDEX,
    SEGMENT_SUFFIXES,
    TIME_INDEX,
    parse_segment_file,
    segment_file,
)
from kohort.log.index import RELATIVE_OFFSET_MAX, Index
from kohort.log.limits import LEADER_EPOCH, Limits
from kohort.log.producer_snapshot import ProducerSnapshots
from kohort.log.producer_state import ProducerStateManager
from kohort.log.segment import Segment
from kohort.log.segment_swap import Repair, complete_interrupted_swaps, remove_segment
from kohort.types import Millis, Offset, value
from kohort.wire.batch import (
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    BatchHeader,
    peek,
    verify_crc,
)
from kohort.wire.batch_header import LENGTH_END
from kohort.wire.errors import MalformedMessage

_HEADER_FIELDS: Final = Struct(">qi31xq10x")
"""Base offset, length and producer id of a batch header. Only batches with a producer id are
replayed, and they are few."""

_FOLLOWS: Final = "removed, because the segment before it was truncated"


@value
class LoadParameters:
    """The files, checkpoints and settings of the log to open."""

    listed: Mapping[str, int]
    """The content of the directory."""
    start_offset: Offset | None
    recovery_point: Offset | None
    is_clean: bool
    """Whether the node was shut down cleanly."""
    index_interval_bytes: int
    """Used for indexes that are rebuilt."""


@value
class LoadedLog:
    segments: tuple[Segment, ...]
    start_offset: Offset
    end_offset: Offset
    recovery_point: Offset
    producers: ProducerStateManager
    snapshots: ProducerSnapshots
    repairs: tuple[Repair, ...]
    is_synced: bool
    """Nothing needs to be written or synced by a clean shutdown, unless the log changes."""


def unwritten_partition(disk: Disk, directory: str, limits: Limits) -> LoadedLog:
    """A log without files."""
    return LoadedLog(
        segments=(Segment.unwritten(disk, directory),),
        start_offset=Offset(0),
        end_offset=Offset(0),
        recovery_point=Offset(0),
        producers=ProducerStateManager(limits),
        snapshots=ProducerSnapshots(disk, directory, {}),
        repairs=(),
        is_synced=True,
    )


def load_partition(
    disk: Disk, directory: str, parameters: LoadParameters, limits: Limits, now: Millis
) -> LoadedLog:
    repairs, listed = complete_interrupted_swaps(disk, directory, parameters.listed)
    loader = _Loader(disk, directory, listed, now, repairs)
    segments = loader.open_segments(parameters.index_interval_bytes)
    start = parameters.start_offset or Offset(0)
    if segments:
        start = max(start, segments[0].base_offset)
        loader.drop_before(segments, start)
    end = loader.find_end(segments, parameters) if segments else start
    loader.complete_indexes(segments)
    if not segments or end < start:
        for segment in segments:
            loader.remove(segment, f"removed, because the log start offset is {start}")
        segments = [Segment.create(disk, directory, start, now)]
        end = start
    snapshots = ProducerSnapshots(disk, directory, listed)
    producers, offset = snapshots.load(start, end, now, limits)
    _replay(segments, producers, offset, now)
    # Most partitions of a large directory are idle. The first use reopens the file.
    segments[-1].close()
    return LoadedLog(
        segments=tuple(segments),
        start_offset=start,
        end_offset=end,
        recovery_point=end,
        producers=producers,
        snapshots=snapshots,
        repairs=tuple(repairs),
        is_synced=loader.is_synced,
    )


class _Loader:
    def __init__(
        self,
        disk: Disk,
        directory: str,
        listed: Mapping[str, int],
        now: Millis,
        repairs: list[Repair],
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._now = now
        self._repairs = repairs
        self._listed = listed
        self.is_synced = False
        """All files are as the clean shutdown has left them."""
        self._scanned: list[Segment] = []

    def open_segments(self, index_interval_bytes: int) -> list[Segment]:
        """Open every segment. Removes indexes without a log file."""
        listed = self._listed
        for name in listed:
            file = parse_segment_file(name)
            is_index = file is not None and file.kind in SEGMENT_SUFFIXES[1:]
            if file and is_index and segment_file(file.offset, LOG) not in listed:
                self._disk.remove(f"{self._directory}/{name}")
        offsets = sorted(
            file.offset for file in map(parse_segment_file, listed) if file and file.kind == LOG
        )
        segments = [Segment(self._disk, self._directory, each, listed) for each in offsets]
        for segment in segments:
            segment.set_index_interval(index_interval_bytes)
        return segments

    def complete_indexes(self, segments: list[Segment]) -> None:
        """Rebuild missing indexes of the segments that recovery has not scanned.

        Call `find_end` before: an unsynced segment may have an invalid tail even if it is not the
        last one.
        """
        for segment in segments[:-1]:
            if segment not in self._scanned and not _has_indexes(segment, self._listed):
                self._rebuild_indexes(segment)

    def drop_before(self, segments: list[Segment], start: Offset) -> None:
        """Remove segments before the log start offset that a crash has left."""
        while len(segments) > 1 and segments[1].base_offset <= start:
            remove_segment(self._disk, self._directory, segments.pop(0).base_offset)

    def remove(self, segment: Segment, reason: str) -> None:
        segment.close()
        self._add_repair(segment, 0, segment.size, reason)
        remove_segment(self._disk, self._directory, segment.base_offset)

    def find_end(self, segments: list[Segment], parameters: LoadParameters) -> Offset:
        """The log end offset, after truncating what is invalid."""
        if parameters.is_clean:
            # If this fails, the files have changed since the shutdown: recover as after a crash.
            with contextlib.suppress(CorruptFile):
                end = self._read_tail(segments[-1])
                if parameters.recovery_point in (None, end):
                    self.is_synced = not self._repairs
                    return end
        end = self._recover(segments, parameters.recovery_point)
        if parameters.recovery_point is not None and end < parameters.recovery_point:
            segment = segments[-1]
            reason = f"synced records up to offset {parameters.recovery_point} are missing"
            self._add_repair(segment, segment.size, 0, reason)
        return end

    def _read_tail(self, segment: Segment) -> Offset:
        segment.open_for_append(self._now)
        last = segment.offsets.find_last()
        if last is not None and not _points_at_batch(segment, *last):
            raise CorruptFile(segment.path(), "open", "the last index entry points at no batch")
        end = segment.base_offset
        for position, _, _, last_offset, timestamp in segment.walk(last[1] if last else 0):
            segment.index_batch(position, last_offset, timestamp)
            end = Offset(last_offset + 1)
        return end

    def _recover(self, segments: list[Segment], recovery_point: Offset | None) -> Offset:
        bases = [segment.base_offset for segment in segments]
        is_changed = bool(self._repairs)
        # If the recovery point is the base offset of a segment, the indexes of the segment before
        # may have been written after the checkpoint, so that segment is scanned too.
        at = max(0, bisect_left(bases, recovery_point or 0) - 1)
        count = len(segments)
        end = segments[at].base_offset
        scanned = self._scanned
        while at < len(segments):
            segment = segments[at]
            if segment.base_offset < end or (
                recovery_point is not None and segment.base_offset > max(end, recovery_point)
            ):
                break
            scan = _Scan(segment, recovery_point)
            scan.run(self._now)
            scanned.append(segment)
            end = scan.next_offset
            at += 1
            if scan.reason is not None:
                self._add_repair(segment, scan.position, segment.size - scan.position, scan.reason)
                segment.truncate(scan.position)
                is_changed = True
                break
            if end > (recovery_point or 0):
                segment.file.sync()
                is_changed = True
        for segment in segments[at:]:
            self.remove(segment, _FOLLOWS)
        del segments[at:]
        for segment in scanned[:-1]:
            segment.seal()
            segment.sync()
            segment.close()
        if is_changed or at < count or len(scanned) > 1:
            # Not needed if all records were synced, with the names of their files.
            self._disk.sync_directory(self._directory)
        return end

    def _rebuild_indexes(self, segment: Segment) -> None:
        segment.offsets.truncate_to(0)
        segment.times.truncate_to(0)
        segment.open_for_append(self._now)
        for position, _, _, last_offset, timestamp in segment.walk(0):
            segment.index_batch(position, last_offset, timestamp)
        segment.seal()
        segment.close()
        self._add_repair(segment, 0, 0, "rebuilt the missing indexes")

    def _add_repair(
        self, segment: Segment, position: int, bytes_truncated: int, reason: str
    ) -> None:
        self._repairs.append(
            Repair(
                path=segment.path(),
                position=position,
                bytes_truncated=bytes_truncated,
                reason=reason,
            )
        )


class _Scan:
    """A scan of one segment up to its end or its first invalid batch."""

    def __init__(self, segment: Segment, recovery_point: Offset | None) -> None:
        self._segment = segment
        self._recovery_point = recovery_point
        self.next_offset = segment.base_offset
        self.position = 0
        self.reason: str | None = None

    def run(self, now: Millis) -> None:
        segment = self._segment
        _truncate_indexes(segment, self._recovery_point)
        segment.open_for_append(now)
        last = segment.offsets.find_last()
        self.position = last[1] if last else 0
        for _, chunk, _ in segment.chunks(self.position):
            at = 0
            while at < len(chunk):
                header, self.reason = self._check(chunk, at)
                if header is None:
                    return
                timestamp = header.max_timestamp if header.record_count else NO_TIMESTAMP
                segment.index_batch(self.position, header.last_offset, timestamp)
                self.next_offset = header.next_offset
                at += header.size_in_bytes
                self.position += header.size_in_bytes
        if self.position < segment.size:
            self.reason = "truncated batch"

    def _check(self, chunk: bytes, at: int) -> tuple[BatchHeader | None, str | None]:
        try:
            header = peek(chunk, at)
            is_new = self._recovery_point is None or header.base_offset >= self._recovery_point
            if is_new:
                verify_crc(chunk, at, header)
        except MalformedMessage as error:
            return None, f"{error.field}: {error.reason}"
        base, expected = header.base_offset, self.next_offset
        # The checksum does not cover the offset and the leader epoch. Batches after the recovery
        # point were never compacted, so they have no gaps.
        is_exact = is_new and self._recovery_point is not None
        if base < expected or (is_exact and base != expected):
            return None, f"expected offset {expected}, found {base}"
        if is_exact and header.partition_leader_epoch != LEADER_EPOCH:
            return (
                None,
                f"expected leader epoch {LEADER_EPOCH}, found {header.partition_leader_epoch}",
            )
        if header.last_offset - self._segment.base_offset > RELATIVE_OFFSET_MAX:
            return None, f"offset {header.last_offset} is too far from the segment's base offset"
        return header, None


def _truncate_indexes(segment: Segment, recovery_point: Offset | None) -> None:
    """Keep only the valid index entries of synced batches.

    The indexes were not synced, so one may lack entries that the other has. Batches after the last
    time index entry are scanned again.
    """
    below = (recovery_point or 0) - segment.base_offset
    times = list(segment.times.entries()) if _is_ascending(segment.times) else []
    times = [entry for entry in times if entry[1] < below]
    offsets = list(segment.offsets.entries()) if _is_ascending(segment.offsets) else []
    offsets = [entry for entry in offsets if times and entry[0] <= times[-1][1]]
    if offsets and not _points_at_batch(segment, *offsets[-1]):
        offsets = []
    segment.offsets.truncate_to(len(offsets))
    segment.times.truncate_to(len(times) if offsets else 0)


def _is_ascending(index: Index) -> bool:
    entries = list(index.entries())
    return all(a[0] < b[0] and a[1] <= b[1] for a, b in pairwise(entries)) and all(
        min(entry) >= 0 for entry in entries
    )


def _points_at_batch(segment: Segment, relative: int, position: int) -> bool:
    try:
        # The file may end exactly where the entry points.
        found = next(segment.walk(position), None)
    except CorruptFile:
        return False
    return found is not None and found[3] == segment.base_offset + relative


def _has_indexes(segment: Segment, listed: Mapping[str, int]) -> bool:
    for kind, size in ((OFFSET_INDEX, 8), (TIME_INDEX, 12)):
        kept = listed.get(segment_file(segment.base_offset, kind))
        if kept is None or kept % size:
            return False
    return True


def _replay(
    segments: list[Segment], producers: ProducerStateManager, from_offset: Offset, now: Millis
) -> None:
    """Update the producer state with the batches after the snapshot. `now` counts as their append
    time, because their producers may have been active until the node stopped."""
    ends = [segment.base_offset for segment in segments[1:]] + [None]
    for segment, end in zip(segments, ends, strict=True):
        if end is not None and end <= from_offset:
            continue
        segment.remove_aborted(from_offset)
        found = segment.find(from_offset)
        if found is not None:
            for _, chunk, _ in segment.chunks(found[0]):
                _replay_chunk(segment, producers, chunk, from_offset, now)
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
                # Corrupted after it was synced. Consumers detect it; producers start without state.
                return
            if aborted is not None:
                segment.add_aborted(aborted)
        position += LENGTH_END + length
