"""Opens the log of a partition: without checks after a clean shutdown, with recovery otherwise.

Batches before the recovery point were synced. If one of them is invalid, it is damaged and set
aside, and nothing is removed. Later batches are validated: each must be complete, have a valid
checksum, and follow the one before. The log is truncated at the first of them that is invalid.
Indexes and producer state are rebuilt as needed.

If records before the recovery point are missing, the log is not opened and no file is changed,
unless the operator has given them up. Even then their offsets are not used again.
"""

from bisect import bisect_left
from collections.abc import Mapping
from itertools import pairwise
from typing import Final

from kohort.log.damage import BadBatch, BatchInfo, DamageFinder
from kohort.log.disk import Disk
from kohort.log.errors import BadIndex, RecordsMissing
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
from kohort.log.log_segments import set_limits
from kohort.log.producer_replay import replay
from kohort.log.producer_snapshot import ProducerSnapshots
from kohort.log.producer_state import ProducerStateManager
from kohort.log.repair import Repair, RepairKind
from kohort.log.segment import Segment
from kohort.log.segment_lookup import (
    check_time_entry,
    rebuild_indexes,
    set_aside,
    verify,
    walk_from,
)
from kohort.log.segment_swap import complete_interrupted_swaps, remove_segment
from kohort.types import Millis, Offset, value
from kohort.wire.batch import (
    NO_TIMESTAMP,
    BatchHeader,
    peek,
    verify_crc,
)
from kohort.wire.errors import MalformedMessage

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
    accepts_loss: bool = False
    """Whether the operator has given up missing records."""
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


def refuse_partition(
    disk: Disk, directory: str, parameters: LoadParameters, limits: Limits
) -> LoadedLog:
    """What is known of a log that cannot be opened. No file is opened or changed."""
    start = parameters.start_offset or Offset(0)
    end = max(start, parameters.recovery_point or Offset(0))
    nothing = Segment(disk, directory, end, {segment_file(end, LOG): 0})
    return LoadedLog(
        segments=(nothing,),
        start_offset=start,
        end_offset=end,
        recovery_point=end,
        producers=ProducerStateManager(limits),
        snapshots=ProducerSnapshots(disk, directory, {}),
        repairs=(),
        is_synced=True,
    )


