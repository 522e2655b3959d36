"""What a simulated disk is made of: each file and directory as it is, and as far as it is safe.

Without a sync a power failure may keep any beginning of what was added to a file, sectors of it out
of order, or garbage where they should be; and each name that was made, changed or removed on its
own. What was synced stays.
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
        """So many bytes from the beginning on are the same in both."""
        self.names: dict[str, Inode] = {}
        self.durable_names: dict[str, Inode] = {}
        self.changes: list[tuple[str | None, str | None, Inode]] = []
        """What was done to names since they were synced: the one that went, the one that came."""

    @property
    def is_dirty(self) -> bool:
        return bool(self.changes) or not self.clean == len(self.data) == len(self.durable)

    @property
    def extent(self) -> int:
        """How much there is to sync, to be remembered when a sync begins."""
        return len(self.changes) if self.is_directory else len(self.data)

    # Files

    def truncate(self, size: int) -> None:
        del self.data[size:]
        self.clean = min(self.clean, size)

    def sync_bytes(self, size: int) -> None:
        """The first so many bytes are safe from here on."""
        size = min(size, len(self.data))
        clean = min(self.clean, size)
        del self.durable[clean:]
        self.durable += self.data[clean:size]
        self.clean = size

    # Directories

    def rename(self, old: str | None, new: str | None, inode: "Inode") -> None:
        """A name that was there, one that is from now on, or both."""
        self.changes.append((old, new, inode))
        _apply(self.names, old, new, inode)

    def sync_names(self, count: int) -> None:
        """The first so many changes are safe from here on."""
        for old, new, inode in self.changes[:count]:
            _apply(self.durable_names, old, new, inode)
        del self.changes[:count]

    # Losing power

    def forget(self, chance: Random) -> None:
        """Keep what was synced, and of the rest whatever luck keeps; here and below."""
        if self.is_directory:
            names = dict(self.durable_names)
            for old, new, inode in self.changes:
                if chance.random() < 0.5 and (old is None or names.get(old) is inode):
                    _apply(names, old, new, inode)
            self.names, self.durable_names = names, dict(names)
            self.changes.clear()
            for inode in names.values():
                inode.forget(chance)
        elif self.is_dirty:
            self.data = bytearray(self._surviving(chance))
            self.durable = bytearray(self.data)
            self.clean = len(self.data)

    def _surviving(self, chance: Random) -> bytes:
        """What is found of a file that was changed and not synced."""
        data, clean = bytes(self.data), self.clean
        if len(self.durable) > clean and chance.random() < 0.5:
            # It was cut, and the cut is undone.
            return bytes(self.durable)
        if chance.random() < 0.6 or clean == len(data):
            return data[: chance.randint(clean, len(data))]
        # The file is as long as it should be, or nearly, and some sectors were not written: there
        # is nothing, or whatever stood there before. A sector is written as a whole.
        boundaries = range((clean // _SECTOR + 1) * _SECTOR, len(data), _SECTOR)
        kept = chance.choice((clean, *boundaries))
        end = chance.randint(kept, len(data))
        torn = chance.random()
        if torn < 0.4:
            return data[:kept] + bytes(end - kept)
        if torn < 0.8:
            return data[:kept] + chance.randbytes(end - kept)
        # A later sector was written before an earlier one.
        later = min(len(data), (kept // _SECTOR + 1) * _SECTOR)
        return data[:kept] + bytes(later - kept) + data[later:]


def _apply(names: dict[str, Inode], old: str | None, new: str | None, inode: Inode) -> None:
    if old is not None and names.get(old) is inode:
        del names[old]
    if new is not None:
        names[new] = inode
