"""Files and directories of the simulated disk, with their durable content.

A power failure keeps synced data. Of unsynced appends it may keep any prefix, sectors out of order
or garbage. Each unsynced directory change may survive or be lost on its own.
"""

from random import Random
from typing import Final

_SECTOR: Final = 512


class Inode:
    """A file's bytes, or a directory's names."""

    __slots__ = ("changes", "clean", "data", "durable", "durable_names", "is_directory", "names")

    def __init__(self, *, is_directory: bool) -> None:
        self.is_directory = is_directory
        self.data = bytearray()
        self.durable = bytearray()
        self.clean = 0
        """Length of the common prefix of `data` and `durable`."""
        self.names: dict[str, Inode] = {}
        self.durable_names: dict[str, Inode] = {}
        self.changes: list[tuple[str | None, str | None, Inode]] = []
        """Unsynced changes: old name, new name and inode."""

    @property
    def is_dirty(self) -> bool:
        return bool(self.changes) or not self.clean == len(self.data) == len(self.durable)

    @property
    def extent(self) -> int:
        """The amount to sync now: changes or bytes."""
        return len(self.changes) if self.is_directory else len(self.data)

    # Files

    def truncate(self, size: int) -> None:
        del self.data[size:]
        self.clean = min(self.clean, size)

    def sync_bytes(self, size: int) -> None:
        """Make the first `size` bytes durable."""
        size = min(size, len(self.data))
        clean = min(self.clean, size)
        del self.durable[clean:]
        self.durable += self.data[clean:size]
        self.clean = size

    # Directories

    def rename(self, old: str | None, new: str | None, inode: "Inode") -> None:
        """Add, remove or rename an entry."""
        self.changes.append((old, new, inode))
        _apply(self.names, old, new, inode)

    def sync_names(self, count: int) -> None:
        """Make the first `count` changes durable."""
        for old, new, inode in self.changes[:count]:
            _apply(self.durable_names, old, new, inode)
        del self.changes[:count]

    # Power failure

    def forget(self, rng: Random) -> None:
        """Keep synced data and a random part of the rest, recursively."""
        if self.is_directory:
            names = dict(self.durable_names)
            for old, new, inode in self.changes:
                if rng.random() < 0.5 and (old is None or names.get(old) is inode):
                    _apply(names, old, new, inode)
            self.names, self.durable_names = names, dict(names)
            self.changes.clear()
            for inode in names.values():
                inode.forget(rng)
        elif self.is_dirty:
            self.data = bytearray(self._surviving(rng))
            self.durable = bytearray(self.data)
            self.clean = len(self.data)

    def _surviving(self, rng: Random) -> bytes:
        """The content of an unsynced file after a power failure."""
        data, clean = bytes(self.data), self.clean
        if len(self.durable) > clean and rng.random() < 0.5:
            # The truncation is lost.
            return bytes(self.durable)
        if rng.random() < 0.6 or clean == len(data):
            return data[: rng.randint(clean, len(data))]
        # The length is kept, or nearly, but some sectors were not written: they hold zeros or old
        # data. Sectors are written as a whole.
        boundaries = range((clean // _SECTOR + 1) * _SECTOR, len(data), _SECTOR)
        kept = rng.choice((clean, *boundaries))
        end = rng.randint(kept, len(data))
        torn = rng.random()
        if torn < 0.4:
            return data[:kept] + bytes(end - kept)
        if torn < 0.8:
            return data[:kept] + rng.randbytes(end - kept)
        # A later sector was written before an earlier one.
        later = min(len(data), (kept // _SECTOR + 1) * _SECTOR)
        return data[:kept] + bytes(later - kept) + data[later:]


def _apply(names: dict[str, Inode], old: str | None, new: str | None, inode: Inode) -> None:
    if old is not None and names.get(old) is inode:
        del names[old]
    if new is not None:
        names[new] = inode
