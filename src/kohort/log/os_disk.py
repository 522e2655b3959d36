"""A data directory in the file system."""

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kohort.log.disk import DIRECTORY
from kohort.log.errors import StorageError
from kohort.wire.varint import Buffer

_TEMPORARY: Final = ".tmp"
"""Suffix of a file that will replace another."""


class OsFile:
    """`close` drops the reference to the descriptor; a sync in another thread holds one until done.

    Otherwise that sync could use a closed descriptor, or one that belongs to another file by then.
    """

    __slots__ = ("_descriptor", "_path")

    def __init__(self, path: str, fd: int) -> None:
        self._path = path
        self._descriptor: _Descriptor | None = _Descriptor(fd)

    def append(self, data: Buffer) -> None:
        fd = self._fd
        try:
            written = os.write(fd, data)
            while written < len(data):
                # On a full disk write() writes part of the data; only the next call fails.
                written += os.write(fd, memoryview(data)[written:])
        except OSError as error:
            raise _storage_error(self._path, "append", error) from error

    def read(self, position: int, size: int) -> bytes:
        fd = self._fd
        try:
            data = os.pread(fd, size, position)
            while 0 < len(data) < size:
                more = os.pread(fd, size - len(data), position + len(data))
                if not more:
                    break
                data += more
        except OSError as error:
            raise _storage_error(self._path, "read", error) from error
        return data

    def truncate(self, size: int) -> None:
        with _as_storage_error(self._path, "truncate"):
            os.ftruncate(self._fd, size)

    def sync(self) -> None:
        descriptor = self._descriptor
        if descriptor is not None:
            with _as_storage_error(self._path, "sync"):
                os.fdatasync(descriptor.fd)

    def size(self) -> int:
        with _as_storage_error(self._path, "size"):
            return os.fstat(self._fd).st_size

    def close(self) -> None:
        self._descriptor = None

    @property
    def _fd(self) -> int:
        assert self._descriptor is not None, f"{self._path} is closed"
        return self._descriptor.fd


class _Descriptor:
    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __del__(self) -> None:
        # A sync, where one is needed, has already reported any write error.
        with contextlib.suppress(OSError):
            os.close(self.fd)


class OsLock:
    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def release(self) -> None:
        os.close(self._fd)


class OsDisk:
    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def name(self) -> str:
        return str(self._root)

    def open(self, path: str) -> OsFile:
        return self._open(path, os.O_RDWR | os.O_APPEND)

    def create(self, path: str) -> OsFile:
        return self._open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC)

    def list(self, path: str) -> dict[str, int]:
        with _as_storage_error(path, "list"), os.scandir(self._root / path) as entries:
            return {
                entry.name: DIRECTORY if entry.is_dir() else entry.stat().st_size
                for entry in entries
            }

    def make_directory(self, path: str) -> None:
        with _as_storage_error(path, "make directory"):
            (self._root / path).mkdir(parents=True, exist_ok=True)

    def remove(self, path: str) -> None:
        full = self._root / path
        with _as_storage_error(path, "remove"):
            if full.is_dir():
                full.rmdir()
            else:
                full.unlink()

    def rename(self, old: str, new: str) -> None:
        with _as_storage_error(old, "rename"):
            (self._root / old).replace(self._root / new)

    def sync_directory(self, path: str) -> None:
        with _as_storage_error(path, "sync directory"):
            fd = os.open(self._root / path, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)

    def write_atomically(self, path: str, data: bytes) -> None:
        file = self.create(path + _TEMPORARY)
        try:
            file.append(data)
            file.sync()
        finally:
            file.close()
        self.rename(path + _TEMPORARY, path)
        self.sync_directory(str(Path(path).parent))

    def lock(self, path: str) -> OsLock | None:
        with _as_storage_error(path, "lock"):
            fd = os.open(self._root / path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(fd)
                if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                    return None
                raise
            return OsLock(fd)

    def _open(self, path: str, flags: int) -> OsFile:
        with _as_storage_error(path, "open"):
            return OsFile(path, os.open(self._root / path, flags | os.O_CLOEXEC, 0o644))


@contextlib.contextmanager
def _as_storage_error(path: str, action: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _storage_error(path, action, error) from error


def _storage_error(path: str, action: str, error: OSError) -> StorageError:
    return StorageError(path or ".", action, error.strerror or str(error))
