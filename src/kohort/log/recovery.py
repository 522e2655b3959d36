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
from typing import Final

from kohort.log.damage import BadBatch
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
from kohort.log.index import RELATIVE_OFFSET_MAX
from kohort.log.limits import Limits
from kohort.log.log_segments import set_limits
from kohort.log.producer_replay import replay
from kohort.log.producer_snapshot import ProducerSnapshots
from kohort.log.producer_state import ProducerStateManager
from kohort.log.repair import Repair, RepairKind
from kohort.log.segment import Segment
from kohort.log.segment_list import SegmentList
from kohort.log.segment_lookup import (
    check_time_entry,
    rebuild_indexes,
    walk_from,
)
from kohort.log.segment_scan import SegmentScan
from kohort.log.segment_swap import complete_interrupted_swaps, remove_segment
from kohort.types import Millis, Offset, value

_OFFSET_END: Final = Offset(2**63 - 1)

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
    segment_list: SegmentList
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
        segment_list=SegmentList(disk, directory, {}),
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
        segment_list=SegmentList(disk, directory, {}),
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
    loader.check_listed(segments, start)
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
    loader.update_list(segments, start)
    # Most partitions of a large directory are idle. The first use reopens the file.
    segments[-1].close()
    return LoadedLog(
        segments=tuple(segments),
        start_offset=start,
        end_offset=end,
        recovery_point=end,
        producers=producers,
        snapshots=snapshots,
        segment_list=loader.segment_list,
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
        self.segment_list = SegmentList(disk, directory, listed)

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

    def check_listed(self, segments: list[Segment], start: Offset) -> None:
        """Raises RecordsMissing if a segment between two others is missing. Those at the beginning
        and at the end are found by the log start offset and by the recovery point."""
        bases = [segment.base_offset for segment in segments]
        # The name of a later segment may have been lost with unsynced records.
        end = min(self._recovery_point, max(bases, default=Offset(0)))
        for missing in self.segment_list.find_missing(bases, start, end):
            path = f"{self._directory}/{segment_file(missing, LOG)}"
            following = bases[bisect_left(bases, missing)]
            self._lose(missing, following, f"there is no {path}")

    def update_list(self, segments: list[Segment], start: Offset) -> None:
        """The log is open without the segments that do not exist, and must be so next time too."""
        listed = self.segment_list
        if listed.is_damaged:
            reason = "its content is damaged, so no missing segment is noticed; written again"
            self._repairs.append(Repair(path=listed.path, reason=reason))
            listed.replace_damaged()
        bases = [segment.base_offset for segment in segments]
        listed.discard(listed.find_missing(bases, start, _OFFSET_END))

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

    def _scan(self, segments: list[Segment], at: int) -> tuple[Offset, SegmentScan | None]:
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
            scan = SegmentScan(
                segment, self._parameters.recovery_point, is_clean=self._parameters.is_clean
            )
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


def _find_missing_index(segment: Segment, listed: Mapping[str, int]) -> str | None:
    for kind, size in ((OFFSET_INDEX, 8), (TIME_INDEX, 12)):
        kept = listed.get(segment_file(segment.base_offset, kind))
        if kept is None or kept % size:
            return kind
    return None
