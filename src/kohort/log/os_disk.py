"""A data directory in the file system.

At most a given number of files have a descriptor. The one that was not used for longest loses its
descriptor when another file needs one, and gets a new one at its next use.
"""

import contextlib
import errno
import fcntl
import os
import resource
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

from kohort.log.disk import DIRECTORY
from kohort.log.errors import OutOfResources, StorageError
from kohort.wire.varint import Buffer

_TEMPORARY: Final = ".tmp"
"""Suffix of a file that will replace another."""

_SHORTAGES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
_NO_DESCRIPTOR: Final = frozenset({errno.EMFILE, errno.ENFILE})

_OPEN_FILES_MIN: Final = 16
_OPEN_FILES_MAX: Final = 100_000
"""If the number of descriptors is not limited; protects the memory of the kernel."""

_RELEASED: Final = 8
"""Files that lose their descriptor when the operating system has none left."""

T = TypeVar("T")


def default_open_files_max() -> int:
    """Half of the descriptors of this process. The other half is for sockets."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _OPEN_FILES_MAX
    return max(_OPEN_FILES_MIN, min(soft // 2, _OPEN_FILES_MAX))


class OsFile:
    """A file without a descriptor is opened again when it is used.

    A sync in another thread holds the descriptor until it is done. Otherwise it could use a closed
    one, or one that belongs to another file by then.
    """

    __slots__ = ("_descriptor", "_disk", "_is_closed", "_path")

    def __init__(self, disk: "OsDisk", path: str, fd: int) -> None:
        self._disk = disk
        self._path = path
        self._descriptor: _Descriptor | None = _Descriptor(fd)
        self._is_closed = False

    def append(self, data: Buffer) -> None:
        descriptor = self._use()
        fd = descriptor.fd
        try:
            write = self._disk.write
            written = write(fd, data)
            while written < len(data):
                # On a full disk write() writes part of the data; only the next call fails.
                written += write(fd, memoryview(data)[written:])
        except OSError as error:
            raise _storage_error(self._path, "append", error) from error

    def read(self, position: int, size: int) -> bytes:
        descriptor = self._use()
        fd = descriptor.fd
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
        descriptor = self._use()
        with _as_storage_error(self._path, "truncate"):
            os.ftruncate(descriptor.fd, size)

    def sync(self) -> None:
        descriptor = self._descriptor
        if descriptor is None:
            descriptor = self._open_for_sync()
        if descriptor is not None:
            _sync(self._path, "sync", os.fdatasync, descriptor.fd)

    def _open_for_sync(self) -> "_Descriptor | None":
        """A descriptor for one sync, on any thread. None if the file is closed.

        The operating system reports an earlier write error to this descriptor too, unless a sync
        has reported it before.
        """
        if self._is_closed:
            return None
        try:
            return _Descriptor(self._disk.open_descriptor(self._path))
        except StorageError:
            # A file is closed before it is removed.
            if self._is_closed:
                return None
            raise

    def size(self) -> int:
        descriptor = self._use()
        with _as_storage_error(self._path, "size"):
            return os.fstat(descriptor.fd).st_size

    def close(self) -> None:
        self._is_closed = True
        self._descriptor = None
        self._disk.forget(self)

    def release(self) -> None:
        """Give the descriptor up until the next use."""
        self._descriptor = None

    def _use(self) -> "_Descriptor":
        """The caller keeps the result while it uses the number: another thread may release it."""
        descriptor = self._descriptor
        if descriptor is None:
            assert not self._is_closed, f"{self._path} is closed"
            descriptor = self._descriptor = _Descriptor(self._disk.reopen(self, self._path))
        else:
            self._disk.mark_used(self)
        return descriptor


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
        # Closing alone does not unlock while a forked child has a copy of the descriptor.
        fcntl.flock(self._fd, fcntl.LOCK_UN)
        os.close(self._fd)


class OsDisk:
    def __init__(self, root: Path, open_files_max: int | None = None) -> None:
        self._root = root
        self._prefix = os.path.join(root, "")  # noqa: PTH118  # faster than a Path per operation
        self._open_files_max = open_files_max or default_open_files_max()
        self.write: Callable[[int, Buffer], int] = os.write
        """The system call. A test that fills the disk replaces it."""
        self._open: OrderedDict[OsFile, None] = OrderedDict()
        """The files with a descriptor, least recently used first."""
        self._spares: list[_Descriptor] = []
        """A descriptor that is closed when there is no other. So directories can be listed and
        synced although clients use up all descriptors."""
        self._keep_spare()

    @property
    def name(self) -> str:
        return str(self._root)

    def open(self, path: str) -> OsFile:
        return self._open_file(path, os.O_RDWR | os.O_APPEND)

    def create(self, path: str) -> OsFile:
        return self._open_file(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC)

    def list(self, path: str) -> dict[str, int]:
        def scan() -> dict[str, int]:
            with os.scandir(self._prefix + path) as entries:
                return {
                    entry.name: DIRECTORY if entry.is_dir() else entry.stat().st_size
                    for entry in entries
                }

        with _as_storage_error(path, "list"):
            return self._with_descriptor(scan)

    def make_directory(self, path: str) -> None:
        with _as_storage_error(path, "make directory"):
            try:
                os.mkdir(self._prefix + path)  # noqa: PTH102  # as above
            except OSError:
                (self._root / path).mkdir(parents=True, exist_ok=True)

    def remove(self, path: str) -> None:
        full = self._prefix + path
        with _as_storage_error(path, "remove"):
            try:
                os.unlink(full)  # noqa: PTH108  # as above
            except OSError as error:
                # Linux and macOS have different errors for a directory.
                if error.errno not in (errno.EISDIR, errno.EPERM):
                    raise
                os.rmdir(full)  # noqa: PTH106  # as above

    def rename(self, old: str, new: str) -> None:
        with _as_storage_error(old, "rename"):
            os.replace(self._prefix + old, self._prefix + new)  # noqa: PTH105  # as above

    def sync_directory(self, path: str) -> None:
        descriptor = _Descriptor(self.open_descriptor(path, os.O_RDONLY | os.O_DIRECTORY))
        _sync(path, "sync directory", os.fsync, descriptor.fd)

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

    # Descriptors

    def open_descriptor(self, path: str, flags: int = os.O_RDWR | os.O_APPEND) -> int:
        """Any thread may call this."""
        with _as_storage_error(path, "open"):
            return self._with_descriptor(
                lambda: os.open(self._prefix + path, flags | os.O_CLOEXEC, 0o644)
            )

    def reopen(self, file: OsFile, path: str) -> int:
        fd = self.open_descriptor(path)
        self._add(file)
        return fd

    def forget(self, file: OsFile) -> None:
        self._open.pop(file, None)

    def mark_used(self, file: OsFile) -> None:
        try:
            self._open.move_to_end(file)
        except KeyError:
            return  # another thread has just released it

    def _open_file(self, path: str, flags: int) -> OsFile:
        file = OsFile(self, path, self.open_descriptor(path, flags))
        self._add(file)
        return file

    def _add(self, file: OsFile) -> None:
        self._open[file] = None
        if len(self._open) > self._open_files_max:
            self._release(1)

    def _release(self, count: int) -> None:
        with contextlib.suppress(KeyError):
            for _ in range(count):
                self._open.popitem(last=False)[0].release()

    def _with_descriptor(self, action: Callable[[], T]) -> T:
        """Run something that opens a file. If there is no descriptor left, make room for it."""
        if not self._spares:
            self._keep_spare()
        try:
            return action()
        except OSError as error:
            if error.errno not in _NO_DESCRIPTOR:
                raise
        self._release(_RELEASED)
        self._spares.clear()
        return action()

    def _keep_spare(self) -> None:
        with contextlib.suppress(OSError):
            self._spares.append(_Descriptor(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)))


@contextlib.contextmanager
def _as_storage_error(path: str, action: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _storage_error(path, action, error) from error


def _sync(path: str, action: str, sync: Callable[[int], None], fd: int) -> None:
    try:
        sync(fd)
    except OSError as error:
        # Never a shortage of resources: no failed sync may be repeated.
        raise StorageError(path or ".", action, error.strerror or str(error)) from error


def _storage_error(path: str, action: str, error: OSError) -> StorageError:
    kind = OutOfResources if error.errno in _SHORTAGES else StorageError
    return kind(path or ".", action, error.strerror or str(error))
