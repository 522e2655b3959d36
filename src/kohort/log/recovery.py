"""Opening a partition: quickly after a clean stop, and after any other with a look at its tail.

What lies before the recovery point was synced, and is believed. Behind it, batches are checked one
by one: whole, with the right checksum, each following the one before. At the first that is not,
the log is cut. Indexes and producers are brought up to date on the way.
"""

import contextlib
from bisect import bisect_left
from collections.abc import Mapping
from itertools import pairwise
from struct import Struct
from typing import Final

from kohort.log.disk import Disk
from kohort.log.errors import Damaged
from kohort.log.index import RELATIVE_OFFSET_MAX, Index
from kohort.log.limits import LEADER_EPOCH, Limits
from kohort.log.names import (
    LOG,
    OFFSET_INDEX,
    SEGMENT_SUFFIXES,
    TIME_INDEX,
    find_segment_file,
    segment_file,
)
from kohort.log.producers import Producers
from kohort.log.segment import Segment
from kohort.log.snapshots import Snapshots
from kohort.log.swap import Recovered, finish_interrupted, remove_segment
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

_GLANCE: Final = Struct(">qi31xq10x")
"""Of a batch's header: base offset, length, producer id. Few batches have a producer to replay."""

_FOLLOWS: Final = "it follows a segment that ends too early"


@value
class Known:
    """What is known of a partition from elsewhere."""

    start_offset: Offset | None
    recovery_point: Offset | None
    is_clean: bool
    """Whether the log was closed as it should."""
    index_interval_bytes: int
    """How far apart the entries of an index that is made again are."""


@value
class Loaded:
    """A partition, ready to be used."""

    segments: tuple[Segment, ...]
    start_offset: Offset
    end_offset: Offset
    recovery_point: Offset
    producers: Producers
    snapshots: Snapshots
    recovered: tuple[Recovered, ...]


def load_partition(disk: Disk, directory: str, known: Known, limits: Limits, now: Millis) -> Loaded:
    recovered = finish_interrupted(disk, directory)
    loader = _Loader(disk, directory, now, recovered)
    segments = loader.open_segments(known.index_interval_bytes)
    start = known.start_offset or Offset(0)
    if segments:
        start = max(start, segments[0].base_offset)
        loader.drop_before(segments, start)
    end = loader.find_end(segments, known) if segments else start
    loader.complete_indexes(segments)
    if not segments or end < start:
        for segment in segments:
            loader.remove(segment, f"the log begins at offset {start}")
        segments = [Segment.create(disk, directory, start, now)]
        end = start
    snapshots = Snapshots(disk, directory, disk.list(directory))
    producers, offset = snapshots.load(start, end, now, limits)
    _replay(segments, producers, offset, now)
    # Most partitions of a large directory rest; one that is used opens its file again.
    segments[-1].close()
    return Loaded(
        segments=tuple(segments),
        start_offset=start,
        end_offset=end,
        recovery_point=end,
        producers=producers,
        snapshots=snapshots,
        recovered=tuple(recovered),
    )


