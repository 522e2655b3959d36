"""Crash-safe replacement of segments by their compacted version. After a crash at any point either
the old segments or the new one are complete.

    1  write the new files as .cleaned, and sync them
    2  rename them to .swap: from now on the new files are valid
    3  remove the old files
    4  remove .swap from the names, that of the log file first

`complete_interrupted_swaps` rolls an interrupted replacement back or forward.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from kohort.log.disk import Disk
from kohort.log.file_names import (
    CLEANED,
    DELETED,
    LOG,
    SEGMENT_SUFFIXES,
    SNAPSHOT,
    SWAP,
    SegmentFileName,
    parse_segment_file,
    segment_file,
)
from kohort.log.repair import Repair
from kohort.log.segment import Segment
from kohort.types import Offset

_ROLLED_BACK: Final = "removed the incomplete result of an interrupted compaction"
_ROLLED_FORWARD: Final = "completed the segment replacement of an interrupted compaction"


def replace_segments(disk: Disk, directory: str, new: Segment, old: Sequence[Segment]) -> Segment:
    """Replace `old` by `new`, whose files have the suffix .cleaned. Returns the final segment."""
    new.sync()
    new.close()
    _rename(disk, directory, new.base_offset, CLEANED, SWAP)
    for segment in old:
        remove_segment(disk, directory, segment.base_offset)
    disk.sync_directory(directory)
    _rename(disk, directory, new.base_offset, SWAP, "")
    return Segment(disk, directory, new.base_offset, disk.list(directory))


def remove_segment(disk: Disk, directory: str, base_offset: Offset, stage: str = "") -> None:
    """Removes the log file first: recovery removes indexes without a log file."""
    listed = disk.list(directory)
    for kind in SEGMENT_SUFFIXES:
        name = segment_file(base_offset, kind, stage)
        if name in listed:
            disk.remove(f"{directory}/{name}")


def _rename(disk: Disk, directory: str, base_offset: Offset, old: str, new: str) -> None:
    listed = disk.list(directory)
    for kind in SEGMENT_SUFFIXES:
        name = segment_file(base_offset, kind, old)
        if name in listed:
            disk.rename(
                f"{directory}/{name}", f"{directory}/{segment_file(base_offset, kind, new)}"
            )
            if kind == LOG:
                # The other files must not be renamed before the log file is, even after a crash.
                disk.sync_directory(directory)
    disk.sync_directory(directory)


def complete_interrupted_swaps(
    disk: Disk, directory: str, listed: Mapping[str, int]
) -> tuple[list[Repair], Mapping[str, int]]:
    """Complete or undo interrupted replacements, and remove .deleted files. `listed` is the content
    of the directory; returns the repairs and the new content."""
    staged = _staged(listed)
    if staged:
        # The names that a killed process has left may not be durable. If a power failure brought
        # .cleaned back after the old segment was removed, the next start would remove the new one.
        disk.sync_directory(directory)
    repairs: list[Repair] = []
    first_cleaned = min(
        (file.offset for file in staged.values() if file.stage == CLEANED), default=None
    )
    for name, file in staged.items():
        is_incomplete = first_cleaned is not None and file.offset >= first_cleaned
        if file.stage in (CLEANED, DELETED) or is_incomplete:
            disk.remove(f"{directory}/{name}")
            if file.kind == LOG and file.stage != DELETED:
                repairs.append(_repair(directory, name, _ROLLED_BACK))
    for base_offset in sorted({file.offset for file in staged.values() if file.stage == SWAP}):
        if first_cleaned is None or base_offset < first_cleaned:
            _roll_forward(disk, directory, base_offset)
            name = segment_file(base_offset, LOG)
            repairs.append(_repair(directory, name, _ROLLED_FORWARD))
    if staged:
        disk.sync_directory(directory)
        listed = disk.list(directory)
    return repairs, listed


def complete_swap(disk: Disk, directory: str, before: Offset) -> list[Segment]:
    """Complete or undo a replacement in a log that is in use. Returns its sealed segments, those
    before an offset."""
    _, listed = complete_interrupted_swaps(disk, directory, disk.list(directory))
    bases = sorted(
        file.offset
        for file in _in_use(listed).values()
        if file.kind == LOG and file.offset < before
    )
    return [Segment(disk, directory, each, listed) for each in bases]


def _roll_forward(disk: Disk, directory: str, base_offset: Offset) -> None:
    listed = disk.list(directory)
    if segment_file(base_offset, LOG, SWAP) in listed:
        new = Segment(disk, directory, base_offset, listed, stage=SWAP)
        end_offset = max(new.read_next_offset(), Offset(base_offset + 1))
        new.close()
        for file in _in_use(listed).values():
            if base_offset <= file.offset < end_offset and file.kind == LOG:
                remove_segment(disk, directory, file.offset)
        # The old log file may already be removed, but not its indexes.
        remove_segment(disk, directory, base_offset)
        disk.sync_directory(directory)
    _rename(disk, directory, base_offset, SWAP, "")


def _staged(listed: Mapping[str, int]) -> dict[str, SegmentFileName]:
    files = {name: parse_segment_file(name) for name in listed}
    return {name: file for name, file in files.items() if file is not None and file.stage}


def _in_use(listed: Mapping[str, int]) -> dict[str, SegmentFileName]:
    files = {name: parse_segment_file(name) for name in listed}
    return {
        name: file
        for name, file in files.items()
        if file is not None and not file.stage and file.kind != SNAPSHOT
    }


def _repair(directory: str, name: str, reason: str) -> Repair:
    return Repair(path=f"{directory}/{name}", reason=reason)
