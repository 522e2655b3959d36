"""Fake disks: one that is full, one that crashes, and one that loses unsynced data."""

import random
from pathlib import PurePosixPath

from kohort.log.disk import DIRECTORY, Disk, File
from kohort.log.errors import StorageError
from kohort.wire.varint import Buffer


class Crash(BaseException):
    """Simulates the end of the process. Only tests catch it."""


class FullDisk:
    """A disk with `free_bytes` left. A write that does not fit is written in part."""

    def __init__(self, disk: Disk, free_bytes: int) -> None:
        self._disk = disk
        self.free_bytes = free_bytes
        self.fails_to_truncate = False
        self.name = disk.name
        self.list = disk.list
        self.remove = disk.remove
        self.rename = disk.rename
        self.sync_directory = disk.sync_directory
        self.lock = disk.lock

    def open(self, path: str) -> "_FullFile":
        return _FullFile(self, self._disk.open(path), path)

    def create(self, path: str) -> "_FullFile":
        self.take(path, 1)
        return _FullFile(self, self._disk.create(path), path)

    def make_directory(self, path: str) -> None:
        self.take(path, 1)
        self._disk.make_directory(path)

    def write_atomically(self, path: str, data: bytes) -> None:
        self.take(path, len(data))
        self._disk.write_atomically(path, data)

    def take(self, path: str, size: int) -> None:
        if size > self.free_bytes:
            self.free_bytes = 0
            raise StorageError(path, "append", "No space left on device")
        self.free_bytes -= size


class _FullFile:
    def __init__(self, disk: FullDisk, file: File, path: str) -> None:
        self._disk = disk
        self._file = file
        self._path = path
        self.read = file.read
        self.sync = file.sync
        self.size = file.size
        self.close = file.close

    def truncate(self, size: int) -> None:
        if self._disk.fails_to_truncate:
            raise StorageError(self._path, "truncate", "Input/output error")
        self._file.truncate(size)

    def append(self, data: Buffer) -> None:
        if len(data) > self._disk.free_bytes:
            self._file.append(bytes(data)[: self._disk.free_bytes])
        self._disk.take(self._path, len(data))
        self._file.append(data)


class CrashingDisk:
    """Raises Crash before change number `crash_at`; counts the changes."""

    def __init__(self, disk: Disk, crash_at: int | None = None) -> None:
        self._disk = disk
        self._crash_at = crash_at
        self.changes = 0
        self.name = disk.name
        self.list = disk.list
        self.lock = disk.lock

    def open(self, path: str) -> "_CrashingFile":
        return _CrashingFile(self, self._disk.open(path))

    def create(self, path: str) -> "_CrashingFile":
        self.change()
        return _CrashingFile(self, self._disk.create(path))

    def make_directory(self, path: str) -> None:
        self.change()
        self._disk.make_directory(path)

    def remove(self, path: str) -> None:
        self.change()
        self._disk.remove(path)

    def rename(self, old: str, new: str) -> None:
        self.change()
        self._disk.rename(old, new)

    def sync_directory(self, path: str) -> None:
        self.change()
        self._disk.sync_directory(path)

    def write_atomically(self, path: str, data: bytes) -> None:
        self.change()
        self._disk.write_atomically(path, data)

    def change(self) -> None:
        if self.changes == self._crash_at:
            raise Crash
        self.changes += 1


class _CrashingFile:
    def __init__(self, disk: CrashingDisk, file: File) -> None:
        self._disk = disk
        self._file = file
        self.read = file.read
        self.size = file.size
        self.close = file.close

    def append(self, data: Buffer) -> None:
        self._disk.change()
        self._file.append(data)

    def truncate(self, size: int) -> None:
        self._disk.change()
        self._file.truncate(size)

    def sync(self) -> None:
        self._disk.change()
        self._file.sync()


class _Node:
    """The current and the last synced state of a file or directory."""

    def __init__(self, *, is_directory: bool) -> None:
        self.is_directory = is_directory
        self.data = bytearray()
        self.synced = b""
        self.names: dict[str, _Node] = {}
        self.synced_names: dict[str, _Node] = {}
        self.changes: list[tuple[str | None, str | None, _Node]] = []

    def rename(self, old: str | None, new: str | None, node: "_Node") -> None:
        """Remove the old name, add the new one, or both."""
        self.changes.append((old, new, node))
        _apply(self.names, old, new, node)


