"""Records the system calls that change a directory: what a power failure may keep or lose.

The recorder replaces functions of the module `os` while it is active, and passes every call on. So
it sees what the real disk layer does, in the order in which it does it. Files are numbered, because
a name may belong to several files over time.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = 0
"""The number of the data directory."""

NOTHING = -1
"""Instead of the number in a sync that has no effect."""

_UNKNOWN = ("link", "pwrite", "pwritev", "posix_fallocate", "symlink", "truncate", "writev")
"""Calls that change files and that the recorder does not know. The log does not use them."""


@dataclass(frozen=True, slots=True)
class NameChange:
    """Creates, renames or removes an entry of a directory; None is no name."""

    directory: int
    old: str | None
    new: str | None
    inode: int


@dataclass(frozen=True, slots=True)
class Written:
    inode: int
    position: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Truncated:
    inode: int
    size: int


@dataclass(frozen=True, slots=True)
class Synced:
    """All earlier changes of the file's content, or of the directory's names, are durable."""

    inode: int
    path: str


Change = NameChange | Written | Truncated | Synced


@dataclass(slots=True)
class _Entry:
    number: int
    path: str
    is_directory: bool
    names: "dict[str, _Entry]" = field(default_factory=dict)
    size: int = 0


class SyscallRecorder:
    """The changes of one directory, in order. The directory must be empty at first."""

    def __init__(self, directory: Path) -> None:
        self.changes: list[Change] = []
        self.directories = {ROOT}
        self._home = f"{directory}"
        self._root = _Entry(ROOT, "", is_directory=True)
        self._last_number = ROOT
        self._by_fd: dict[int, _Entry] = {}
        self._real: dict[str, Any] = {}

    @property
    def position(self) -> int:
        return len(self.changes)

    @contextmanager
    def active(self) -> Iterator[None]:
        replaced: dict[str, Any] = {
            "open": self._open,
            "close": self._close,
            "write": self._write,
            "ftruncate": self._ftruncate,
            "fsync": self._sync("fsync"),
            "fdatasync": self._sync("fdatasync"),
            "mkdir": self._mkdir,
            "rmdir": self._remove("rmdir"),
            "unlink": self._remove("unlink"),
            "remove": self._remove("remove"),
            "rename": self._rename("rename"),
            "replace": self._rename("replace"),
            **{name: self._refuse(name) for name in _UNKNOWN},
        }
        self._real = {name: getattr(os, name) for name in replaced}
        for name, function in replaced.items():
            setattr(os, name, function)
        try:
            yield
        finally:
            for name, function in self._real.items():
                setattr(os, name, function)

    def sizes(self) -> dict[str, int]:
        """The files that should be there now, with their sizes."""
        found: dict[str, int] = {}
        stack = [self._root]
        while stack:
            for entry in stack.pop().names.values():
                if entry.is_directory:
                    stack.append(entry)
                else:
                    found[entry.path] = entry.size
        return found

    # The replaced functions

    def _open(self, path: Any, flags: int, *rest: Any, **options: Any) -> int:
        inside = self._relative(path)
        is_new = inside is not None and self._find(inside) is None
        fd: int = self._real["open"](path, flags, *rest, **options)
        if inside is None:
            return fd
        assert not options, "the recorder knows no dir_fd"
        if is_new:
            self._add(inside, is_directory=False)
        entry = self._find(inside)
        assert entry is not None
        if flags & os.O_TRUNC and entry.size:
            self.changes.append(Truncated(entry.number, 0))
            entry.size = 0
        self._by_fd[fd] = entry
        return fd

    def _close(self, fd: int) -> None:
        self._by_fd.pop(fd, None)
        self._real["close"](fd)

    def _write(self, fd: int, data: Any) -> int:
        count: int = self._real["write"](fd, data)
        entry = self._by_fd.get(fd)
        if entry is not None:
            self.changes.append(Written(entry.number, entry.size, bytes(data[:count])))
            entry.size += count
        return count

    def _ftruncate(self, fd: int, size: int) -> None:
        self._real["ftruncate"](fd, size)
        entry = self._by_fd.get(fd)
        if entry is not None:
            self.changes.append(Truncated(entry.number, size))
            entry.size = size

    def _sync(self, name: str) -> Callable[[int], None]:
        def sync(fd: int) -> None:
            entry = self._by_fd.get(fd)
            # The data is on a disk that does not lose power; only the call matters.
            if entry is None:
                self._real[name](fd)
            else:
                self.changes.append(Synced(entry.number, entry.path))

        return sync

    def _mkdir(self, path: Any, *rest: Any, **options: Any) -> None:
        self._real["mkdir"](path, *rest, **options)
        inside = self._relative(path)
        if inside is not None:
            self.directories.add(self._add(inside, is_directory=True).number)

    def _remove(self, name: str) -> Callable[..., None]:
        def remove(path: Any, **options: Any) -> None:
            self._real[name](path, **options)
            inside = self._relative(path)
            if inside is not None:
                parent, last = self._parent(inside)
                entry = parent.names.pop(last)
                self.changes.append(NameChange(parent.number, last, None, entry.number))

        return remove

    def _rename(self, name: str) -> Callable[[Any, Any], None]:
        def rename(old: Any, new: Any) -> None:
            self._real[name](old, new)
            before, after = self._relative(old), self._relative(new)
            if before is None and after is None:
                return
            assert before is not None, "a rename into the directory"
            assert after is not None, "a rename out of the directory"
            parent, old_name = self._parent(before)
            target, new_name = self._parent(after)
            assert parent is target, "a rename to another directory"
            entry = parent.names.pop(old_name)
            parent.names[new_name] = entry
            entry.path = after
            self.changes.append(NameChange(parent.number, old_name, new_name, entry.number))

        return rename

    def _refuse(self, name: str) -> Callable[..., Any]:
        def call(target: Any, *rest: Any, **options: Any) -> Any:
            is_ours = target in self._by_fd if isinstance(target, int) else self._relative(target)
            assert is_ours is None or is_ours is False, f"the recorder does not know os.{name}"
            return self._real[name](target, *rest, **options)

        return call

    # Entries

    def _relative(self, path: Any) -> str | None:
        text = os.fspath(path)
        if not isinstance(text, str) or not (text + "/").startswith(self._home + "/"):
            return None
        return os.path.normpath(text[len(self._home) + 1 :] or ".")

    def _find(self, path: str) -> _Entry | None:
        entry: _Entry | None = self._root
        for name in path.split("/"):
            if name != "." and entry is not None:
                entry = entry.names.get(name)
        return entry

    def _parent(self, path: str) -> tuple[_Entry, str]:
        head, _, last = path.rpartition("/")
        parent = self._find(head or ".")
        assert parent is not None, f"no directory for {path}"
        return parent, last

    def _add(self, path: str, *, is_directory: bool) -> _Entry:
        parent, name = self._parent(path)
        self._last_number += 1
        entry = _Entry(self._last_number, path, is_directory)
        parent.names[name] = entry
        self.changes.append(NameChange(parent.number, None, name, entry.number))
        return entry
