"""Putting a compacted segment in the place of those it was made from, so that a crash at any
point leaves the old ones or the new one, and never parts of both.

    1  the new files are written as .cleaned, and synced
    2  they are renamed to .swap: from here on the new ones count
    3  the old files are removed
    4  .swap is dropped from the names, from the log's first

finish_interrupted() brings whatever a crash has left to one end or the other.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from kohort.log.disk import Disk
from kohort.log.names import (
    CLEANED,
    DELETED,
    LOG,
    SEGMENT_SUFFIXES,
    SNAPSHOT,
    SWAP,
    SegmentFile,
    find_segment_file,
    segment_file,
)
from kohort.log.segment import Segment
from kohort.types import Offset, value

_ROLLED_BACK: Final = "compaction was interrupted before its result was complete"
_ROLLED_FORWARD: Final = "compaction was interrupted after its result was complete"


@value
class Recovered:
    """Something opening a log had to mend."""

    path: str
    position: int
    bytes_cut: int
    reason: str


def swap_in(disk: Disk, directory: str, new: Segment, old: Sequence[Segment]) -> Segment:
    """Replaces old segments by a new one, sealed and still named .cleaned; returns it in place."""
    new.sync()
    new.close()
    _rename(disk, directory, new.base_offset, CLEANED, SWAP)
    for segment in old:
        remove_segment(disk, directory, segment.base_offset)
    disk.sync_directory(directory)
    _rename(disk, directory, new.base_offset, SWAP, "")
    return Segment(disk, directory, new.base_offset, disk.list(directory))


def remove_segment(disk: Disk, directory: str, base_offset: Offset, stage: str = "") -> None:
    """The log first: indexes without a log are known to be leftovers."""
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
                # As long as the log has its old name, so have the others.
                disk.sync_directory(directory)
    disk.sync_directory(directory)


def finish_interrupted(disk: Disk, directory: str) -> list[Recovered]:
    """Ends a replacement that was under way, and removes what was marked for removal."""
    listed = disk.list(directory)
    staged = _staged(listed)
    recovered: list[Recovered] = []
    first_cleaned = min(
        (file.offset for file in staged.values() if file.stage == CLEANED), default=None
    )
    for name, file in staged.items():
        is_incomplete = first_cleaned is not None and file.offset >= first_cleaned
        if file.stage in (CLEANED, DELETED) or is_incomplete:
            disk.remove(f"{directory}/{name}")
            if file.kind == LOG and file.stage != DELETED:
                recovered.append(_recovered(directory, name, _ROLLED_BACK))
    for base_offset in sorted({file.offset for file in staged.values() if file.stage == SWAP}):
        if first_cleaned is None or base_offset < first_cleaned:
            _roll_forward(disk, directory, base_offset)
            name = segment_file(base_offset, LOG)
            recovered.append(_recovered(directory, name, _ROLLED_FORWARD))
    if staged:
        disk.sync_directory(directory)
    return recovered


def _roll_forward(disk: Disk, directory: str, base_offset: Offset) -> None:
    listed = disk.list(directory)
    if segment_file(base_offset, LOG, SWAP) in listed:
        new = Segment(disk, directory, base_offset, listed, stage=SWAP)
        end_offset = max(new.find_next_offset(), Offset(base_offset + 1))
        new.close()
        for file in _in_use(listed).values():
            if base_offset <= file.offset < end_offset and file.kind == LOG:
                remove_segment(disk, directory, file.offset)
        # The old log may be gone already, and its indexes not.
        remove_segment(disk, directory, base_offset)
        disk.sync_directory(directory)
    _rename(disk, directory, base_offset, SWAP, "")


def _staged(listed: Mapping[str, int]) -> dict[str, SegmentFile]:
    files = {name: find_segment_file(name) for name in listed}
    return {name: file for name, file in files.items() if file is not None and file.stage}


def _in_use(listed: Mapping[str, int]) -> dict[str, SegmentFile]:
    files = {name: find_segment_file(name) for name in listed}
    return {
        name: file
        for name, file in files.items()
        if file is not None and not file.stage and file.kind != SNAPSHOT
    }


def _recovered(directory: str, name: str, reason: str) -> Recovered:
    return Recovered(path=f"{directory}/{name}", position=0, bytes_cut=0, reason=reason)