def _apply(names: dict[str, _Node], old: str | None, new: str | None, node: _Node) -> None:
    if old is not None:
        names.pop(old, None)
    if new is not None:
        names[new] = node


class MemoryDisk:
    """A disk in memory. After `power_off` only synced data is guaranteed to exist."""

    def __init__(self) -> None:
        self._root = _Node(is_directory=True)
        self._is_locked = False
        self.name = "memory"

    def power_off(self, seed: int | None = None) -> None:
        """Lose all unsynced data, or with a seed, a random part of it.

        Each unsynced name change is kept or lost independently of earlier ones. A file keeps a
        random prefix of the data appended since the last sync.
        """
        self._lose_unsynced(self._root, None if seed is None else random.Random(seed))  # noqa: S311
        self._is_locked = False

    def _lose_unsynced(self, node: _Node, rng: random.Random | None) -> None:
        names, data = dict(node.synced_names), node.synced
        if rng is not None:
            for old, new, child in node.changes:
                if rng.random() < 0.5 and (old is None or names.get(old) is child):
                    _apply(names, old, new, child)
            if bytes(node.data).startswith(data):
                data = bytes(node.data[: rng.randint(len(data), len(node.data))])
        node.names, node.synced_names = names, dict(names)
        node.data, node.synced = bytearray(data), data
        node.changes.clear()
        for child in names.values():
            self._lose_unsynced(child, rng)

    def content(self, path: str) -> bytearray:
        """The bytes of a file. Tests change them."""
        return self._get(path).data

    def kill(self) -> None:
        """The process ends, but not the machine: no data is lost."""
        self._is_locked = False

    def open(self, path: str) -> "_MemoryFile":
        return _MemoryFile(self._get(path))

    def create(self, path: str) -> "_MemoryFile":
        parent, name = self._split(path)
        if name not in parent.names:
            parent.rename(None, name, _Node(is_directory=False))
        parent.names[name].data.clear()
        return _MemoryFile(parent.names[name])

    def list(self, path: str) -> dict[str, int]:
        return {
            name: DIRECTORY if node.is_directory else len(node.data)
            for name, node in self._get(path).names.items()
        }

    def make_directory(self, path: str) -> None:
        node = self._root
        for name in PurePosixPath(path).parts:
            if name not in node.names:
                node.rename(None, name, _Node(is_directory=True))
            node = node.names[name]

    def remove(self, path: str) -> None:
        parent, name = self._split(path)
        if parent.names[name].names:
            raise StorageError(path, "remove", "Directory not empty")
        parent.rename(name, None, parent.names[name])

    def rename(self, old: str, new: str) -> None:
        parent, name = self._split(old)
        target, new_name = self._split(new)
        assert target is parent, "renames stay within a directory"
        parent.rename(name, new_name, parent.names[name])

    def sync_directory(self, path: str) -> None:
        node = self._get(path)
        node.synced_names = dict(node.names)
        node.changes.clear()

    def write_atomically(self, path: str, data: bytes) -> None:
        file = self.create(path + ".tmp")
        file.append(data)
        file.sync()
        self.rename(path + ".tmp", path)
        self.sync_directory(str(PurePosixPath(path).parent))

    def lock(self, path: str) -> "MemoryDisk | None":
        self.create(path)
        if self._is_locked:
            return None
        self._is_locked = True
        return self

    def release(self) -> None:
        self._is_locked = False

    def _get(self, path: str) -> _Node:
        node = self._root
        for name in PurePosixPath(path).parts:
            if name not in node.names:
                raise StorageError(path, "open", "No such file or directory")
            node = node.names[name]
        return node

    def _split(self, path: str) -> tuple[_Node, str]:
        pure = PurePosixPath(path)
        return self._get(str(pure.parent)), pure.name


class _MemoryFile:
    def __init__(self, node: _Node) -> None:
        self._node = node

    def append(self, data: Buffer) -> None:
        self._node.data += data

    def read(self, position: int, size: int) -> bytes:
        return bytes(self._node.data[position : position + size])

    def truncate(self, size: int) -> None:
        del self._node.data[size:]

    def sync(self) -> None:
        self._node.synced = bytes(self._node.data)

    def size(self) -> int:
        return len(self._node.data)

    def close(self) -> None:
        pass
