"""The interface between the log and storage: a real disk or a simulated one.

Paths are relative to the data directory and use slashes; "" is the data directory. Every failure
is a StorageError. There is no buffer: when an append returns, the operating system has the data;
after a sync, the disk has it.
"""

from collections.abc import Mapping
from typing import Final, Protocol

from kohort.wire.varint import Buffer

DIRECTORY: Final = -1
"""The size that `list` returns for a directory."""


class Syncable(Protocol):
    """Data that survives a power failure only after sync(), which any thread may call."""

    def sync(self) -> None: ...


class File(Syncable, Protocol):
    """An open file that can only be appended to and truncated."""

    def append(self, data: Buffer) -> None:
        """After a failure the file may contain part of the data; the caller truncates it."""

    def read(self, position: int, size: int) -> bytes:
        """Returns fewer than `size` bytes only at the end of the file."""

    def truncate(self, size: int) -> None: ...

    def size(self) -> int: ...

    def close(self) -> None:
        """May be called while another thread syncs. The sync of a closed file does nothing."""


class Lock(Protocol):
    def release(self) -> None: ...


class Disk(Protocol):
    @property
    def name(self) -> str:
        """The name of the data directory in messages."""

    def open(self, path: str) -> File:
        """Open an existing file."""

    def create(self, path: str) -> File:
        """Create a file; truncate an existing one."""

    def list(self, path: str) -> Mapping[str, int]:
        """The names in a directory with the file sizes; DIRECTORY for directories."""

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents, if missing."""

    def remove(self, path: str) -> None:
        """Remove a file or an empty directory."""

    def rename(self, old: str, new: str) -> None:
        """Replaces an existing file of the new name."""

    def sync_directory(self, path: str) -> None:
        """Make the creation, renaming and removal of files in the directory durable."""

    def write_atomically(self, path: str, data: bytes) -> None:
        """Durable when it returns. After a crash the file has either the old content or the new."""

    def lock(self, path: str) -> Lock | None:
        """None if another process holds the lock. The lock ends with its process."""


def read_file(disk: Disk, path: str) -> bytes:
    file = disk.open(path)
    try:
        return file.read(0, file.size())
    finally:
        file.close()


def write_file(disk: Disk, path: str, data: Buffer) -> None:
    """Not durable: after a crash the file may be incomplete. For files that can be rebuilt."""
    file = disk.create(path)
    try:
        file.append(data)
    finally:
        file.close()