def load_partition(
    disk: Disk, directory: str, parameters: LoadParameters, limits: Limits, now: Millis
) -> LoadedLog:
    repairs, listed = complete_interrupted_swaps(disk, directory, parameters.listed)
    loader = _Loader(disk, directory, parameters, now, listed=listed, repairs=repairs)
    segments = loader.open_segments(parameters.index_interval_bytes)
    start = loader.find_start(segments)
    loader.drop_before(segments, start)
    end = loader.find_end(segments, start)
    loader.complete_indexes(segments)
    if not segments or end < start:
        for segment in segments:
            loader.remove(segment, f"removed, because the log start offset is {start}")
        segments = [Segment.create(disk, directory, start, now)]
        end = start
    snapshots = ProducerSnapshots(disk, directory, listed)
    producers, offset = snapshots.load(start, end, now, limits)
    replay(segments, producers, offset, now)
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
        parameters: LoadParameters,
        now: Millis,
        *,
        listed: Mapping[str, int],
        repairs: list[Repair],
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._now = now
        self._repairs = repairs
        self._listed = listed
        self._parameters = parameters
        self._recovery_point = parameters.recovery_point or Offset(0)
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
            segment.on_repair = self._repairs.append
        set_limits(segments)
        return segments

    def find_start(self, segments: list[Segment]) -> Offset:
        """The log start offset. Raises RecordsMissing if synced records after it are missing."""
        stored = self._parameters.start_offset
        start = stored or Offset(0)
        if not segments:
            if start < self._recovery_point:
                self._lose(start, self._recovery_point, "it has no segment")
                return self._recovery_point
            return start
        first = segments[0].base_offset
        # Without an entry the log may have been copied from Kafka, which stores fewer entries.
        if stored is not None and stored < min(first, self._recovery_point):
            self._lose(stored, first, f"its first segment is {segments[0].path()}")
        return max(start, first)

    def _lose(self, first: Offset, end: Offset, found: str) -> None:
        what = f"offsets {first} to {end - 1} are missing: {found}, but the checkpoint files of the"
        reason = f"{what} data directory say that these records were stored"
        if not self._parameters.accepts_loss:
            raise RecordsMissing(self._directory, "open", reason)
        self._repairs.append(
            Repair(path=self._directory, reason=reason, kind=RepairKind.DATA_LOSS_ACCEPTED)
        )

    def complete_indexes(self, segments: list[Segment]) -> None:
        """Rebuild missing indexes of the segments that recovery has not scanned.

        Call `find_end` before: an unsynced segment may have an invalid tail even if it is not the
        last one.
        """
        for segment in segments[:-1]:
            missing = _find_missing_index(segment, self._listed)
            if segment not in self._scanned and missing is not None:
                bad = BadIndex(segment.path(missing), "it was missing or incomplete")
                rebuild_indexes(segment, bad)
                segment.close()

    def drop_before(self, segments: list[Segment], start: Offset) -> None:
        """Remove segments before the log start offset that a crash has left."""
        while len(segments) > 1 and segments[1].base_offset <= start:
            remove_segment(self._disk, self._directory, segments.pop(0).base_offset)

    def remove(self, segment: Segment, reason: str) -> None:
        segment.close()
        self._report_cut(segment, 0, reason)
        remove_segment(self._disk, self._directory, segment.base_offset)

    def find_end(self, segments: list[Segment], start: Offset) -> Offset:
        """The log end offset, after truncating what is invalid."""
        if not segments:
            return start
        recovery_point = self._parameters.recovery_point
        if self._parameters.is_clean:
            # If this fails, the files have changed since the shutdown: recover as after a crash.
            end = self._read_tail(segments[-1])
            if end is not None and recovery_point in (None, end):
                self.is_synced = not self._repairs
                return end
        return self._recover(segments, start)

    def _read_tail(self, segment: Segment) -> Offset | None:
        """The log end offset, or None if the last batches are damaged. Rebuilds the indexes if
        their last entries are wrong."""
        segment.open_for_append(self._now)
        last_time = segment.times.find_last()
        end = segment.base_offset
        try:
            for position, _, _, last_offset, timestamp in walk_from(segment, RELATIVE_OFFSET_MAX):
                segment.index_batch(position, last_offset, timestamp)
                end = Offset(last_offset + 1)
        except BadBatch:
            return None
        if self._parameters.recovery_point in (None, end):
            try:
                check_time_entry(segment, last_time)
            except BadIndex as bad:
                rebuild_indexes(segment, bad)
        return None if segment.damaged else end

    def _recover(self, segments: list[Segment], start: Offset) -> Offset:
        recovery_point, count = self._recovery_point, len(segments)
        bases = [segment.base_offset for segment in segments]
        # If the recovery point is the base offset of a segment, the indexes of the segment before
        # may have been written after the checkpoint, so that segment is scanned too.
        first = max(0, bisect_left(bases, recovery_point) - 1)
        end, cut = self._scan(segments, first)
        scanned = self._scanned
        at = first + len(scanned)
        lost_from = max(end, start)
        if lost_from < recovery_point:
            self._lose(lost_from, recovery_point, f"its last segment is {segments[at - 1].path()}")
        if cut is not None:
            self._report_cut(segments[at - 1], cut.position, cut.reason or "")
            segments[at - 1].truncate(cut.position)
        for segment in segments[at:]:
            self.remove(segment, _FOLLOWS)
        del segments[at:]
        if lost_from < recovery_point:
            segments.append(Segment.create(self._disk, self._directory, recovery_point, self._now))
            end = recovery_point
        for segment in scanned if segments[-1] not in scanned else scanned[:-1]:
            segment.seal()
            segment.sync()
            segment.close()
        if self._repairs or end > recovery_point or at < count or len(scanned) > 1:
            # Not needed if all records were synced, with the names of their files.
            self._disk.sync_directory(self._directory)
        return end

    def _scan(self, segments: list[Segment], at: int) -> "tuple[Offset, _Scan | None]":
        """Scan the segments from an index on. Returns the log end offset, and the scan of the
        segment that must be truncated."""
        recovery_point = self._recovery_point
        is_known = self._parameters.recovery_point is not None
        end = segments[at].base_offset
        for segment in segments[at:]:
            if segment.base_offset < end or (
                is_known and segment.base_offset > max(end, recovery_point)
            ):
                break
            scan = _Scan(segment, self._parameters)
            scan.run(self._now)
            self._scanned.append(segment)
            end = scan.next_offset
            if scan.reason is not None:
                return end, scan
            if end > recovery_point:
                segment.file.sync()
        return end, None

    def _report_cut(self, segment: Segment, position: int, reason: str) -> None:
        self._repairs.append(
            Repair(
                path=segment.path(),
                position=position,
                bytes_truncated=segment.size - position,
                reason=reason,
                kind=RepairKind.TAIL_CUT,
            )
        )


