"""Stores changes of the catalog: each is appended to the journal and synced.

The snapshot is written again at a start, if the journal has become longer, so that the time of a
change does not depend on the number of topics. It is replaced in two steps, each of them atomic:
first the snapshot, then the journal by an empty one. After a crash in between, the changes in the
journal are skipped, because the snapshot includes them.
"""

import contextlib
from typing import Final

from kohort.log.catalog_file import (
    CatalogChange,
    CatalogContent,
    StoredCatalog,
    encode_change,
    encode_content,
)
from kohort.log.disk import Disk, File
from kohort.log.errors import StorageError
from kohort.log.file_names import CATALOG, CATALOG_JOURNAL

_SMALL_BYTES: Final = 64 * 1024
"""A journal up to this length is kept at a start."""

_JOURNAL_BYTES_MAX: Final = 64 * 1024 * 1024
"""Bounds the journal of a node that runs for long. Writing the snapshot then delays requests."""


def write_new_catalog(disk: Disk, content: CatalogContent) -> int:
    """Write the catalog of a directory that has none; returns the size of the snapshot.

    The snapshot comes last, because a directory without it counts as new.
    """
    data = encode_content(content)
    disk.write_atomically(CATALOG_JOURNAL, b"")
    disk.write_atomically(CATALOG, data)
    return len(data)


class CatalogJournal:
    def __init__(self, disk: Disk, stored: StoredCatalog) -> None:
        self._disk = disk
        self.content = stored.content
        self._file: File | None = None
        self._bytes = stored.journal_bytes
        self._snapshot_bytes = stored.snapshot_bytes
        self._is_usable = stored.has_journal
        """False if the next change needs a new snapshot and an empty journal first."""

    def sync_loaded(self) -> None:
        """Make the changes durable that a killed process has appended and may not have synced."""
        if self._bytes:
            self._open().sync()

    def shorten(self) -> None:
        """Replace a long journal by a snapshot."""
        if self._bytes > max(_SMALL_BYTES, self._snapshot_bytes):
            self._write_snapshot()

    def write(self, change: CatalogChange) -> None:
        """Apply a change after it is durable. After a StorageError the content is unchanged."""
        if not self._is_usable or self._bytes > max(_JOURNAL_BYTES_MAX, self._snapshot_bytes):
            self._write_snapshot()
        data = encode_change(change, self.content.sequence + 1)
        file = self._open()
        try:
            file.append(data)
        except StorageError:
            self._truncate(file)
            raise
        try:
            file.sync()
        except StorageError:
            # The change may be on disk or not, and a second sync could hide that.
            self._give_up()
            raise
        self._bytes += len(data)
        self.content.apply(change)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> File:
        if self._file is None:
            file = self._disk.open(CATALOG_JOURNAL)
            if file.size() > self._bytes:
                # A crash has left an incomplete change.
                file.truncate(self._bytes)
            self._file = file
        return self._file

    def _truncate(self, file: File) -> None:
        """Remove a partial write, so that a smaller change can be written to a full disk."""
        try:
            file.truncate(self._bytes)
            file.sync()
        except StorageError:
            self._give_up()

    def _give_up(self) -> None:
        """Write no more to this file. The number of the failed change is not used again."""
        with contextlib.suppress(StorageError):
            self._open().truncate(self._bytes)
        self._is_usable = False
        self.content.sequence += 1

    def _write_snapshot(self) -> None:
        data = encode_content(self.content)
        self.close()
        if not self._is_usable and not self._bytes:
            # Before the first snapshot with a journal, which must not exist without one.
            self._disk.write_atomically(CATALOG_JOURNAL, b"")
        self._is_usable = False
        self._disk.write_atomically(CATALOG, data)
        self._snapshot_bytes = len(data)
        self._disk.write_atomically(CATALOG_JOURNAL, b"")
        self._bytes = 0
        self._is_usable = True
