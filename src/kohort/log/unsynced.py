"""What was written and waits to be synced, as something any thread can hold and sync."""

from collections.abc import Sequence

from kohort.log.disk import Disk, File
from kohort.log.errors import StorageError
from kohort.log.segment import Segment
from kohort.types import Offset


class Progress:
    """How far a log is known to be synced. Written by whoever syncs, read by the log."""

    __slots__ = ("is_gone", "synced_offset")

    def __init__(self, synced_offset: Offset) -> None:
        self.synced_offset = synced_offset
        self.is_gone = False
        """The partition is deleted: its files need no sync, and its directory may be missing."""


class Unsynced:
    """Some files of one partition, and its directory where their names are new."""

    __slots__ = ("_directory", "_disk", "_end_offset", "_files", "_progress")

    def __init__(
        self,
        *,
        disk: Disk,
        directory: str | None,
        files: tuple[File, ...],
        progress: Progress,
        end_offset: Offset,
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._files = files
        self._progress = progress
        self._end_offset = end_offset

    def sync(self) -> None:
        """After a StorageError nobody knows what is on the disk; trying again would not tell."""
        try:
            # Older segments first: a later one must not outlive an earlier one.
            for file in self._files:
                file.sync()
            if self._directory is not None:
                self._disk.sync_directory(self._directory)
        except StorageError:
            if not self._progress.is_gone:
                raise
            return
        self._progress.synced_offset = self._end_offset


class SyncQueue:
    """What one partition has to sync, and what is known to be synced."""

    def __init__(self, disk: Disk, directory: str, synced_offset: Offset) -> None:
        self._disk = disk
        self._directory = directory
        self._progress = Progress(synced_offset)
        self._written: list[Segment] = []
        self._sealed: list[Segment] = []
        self._has_new_names = True

    @property
    def synced_offset(self) -> Offset:
        return self._progress.synced_offset

    def add(self, segment: Segment) -> bool:
        """Returns whether there was nothing to sync before."""
        was_empty = not self._written
        if was_empty or self._written[-1] is not segment:
            self._written.append(segment)
        return was_empty

    def add_sealed(self, segment: Segment) -> None:
        """Its indexes are new, and so is the segment after it."""
        self._sealed.append(segment)
        self._has_new_names = True

    def take(self, end_offset: Offset) -> tuple[Unsynced, ...]:
        if not self._written and not self._has_new_names:
            return ()
        unsynced = Unsynced(
            disk=self._disk,
            directory=self._directory if self._has_new_names else None,
            files=tuple(segment.file for segment in self._written),
            progress=self._progress,
            end_offset=end_offset,
        )
        self._written.clear()
        self._has_new_names = False
        return (unsynced,)

    def sync_sealed(self) -> None:
        """Sealed segments with their indexes, here and now: it happens once to each."""
        for segment in self._sealed:
            segment.sync()
        if self._sealed:
            self._disk.sync_directory(self._directory)
            self._sealed.clear()

    def forget(self, segments: Sequence[Segment]) -> None:
        """Files that are gone need no sync."""
        self._written = [each for each in self._written if each not in segments]
        self._sealed = [each for each in self._sealed if each not in segments]

    def give_up(self) -> None:
        """The partition is deleted."""
        self._progress.is_gone = True
        self._written.clear()
        self._sealed.clear()
