"""The files of a partition that wait for an fsync, as objects that any thread can sync."""

from collections.abc import Sequence

from kohort.log.disk import Disk, File
from kohort.log.errors import StorageError
from kohort.log.segment import Segment
from kohort.types import Offset


class SyncProgress:
    """Up to which offset a log is synced. Set by the thread that syncs, read by the log."""

    __slots__ = ("is_deleted", "synced_offset")

    def __init__(self, synced_offset: Offset) -> None:
        self.synced_offset = synced_offset
        self.is_deleted = False
        """The partition is deleted: sync errors are ignored, the directory may be missing."""


class PendingSync:
    """Files of one partition to sync, and its directory if some of the files are new."""

    __slots__ = ("_directories", "_disk", "_end_offset", "_files", "_progress")

    def __init__(
        self,
        *,
        disk: Disk,
        directories: tuple[str, ...],
        files: tuple[File, ...],
        progress: SyncProgress,
        end_offset: Offset,
    ) -> None:
        self._disk = disk
        self._directories = directories
        self._files = files
        self._progress = progress
        self._end_offset = end_offset

    def sync(self) -> None:
        """After a StorageError the state of the disk is unknown. Do not retry: a second fsync may
        succeed although data is lost."""
        try:
            # Older segments first: after a crash, no segment may be lost before a later one.
            for file in self._files:
                file.sync()
            for directory in self._directories:
                self._disk.sync_directory(directory)
        except StorageError:
            if not self._progress.is_deleted:
                raise
            return
        self._progress.synced_offset = self._end_offset


class SyncQueue:
    """The files that one partition has to sync, and the offset up to which it is synced."""

    def __init__(self, disk: Disk, directory: str, synced_offset: Offset) -> None:
        self._disk = disk
        self._directory = directory
        self._progress = SyncProgress(synced_offset)
        self._written: list[Segment] = []
        self._sealed: list[Segment] = []
        self._has_new_files = True
        self._is_new_directory = False

    @property
    def synced_offset(self) -> Offset:
        return self._progress.synced_offset

    def add(self, segment: Segment) -> bool:
        """Returns whether the queue was empty before."""
        was_empty = not self._written
        if was_empty or self._written[-1] is not segment:
            self._written.append(segment)
        return was_empty

    def add_sealed(self, segment: Segment) -> None:
        """Add a segment that was sealed by a roll. The next segment has new files."""
        self._sealed.append(segment)
        self._has_new_files = True

    def add_directory(self) -> None:
        """The directory of the partition is new: its own name needs a sync too."""
        self._has_new_files = self._is_new_directory = True

    def take(self, end_offset: Offset) -> tuple[PendingSync, ...]:
        if not self._written and not self._has_new_files:
            return ()
        pending = PendingSync(
            disk=self._disk,
            directories=self._new_names() if self._has_new_files else (),
            files=tuple(segment.file for segment in self._written),
            progress=self._progress,
            end_offset=end_offset,
        )
        self._written.clear()
        self._has_new_files = self._is_new_directory = False
        return (pending,)

    def _new_names(self) -> tuple[str, ...]:
        return (self._directory, "") if self._is_new_directory else (self._directory,)

    def sync_sealed(self) -> None:
        """Sync sealed segments with their indexes on this thread, once per segment."""
        for segment in self._sealed:
            segment.sync()
        if self._sealed:
            self._disk.sync_directory(self._directory)
            self._sealed.clear()

    def discard(self, segments: Sequence[Segment]) -> None:
        """Drop removed segments; their files need no sync."""
        self._written = [each for each in self._written if each not in segments]
        self._sealed = [each for each in self._sealed if each not in segments]

    @property
    def is_cancelled(self) -> bool:
        return self._progress.is_deleted

    def cancel(self) -> None:
        """Drop everything: the partition is deleted."""
        self._progress.is_deleted = True
        self._written.clear()
        self._sealed.clear()