class _Loader:
    def __init__(self, disk: Disk, directory: str, now: Millis, recovered: list[Recovered]) -> None:
        self._disk = disk
        self._directory = directory
        self._now = now
        self._recovered = recovered
        self._listed: Mapping[str, int] = {}
        self._scanned: list[Segment] = []

    def open_segments(self, index_interval_bytes: int) -> list[Segment]:
        """Every log with its indexes; those without a log are removed."""
        self._listed = listed = self._disk.list(self._directory)
        for name in listed:
            file = find_segment_file(name)
            is_index = file is not None and file.kind in SEGMENT_SUFFIXES[1:]
            if file and is_index and segment_file(file.offset, LOG) not in listed:
                self._disk.remove(f"{self._directory}/{name}")
        offsets = sorted(
            file.offset for file in map(find_segment_file, listed) if file and file.kind == LOG
        )
        segments = [Segment(self._disk, self._directory, each, listed) for each in offsets]
        for segment in segments:
            segment.index_every(index_interval_bytes)
        return segments

    def complete_indexes(self, segments: list[Segment]) -> None:
        """Make those that are missing; where batches were just looked at, none is.

        Not before the end is found: a segment that was never synced may be torn, though another
        follows it.
        """
        for segment in segments[:-1]:
            if segment not in self._scanned and not _has_indexes(segment, self._listed):
                self._index_again(segment)

    def drop_before(self, segments: list[Segment], start: Offset) -> None:
        """What deletion or retention had meant to remove."""
        while len(segments) > 1 and segments[1].base_offset <= start:
            remove_segment(self._disk, self._directory, segments.pop(0).base_offset)

    def remove(self, segment: Segment, reason: str) -> None:
        segment.close()
        self._note(segment, 0, segment.size, reason)
        remove_segment(self._disk, self._directory, segment.base_offset)

    def find_end(self, segments: list[Segment], known: Known) -> Offset:
        """The offset after the last batch, once everything behind it is cut."""
        if known.is_clean:
            # Otherwise somebody has changed the files since; look at them as after a crash.
            with contextlib.suppress(Damaged):
                end = self._read_tail(segments[-1])
                if known.recovery_point in (None, end):
                    return end
        end = self._recover(segments, known.recovery_point)
        if known.recovery_point is not None and end < known.recovery_point:
            segment = segments[-1]
            reason = f"offsets up to {known.recovery_point} were synced and are missing"
            self._note(segment, segment.size, 0, reason)
        return end

    def _read_tail(self, segment: Segment) -> Offset:
        segment.grow(self._now)
        last = segment.offsets.find_last()
        if last is not None and not _points_at_batch(segment, *last):
            raise Damaged(segment.path(), "open", "its index points elsewhere")
        end = segment.base_offset
        for position, _, _, last_offset, timestamp in segment.walk(last[1] if last else 0):
            segment.note(position, last_offset, timestamp)
            end = Offset(last_offset + 1)
        return end

    def _recover(self, segments: list[Segment], recovery_point: Offset | None) -> Offset:
        bases = [segment.base_offset for segment in segments]
        # Where the point lies between two segments, the indexes of the first may have been written
        # after it was noted, when that one was sealed; they are looked at as well.
        at = max(0, bisect_left(bases, recovery_point or 0) - 1)
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
                self._note(segment, scan.position, segment.size - scan.position, scan.reason)
                segment.truncate(scan.position)
                break
            if end > (recovery_point or 0):
                segment.file.sync()
        for segment in segments[at:]:
            self.remove(segment, _FOLLOWS)
        del segments[at:]
        for segment in scanned[:-1]:
            segment.seal()
            segment.sync()
            segment.close()
        self._disk.sync_directory(self._directory)
        return end

    def _index_again(self, segment: Segment) -> None:
        segment.offsets.keep_first(0)
        segment.times.keep_first(0)
        segment.grow(self._now)
        for position, _, _, last_offset, timestamp in segment.walk(0):
            segment.note(position, last_offset, timestamp)
        segment.seal()
        segment.close()
        self._note(segment, 0, 0, "its indexes were missing and were made again")

    def _note(self, segment: Segment, position: int, bytes_cut: int, reason: str) -> None:
        self._recovered.append(
            Recovered(path=segment.path(), position=position, bytes_cut=bytes_cut, reason=reason)
        )


