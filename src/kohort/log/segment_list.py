"""The base offsets of a partition's segments, in a file of its directory: a start finds out whether
a segment is missing between two others.

The offsets of batches cannot tell, because compaction leaves gaps. The file lists at any time only
segments that must exist: `add` is called after the segments are synced, and `discard` before
compaction removes one. Retention needs no change, because the log start offset, which is stored
before a segment is removed, says that the segments before it may be missing. A log without this
file was written by Kafka or by an earlier version, and nothing is known of its segments.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from kohort.log.disk import Disk, read_file
from kohort.log.file_names import SEGMENT_LIST
from kohort.types import Offset
from kohort.wire.batch_header import checksum

_VERSION: Final = 0


class SegmentList:
    def __init__(self, disk: Disk, directory: str, listed: Mapping[str, int]) -> None:
        """`listed` is the content of the directory."""
        self._disk = disk
        self.path = f"{directory}/{SEGMENT_LIST}"
        decoded = _decode(read_file(disk, self.path)) if SEGMENT_LIST in listed else frozenset()
        self._bases = decoded or frozenset()
        self.is_damaged = decoded is None

    def find_missing(
        self, existing: Collection[Offset], start: Offset, end: Offset
    ) -> list[Offset]:
        """The base offsets from `start` to before `end` of segments that do not exist."""
        return sorted(each for each in self._bases.difference(existing) if start <= each < end)

    def add(self, bases: Collection[Offset]) -> None:
        """All segments of the log are synced. A log with one segment has no file: a missing one is
        found without it."""
        if len(bases) > 1 and not self._bases.issuperset(bases):
            self._write(bases)

    def discard(self, bases: Iterable[Offset]) -> None:
        """These segments are about to be removed, or were given up."""
        left = self._bases.difference(bases)
        if left != self._bases:
            self._write(left)

    def replace_damaged(self) -> None:
        """The next `add` writes the file with all segments."""
        self._write(())

    def _write(self, bases: Iterable[Offset]) -> None:
        found = frozenset(bases)
        self._disk.write_atomically(self.path, _encode(found))
        self._bases = found


def _encode(bases: Collection[Offset]) -> bytes:
    lines = [_VERSION, len(bases), *sorted(bases)]
    text = "".join(f"{line}\n" for line in lines)
    return f"{text}{checksum(text.encode())}\n".encode()


def _decode(data: bytes) -> frozenset[Offset] | None:
    """None if the file is damaged."""
    try:
        _, _, *bases, _ = map(int, data.decode("ascii").splitlines())
    except ValueError:
        return None
    found = frozenset(map(Offset, bases))
    return found if data == _encode(found) else None
