"""The seam between the log and whatever keeps bytes: a real disk, or a simulated one.

Paths are relative to the data directory and use slashes; "" is the directory itself. Every failure
is a StorageError. Nothing here buffers: an append has reached the operating system when it
returns, and the disk once it is synced.
"""

from collections.abc import Mapping
from typing import Final, Protocol

from kohort.wire.varint import Buffer

DIRECTORY: Final = -1
"""What `list` gives in place of a directory's size."""


class Syncable(Protocol):
    """Something written that survives a power failure only after sync(), from any thread."""

    def sync(self) -> None: ...


class File(Syncable, Protocol):
    """An open file. Bytes are added at the end, or removed there; those in it never change."""

    def append(self, data: Buffer) -> None:
        """On failure some of the data may be in the file; the caller truncates it."""

    def read(self, position: int, size: int) -> bytes:
        """Fewer bytes than asked for only where the file ends."""

    def truncate(self, size: int) -> None: ...

    def size(self) -> int: ...

    def close(self) -> None:
        """May be called while another thread syncs; a file that is closed needs no sync."""


class Lock(Protocol):
    def release(self) -> None: ...


class Disk(Protocol):
    @property
    def name(self) -> str:
        """What a message calls the data directory."""

    def open(self, path: str) -> File:
        """A file that exists."""

    def create(self, path: str) -> File:
        """A new file; one of that name is emptied."""

    def list(self, path: str) -> Mapping[str, int]:
        """The names in a directory with the sizes of files; DIRECTORY for directories."""

    def make_directory(self, path: str) -> None:
        """Its parents as well. That it exists is fine."""

    def remove(self, path: str) -> None:
        """A file, or a directory that is empty."""

    def rename(self, old: str, new: str) -> None:
        """A file of the new name is replaced."""

    def sync_directory(self, path: str) -> None:
        """Names that were created, renamed or removed in it stay so."""

    def write_atomically(self, path: str, data: bytes) -> None:
        """After a crash the file has either its old content or this; afterwards it has this."""

    def lock(self, path: str) -> Lock | None:
        """None while somebody else holds it. A process that dies lets go."""


def read_file(disk: Disk, path: str) -> bytes:
    file = disk.open(path)
    try:
        return file.read(0, file.size())
    finally:
        file.close()


def write_file(disk: Disk, path: str, data: Buffer) -> None:
    """For files that can be made again: a crash may leave any part of it."""
    file = disk.create(path)
    try:
        file.append(data)
    finally:
        file.close()