class _Scan:
    """A scan of one segment up to its end, or to its first invalid batch after the recovery point.

    A batch gets its index entry when the next one is valid: its length may be wrong.
    """

    def __init__(self, segment: Segment, parameters: LoadParameters) -> None:
        self._segment = segment
        self._recovery_point = parameters.recovery_point
        self._synced_to = parameters.recovery_point or Offset(0)
        self._is_clean = parameters.is_clean
        self.next_offset = segment.base_offset
        self.position = 0
        self.reason: str | None = None
        """Why the segment must be truncated at `position`."""
        self._last: BatchInfo | None = None
        self._last_expected = segment.base_offset

    def run(self, now: Millis) -> None:
        segment = self._segment
        _truncate_indexes(segment, self._recovery_point)
        segment.open_for_append(now)
        last = segment.offsets.find_last()
        self.position = last[1] if last else 0
        while self.position < segment.size and self.reason is None:
            bad = self._find_bad()
            if bad is None:
                break
            if self._is_damage(bad):
                self._set_aside(bad)
            else:
                self.reason = f"{bad.reason}; cut from offset {self.next_offset} on"
        self._check_last()
        self._index_last()

    def _check_last(self) -> None:
        """If the log seems to end too early, the last offset of its last batch may be damaged."""
        is_complete = self._segment.limit is not None or self.next_offset >= self._synced_to
        if self._last is None or is_complete:
            return
        try:
            verify(self._segment, self._last)
        except BadBatch as bad:
            self.next_offset = bad.expected
            self._set_aside(bad)

    def _is_damage(self, bad: BadBatch) -> bool:
        """Whether synced batches are damaged; otherwise it is the tail of unsynced writes. After a
        clean shutdown all batches are synced, even if the recovery point is damaged."""
        segment = self._segment
        found = DamageFinder(segment.file, segment.size, segment.limit).find(bad)
        is_followed = found.next_offset is not None
        return found.first_offset < self._synced_to or (self._is_clean and is_followed)

    def _find_bad(self) -> BadBatch | None:
        """Read valid batches, up to the first one that is not."""
        segment = self._segment
        for _, chunk, _ in segment.chunks(self.position):
            at = 0
            while at < len(chunk):
                header, reason = self._check(chunk, at)
                if header is None or reason is not None:
                    return self._bad_batch(reason or "", header)
                self._index_last()
                timestamp = header.max_timestamp if header.record_count else NO_TIMESTAMP
                size = header.size_in_bytes
                self._last = self.position, size, header.base_offset, header.last_offset, timestamp
                # The offset before the first batch after an index entry is unknown.
                is_first = self.position > 0 and self.next_offset == segment.base_offset
                self._last_expected = header.base_offset if is_first else self.next_offset
                self.next_offset = header.next_offset
                at += size
                self.position += size
        return self._bad_batch("truncated batch") if self.position < segment.size else None

    def _bad_batch(self, reason: str, header: BatchHeader | None = None) -> BadBatch:
        return BadBatch(
            self._segment.path(),
            self.position,
            reason,
            expected=self.next_offset,
            base_offset=None if header is None else header.base_offset,
            previous=self._last,
            previous_expected=self._last_expected,
        )

    def _set_aside(self, bad: BadBatch) -> None:
        found = set_aside(self._segment, bad)
        if self._last is not None and found.position == self._last[0]:
            self._last = None
        self._index_last()
        self.position = found.end
        self.next_offset = found.next_offset or self._segment.limit or self._synced_to

    def _index_last(self) -> None:
        if self._last is not None:
            position, _, _, last_offset, timestamp = self._last
            self._segment.index_batch(position, last_offset, timestamp)
            self._last = None

    def _check(self, chunk: bytes, at: int) -> tuple[BatchHeader | None, str | None]:
        """The header, if it can be read, and what is wrong."""
        try:
            header = peek(chunk, at)
            is_new = self._recovery_point is None or header.next_offset > self._recovery_point
            if is_new:
                verify_crc(chunk, at, header)
        except MalformedMessage as error:
            return None, f"{error.field}: {error.reason}"
        base, expected = header.base_offset, self.next_offset
        # The checksum does not cover the offset and the leader epoch. Batches after the recovery
        # point and those of the active segment were never compacted, so they have no gaps.
        if self._is_clean:
            is_exact = self._segment.limit is None and expected > self._segment.base_offset
        else:
            is_exact = is_new and self._recovery_point is not None
        if base < expected or (is_exact and base != expected):
            return header, f"expected offset {expected}, found {base}"
        epoch = header.partition_leader_epoch
        if (is_exact or not is_new) and epoch != LEADER_EPOCH:
            return None, f"expected leader epoch {LEADER_EPOCH}, found {epoch}"
        if header.last_offset - self._segment.base_offset > RELATIVE_OFFSET_MAX:
            return header, f"offset {header.last_offset} is too far from the segment's base offset"
        limit = self._segment.limit
        if limit is not None and header.next_offset > limit:
            return header, f"offset {header.last_offset} is in the next segment"
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
    if offsets and not (
        _points_at_batch(segment, *offsets[-1]) and _has_time(segment, offsets[-1][1], times[-1])
    ):
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
    except BadBatch:
        return False
    return found is not None and found[3] == segment.base_offset + relative


def _has_time(segment: Segment, position: int, entry: tuple[int, int]) -> bool:
    """Whether the batch of a time index entry, at a position or later, has its timestamp."""
    try:
        for _, _, _, last_offset, timestamp in segment.walk(position):
            if last_offset >= segment.base_offset + entry[1]:
                return (timestamp, last_offset) == (entry[0], segment.base_offset + entry[1])
    except BadBatch:
        pass
    return False


def _find_missing_index(segment: Segment, listed: Mapping[str, int]) -> str | None:
    for kind, size in ((OFFSET_INDEX, 8), (TIME_INDEX, 12)):
        kept = listed.get(segment_file(segment.base_offset, kind))
        if kept is None or kept % size:
            return kind
    return None