class _Scan:
    """A walk through one segment, up to its end or to the first batch that cannot be kept."""

    def __init__(self, segment: Segment, recovery_point: Offset | None) -> None:
        self._segment = segment
        self._recovery_point = recovery_point
        self.next_offset = segment.base_offset
        self.position = 0
        self.reason: str | None = None

    def run(self, now: Millis) -> None:
        segment = self._segment
        _keep_trusted(segment, self._recovery_point)
        segment.grow(now)
        last = segment.offsets.find_last()
        self.position = last[1] if last else 0
        for _, chunk, _ in segment.chunks(self.position):
            at = 0
            while at < len(chunk):
                header, self.reason = self._check(chunk, at)
                if header is None:
                    return
                timestamp = header.max_timestamp if header.record_count else NO_TIMESTAMP
                segment.note(self.position, header.last_offset, timestamp)
                self.next_offset = header.next_offset
                at += header.size_in_bytes
                self.position += header.size_in_bytes
        if self.position < segment.size:
            self.reason = "a batch is cut short"

    def _check(self, chunk: bytes, at: int) -> tuple[BatchHeader | None, str | None]:
        try:
            header = peek(chunk, at)
            is_new = self._recovery_point is None or header.base_offset >= self._recovery_point
            if is_new:
                verify_crc(chunk, at, header)
        except MalformedMessage as error:
            return None, f"{error.field}: {error.reason}"
        base, expected = header.base_offset, self.next_offset
        # The checksum covers neither offset nor epoch. What was never compacted has no gaps.
        is_exact = is_new and self._recovery_point is not None
        if base < expected or (is_exact and base != expected):
            return None, f"offset {base} where {expected} was expected"
        if is_exact and header.partition_leader_epoch != LEADER_EPOCH:
            return None, f"leader epoch {header.partition_leader_epoch}, not {LEADER_EPOCH}"
        if header.last_offset - self._segment.base_offset > RELATIVE_OFFSET_MAX:
            return None, f"offset {header.last_offset} is too far from the segment's first"
        return header, None


def _keep_trusted(segment: Segment, recovery_point: Offset | None) -> None:
    """Index entries for what was synced, provided they make sense.

    Neither index was synced, so one of them may lack what the other has. What comes after the last
    time is looked at again.
    """
    below = (recovery_point or 0) - segment.base_offset
    times = list(segment.times.entries()) if _is_ascending(segment.times) else []
    times = [entry for entry in times if entry[1] < below]
    offsets = list(segment.offsets.entries()) if _is_ascending(segment.offsets) else []
    offsets = [entry for entry in offsets if times and entry[0] <= times[-1][1]]
    if offsets and not _points_at_batch(segment, *offsets[-1]):
        offsets = []
    segment.offsets.keep_first(len(offsets))
    segment.times.keep_first(len(times) if offsets else 0)


def _is_ascending(index: Index) -> bool:
    entries = list(index.entries())
    return all(a[0] < b[0] and a[1] <= b[1] for a, b in pairwise(entries)) and all(
        min(entry) >= 0 for entry in entries
    )


def _points_at_batch(segment: Segment, relative: int, position: int) -> bool:
    try:
        # Nothing stands there if the file ends just where the entry points.
        found = next(segment.walk(position), None)
    except Damaged:
        return False
    return found is not None and found[3] == segment.base_offset + relative


def _has_indexes(segment: Segment, listed: Mapping[str, int]) -> bool:
    for kind, size in ((OFFSET_INDEX, 8), (TIME_INDEX, 12)):
        kept = listed.get(segment_file(segment.base_offset, kind))
        if kept is None or kept % size:
            return False
    return True


def _replay(
    segments: list[Segment], producers: Producers, from_offset: Offset, now: Millis
) -> None:
    """Shows the producers what was written after their snapshot. Who wrote it was heard of until
    the node stopped, and may be about to ask again."""
    ends = [segment.base_offset for segment in segments[1:]] + [None]
    for segment, end in zip(segments, ends, strict=True):
        if end is not None and end <= from_offset:
            continue
        segment.forget_aborted(from_offset)
        found = segment.find(from_offset)
        if found is not None:
            for _, chunk, _ in segment.chunks(found[0]):
                _replay_chunk(segment, producers, chunk, from_offset, now)
        if end is not None:
            segment.flush_indexes()
            segment.close()


def _replay_chunk(
    segment: Segment, producers: Producers, chunk: bytes, from_offset: Offset, now: Millis
) -> None:
    position = 0
    while position < len(chunk):
        base_offset, length, producer_id = _GLANCE.unpack_from(chunk, position)
        if producer_id != NO_PRODUCER_ID and base_offset >= from_offset:
            try:
                header = peek(chunk, position)
                aborted = producers.note(chunk, position, header, header.base_offset, now)
            except MalformedMessage:
                # Rotten since it was synced. Readers will notice; the producers may begin anew.
                return
            if aborted is not None:
                segment.note_aborted(aborted)
        position += LENGTH_END + length
