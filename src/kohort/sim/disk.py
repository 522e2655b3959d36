"""An in-memory disk that can be full, fail to sync, and lose unsynced data at a power failure.

The DiskImage outlives every process. Each process has a Mount, which implements the log's Disk. To
kill a process, a disk operation raises Killed.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import PurePosixPath
from random import Random
from typing import Final

from kohort.log.disk import DIRECTORY
from kohort.log.errors import StorageError
from kohort.sim.inodes import Inode
from kohort.wire.varint import Buffer

_TEMPORARY: Final = ".tmp"

Marks = Mapping[Inode, int]
"""The size of each unsynced inode at the start of a sync."""


class Killed(BaseException):
    """The process was killed during an operation. Only the simulation catches it."""


class DiskImage:
    """The content of the disk."""

    def __init__(self) -> None:
        self.root = Inode(is_directory=True)
        self.is_full = False
        self.failing_syncs = 0
        self.dirty: dict[Inode, None] = {}
        self.owner: Mount | None = None

    def power_off(self, rng: Random) -> None:
        self.root.forget(rng)
        self.dirty.clear()
        self.owner = None

    def mark(self) -> Marks:
        """The data that is durable after a sync that starts now; later data may be included."""
        for inode in [inode for inode in self.dirty if not inode.is_dirty]:
            del self.dirty[inode]
        return {inode: inode.extent for inode in self.dirty}


class Mount:
    """The disk as one process sees it; implements the log's Disk."""

    def __init__(self, disk_image: DiskImage) -> None:
        self._disk_image = disk_image
        self._marks: Marks | None = None
        self.name = "simulated"
        self.operations = 0
        self.fatal_operation: int | None = None
        """The process is killed just before, or during, this operation."""
        self.is_dead = False
        self.was_interrupted = False

    def die(self) -> None:
        self.is_dead = True
        if self._disk_image.owner is self:
            self._disk_image.owner = None

    @contextmanager
    def as_of(self, marks: Marks) -> Iterator[None]:
        """Syncs in this block cover only the marked data."""
        self._marks = marks
        try:
            yield
        finally:
            self._marks = None

    # As the log's disk

    def open(self, path: str) -> "SimulatedFile":
        self._operate()
        return SimulatedFile(self, self._get(path), path)

    def create(self, path: str) -> "SimulatedFile":
        self._change(path)
        parent, name = self._split(path)
        if name not in parent.names:
            parent.rename(None, name, Inode(is_directory=False))
            self.touch(parent)
        inode = parent.names[name]
        inode.truncate(0)
        self.touch(inode)
        return SimulatedFile(self, inode, path)

    def list(self, path: str) -> dict[str, int]:
        self._operate()
        return {
            name: DIRECTORY if inode.is_directory else len(inode.data)
            for name, inode in self._get(path).names.items()
        }

    def make_directory(self, path: str) -> None:
        inode = self._disk_image.root
        for name in PurePosixPath(path).parts:
            if name not in inode.names:
                self._change(path)
                inode.rename(None, name, Inode(is_directory=True))
                self.touch(inode)
            inode = inode.names[name]

    def remove(self, path: str) -> None:
        self._operate()
        parent, name = self._split(path)
        inode = self._get(path)
        if inode.names:
            raise StorageError(path, "remove", "Directory not empty")
        parent.rename(name, None, inode)
        self.touch(parent)

    def rename(self, old: str, new: str) -> None:
        self._operate()
        parent, name = self._split(old)
        target, new_name = self._split(new)
        assert target is parent, "the log renames only within a directory"
        parent.rename(name, new_name, self._get(old))
        self.touch(parent)

    def sync_directory(self, path: str) -> None:
        self._operate()
        inode = self._get(path)
        inode.sync_names(self._extent(inode))

    def write_atomically(self, path: str, data: bytes) -> None:
        file = self.create(path + _TEMPORARY)
        file.append(data)
        file.sync()
        self.rename(path + _TEMPORARY, path)
        self.sync_directory(str(PurePosixPath(path).parent))

    def lock(self, path: str) -> "SimulatedLock | None":
        parent, name = self._split(path)
        if name not in parent.names:
            self.create(path)
        if self._disk_image.owner is not None:
            return None
        self._disk_image.owner = self
        return SimulatedLock(self._disk_image, self)

    # Operations of files

    def append(self, inode: Inode, data: Buffer, path: str) -> None:
        if self._disk_image.is_full or self._is_last():
            # A part of the data is written before the failure.
            inode.data += data[: len(data) // 2]
            self.touch(inode)
        self._change(path)
        inode.data += data
        self.touch(inode)

    def read(self, inode: Inode, position: int, size: int) -> bytes:
        self._operate()
        return bytes(inode.data[position : position + size])

    def truncate(self, inode: Inode, size: int) -> None:
        self._operate()
        inode.truncate(size)
        self.touch(inode)

    def sync(self, inode: Inode, path: str) -> None:
        self._operate()
        if self._disk_image.failing_syncs and self._marks is not None:
            self._disk_image.failing_syncs -= 1
            raise StorageError(path, "sync", "Input/output error")
        inode.sync_bytes(self._extent(inode))

    def touch(self, inode: Inode) -> None:
        self._disk_image.dirty[inode] = None

    def _extent(self, inode: Inode) -> int:
        if self._marks is None:
            return inode.extent
        # Inodes that were clean at the start of the sync are unchanged.
        return self._marks.get(inode, 0 if inode.is_directory else inode.clean)

    def _is_last(self) -> bool:
        return self.operations == self.fatal_operation

    def _operate(self) -> None:
        if self.is_dead or self._is_last():
            self.was_interrupted = self.was_interrupted or not self.is_dead
            self.is_dead = True
            raise Killed
        self.operations += 1

    def _change(self, path: str) -> None:
        self._operate()
        if self._disk_image.is_full:
            raise StorageError(path, "append", "No space left on device")

    def _get(self, path: str) -> Inode:
        inode = self._disk_image.root
        for name in _parts(path):
            found = inode.names.get(name)
            if found is None:
                raise StorageError(path, "open", "No such file or directory")
            inode = found
        return inode

    def _split(self, path: str) -> tuple[Inode, str]:
        directory, _, name = path.rpartition("/")
        return self._get(directory), name


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


class SimulatedFile:
    __slots__ = ("_inode", "_mount", "_path")

    def __init__(self, mount: Mount, inode: Inode, path: str) -> None:
        self._mount = mount
        self._inode = inode
        self._path = path

    def append(self, data: Buffer) -> None:
        self._mount.append(self._inode, data, self._path)

    def read(self, position: int, size: int) -> bytes:
        return self._mount.read(self._inode, position, size)

    def truncate(self, size: int) -> None:
        self._mount.truncate(self._inode, size)

    def sync(self) -> None:
        self._mount.sync(self._inode, self._path)

    def size(self) -> int:
        return len(self._inode.data)

    def close(self) -> None:
        """Nothing to release."""


class SimulatedLock:
    def __init__(self, disk_image: DiskImage, mount: Mount) -> None:
        self._disk_image = disk_image
        self._mount = mount

    def release(self) -> None:
        if self._disk_image.owner is self._mount:
            self._disk_image.owner = None
