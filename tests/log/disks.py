"""Disks that fail: one that is full, one that crashes, one that forgets what was not synced."""

import random
from pathlib import PurePosixPath

from kohort.log.disk import DIRECTORY, Disk, File
from kohort.log.errors import StorageError
from kohort.wire.varint import Buffer


class Crash(BaseException):
    """The process is gone; nobody catches this but the test."""


class FullDisk:
    """Takes so many more bytes, then none; a write that does not fit is taken in part."""

    def __init__(self, disk: Disk, room: int) -> None:
        self._disk = disk
        self.room = room
        self.refuses_to_truncate = False
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
        if size > self.room:
            self.room = 0
            raise StorageError(path, "append", "No space left on device")
        self.room -= size


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
        if self._disk.refuses_to_truncate:
            raise StorageError(self._path, "truncate", "Input/output error")
        self._file.truncate(size)

    def append(self, data: Buffer) -> None:
        if len(data) > self._disk.room:
            self._file.append(bytes(data)[: self._disk.room])
        self._disk.take(self._path, len(data))
        self._file.append(data)


class CrashingDisk:
    """Stops the world before its n-th change; counts them if it never comes to that."""

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
    """A file's content, or a directory's names; as it is, and as it was last synced."""

    def __init__(self, *, is_directory: bool) -> None:
        self.is_directory = is_directory
        self.data = bytearray()
        self.synced = b""
        self.names: dict[str, _Node] = {}
        self.synced_names: dict[str, _Node] = {}
        self.changes: list[tuple[str | None, str | None, _Node]] = []

    def rename(self, old: str | None, new: str | None, node: "_Node") -> None:
        """A name that was there, one that is from now on, or both."""
        self.changes.append((old, new, node))
        _apply(self.names, old, new, node)


def _apply(names: dict[str, _Node], old: str | None, new: str | None, node: _Node) -> None:
    if old is not None:
        names.pop(old, None)
    if new is not None:
        names[new] = node


class ForgetfulDisk:
    """In memory. After power_off() no more is there than was synced."""

    def __init__(self) -> None:
        self._root = _Node(is_directory=True)
        self._is_locked = False
        self.name = "memory"

    def power_off(self, seed: int | None = None) -> None:
        """The worst a disk may do: all that was not synced is gone, or with a seed, any part of it.

        Each change of a name happens or does not, whatever came before it; a file keeps any
        beginning of what was added to it.
        """
        self._forget(self._root, None if seed is None else random.Random(seed))  # noqa: S311
        self._is_locked = False

    def _forget(self, node: _Node, chance: random.Random | None) -> None:
        names, data = dict(node.synced_names), node.synced
        if chance is not None:
            for old, new, child in node.changes:
                if chance.random() < 0.5 and (old is None or names.get(old) is child):
                    _apply(names, old, new, child)
            if bytes(node.data).startswith(data):
                data = bytes(node.data[: chance.randint(len(data), len(node.data))])
        node.names, node.synced_names = names, dict(names)
        node.data, node.synced = bytearray(data), data
        node.changes.clear()
        for child in names.values():
            self._forget(child, chance)

    def content(self, path: str) -> bytearray:
        """A file's bytes, to be damaged."""
        return self._get(path).data

    def kill(self) -> None:
        """The process is gone, the machine is not: nothing is forgotten."""
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
        assert target is parent, "nothing moves from one directory to another"
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

    def lock(self, path: str) -> "ForgetfulDisk | None":
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
