"""Which snapshots of its producers a partition has: the last, and one more should that be torn."""

from collections.abc import Mapping
from typing import Final

from kohort.log.disk import Disk, read_file, write_file
from kohort.log.limits import Limits
from kohort.log.names import SNAPSHOT, find_segment_file, segment_file
from kohort.log.producers import Producers
from kohort.log.snapshot import decode_snapshot, encode_snapshot
from kohort.types import Millis, Offset

_KEPT: Final = 2


class Snapshots:
    def __init__(self, disk: Disk, directory: str, listed: Mapping[str, int]) -> None:
        self._disk = disk
        self._directory = directory
        files = [find_segment_file(name) for name in listed]
        self._offsets = sorted(
            file.offset for file in files if file and file.kind == SNAPSHOT and not file.stage
        )

    def load(
        self, start_offset: Offset, end_offset: Offset, now: Millis, limits: Limits
    ) -> tuple[Producers, Offset]:
        """The producers as of the latest snapshot that is whole, and the offset it speaks for."""
        while self._offsets:
            offset = self._offsets[-1]
            if start_offset <= offset <= end_offset:
                data = read_file(self._disk, self._path(offset))
                producers = decode_snapshot(data, now, limits)
                if producers is not None:
                    return producers, offset
            self._remove(-1)
        return Producers(limits), start_offset

    def take(self, producers: Producers, end_offset: Offset) -> None:
        """Not synced: a torn one is known by its checksum."""
        if self._offsets[-1:] == [end_offset]:
            return
        write_file(self._disk, self._path(end_offset), encode_snapshot(producers))
        self._offsets.append(end_offset)
        while len(self._offsets) > _KEPT:
            self._remove(0)

    def _remove(self, at: int) -> None:
        self._disk.remove(self._path(self._offsets[at]))
        del self._offsets[at]

    def _path(self, offset: Offset) -> str:
        return f"{self._directory}/{segment_file(offset, SNAPSHOT)}"
