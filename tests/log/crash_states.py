"""The legal states of a directory after a power failure at any point of a recording.

Synced changes are there. Of the changes since the last sync of a file or directory, each may be
there or not, in any combination, and a write may be torn: at any byte, or sector by sector with
zeros, garbage or old bytes in between.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from random import Random

from tests.log.syscall_recorder import (
    NOTHING,
    ROOT,
    Change,
    NameChange,
    Synced,
    Truncated,
    Written,
)

SECTOR = 512

Tree = Mapping[str, bytes | None]
"""Paths with the content of files; None for directories."""

_SUBSETS_MAX = 5
"""With at most as many unsynced changes all subsets of them are tried."""


@dataclass(slots=True)
class _Content:
    """A file: its durable bytes and what was changed since."""

    durable: bytes = b""
    pending: list[Written | Truncated] = field(default_factory=list)

    def after(self, changes: Iterable[Written | Truncated]) -> bytes:
        data = bytearray(self.durable)
        for change in changes:
            _apply(data, change)
        return bytes(data)


def _apply(data: bytearray, change: Written | Truncated) -> None:
    if isinstance(change, Truncated):
        del data[change.size :]
        data.extend(bytes(change.size - len(data)))
        return
    if len(data) < change.position:  # an earlier write was lost
        data.extend(bytes(change.position - len(data)))
    data[change.position : change.position + len(change.data)] = change.data


@dataclass(slots=True)
class _Names:
    """A directory: its durable entries and what was changed since."""

    durable: dict[str, int] = field(default_factory=dict)
    pending: list[NameChange] = field(default_factory=list)

    def after(self, changes: Iterable[NameChange]) -> dict[str, int]:
        names = dict(self.durable)
        for change in changes:
            if change.old is not None:
                if names.get(change.old) != change.inode:
                    continue  # the file never got this name
                del names[change.old]
            if change.new is not None:
                names[change.new] = change.inode
        return names


class Directory:
    """A directory up to some change of a recording."""

    def __init__(self, directories: set[int]) -> None:
        self._files: dict[int, _Content] = {}
        self._directories = {number: _Names() for number in directories}

    def apply(self, change: Change) -> None:
        match change:
            case NameChange():
                self._directories[change.directory].pending.append(change)
                if change.inode not in self._directories:
                    self._files.setdefault(change.inode, _Content())
            case Synced(inode=inode):
                if inode != NOTHING:
                    self._sync(inode)
            case Written() | Truncated():
                self._files[change.inode].pending.append(change)

    def _sync(self, inode: int) -> None:
        if inode in self._directories:
            names = self._directories[inode]
            names.durable = names.after(names.pending)
            names.pending.clear()
        else:
            content = self._files[inode]
            content.durable = content.after(content.pending)
            content.pending.clear()

    def states(self, rng: Random, count: int) -> Iterator[Tree]:
        """At most `count` different states, first those that are most likely to be a problem."""
        seen: set[int] = set()
        for tree in self._draw(rng, count) if count > 0 else ():
            key = hash(frozenset(tree.items()))
            if key not in seen:
                seen.add(key)
                yield tree
            if len(seen) == count:
                return

    def _draw(self, rng: Random, count: int) -> Iterator[Tree]:
        for keeps_names, keeps_data in product((False, True), repeat=2):
            yield self._tree(_Whole(keeps_names=keeps_names, keeps_data=keeps_data))
        unsynced: list[Change] = []
        for names in self._directories.values():
            unsynced += names.pending
        for content in self._files.values():
            unsynced += content.pending
        if 0 < len(unsynced) <= _SUBSETS_MAX:
            for bits in product((False, True), repeat=len(unsynced)):
                kept = {id(each) for each, bit in zip(unsynced, bits, strict=True) if bit}
                yield self._tree(_Subset(kept))
        # Random states repeat if there are few; more attempts are of no use.
        for _ in range(4 * count if unsynced else 0):
            yield self._tree(_Random(rng))

    def _tree(self, choice: "_Choice") -> Tree:
        tree: dict[str, bytes | None] = {}
        stack = [(ROOT, "")]
        while stack:
            number, path = stack.pop()
            names = self._directories[number]
            for name, inode in names.after(choice.names(names.pending)).items():
                if inode in self._directories:
                    tree[path + name] = None
                    stack.append((inode, f"{path}{name}/"))
                else:
                    content = self._files[inode]
                    tree[path + name] = (
                        choice.content(content) if content.pending else content.durable
                    )
        return tree


class _Choice:
    """Which unsynced changes survive."""

    def names(self, pending: list[NameChange]) -> list[NameChange]:
        raise NotImplementedError

    def content(self, content: _Content) -> bytes:
        raise NotImplementedError


class _Whole(_Choice):
    """All names or none, all data or none."""

    def __init__(self, *, keeps_names: bool, keeps_data: bool) -> None:
        self._keeps_names = keeps_names
        self._keeps_data = keeps_data

    def names(self, pending: list[NameChange]) -> list[NameChange]:
        return pending if self._keeps_names else []

    def content(self, content: _Content) -> bytes:
        return content.after(content.pending if self._keeps_data else ())


class _Subset(_Choice):
    """Exactly these changes."""

    def __init__(self, kept: set[int]) -> None:
        self._kept = kept

    def names(self, pending: list[NameChange]) -> list[NameChange]:
        return [each for each in pending if id(each) in self._kept]

    def content(self, content: _Content) -> bytes:
        return content.after(each for each in content.pending if id(each) in self._kept)


class _Random(_Choice):
    """Random names, and random parts of the data."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._likelihood = rng.choice((0.1, 0.5, 0.9))

    def names(self, pending: list[NameChange]) -> list[NameChange]:
        return [each for each in pending if self._rng.random() < self._likelihood]

    def content(self, content: _Content) -> bytes:
        rng = self._rng
        kind = rng.random()
        if kind < 0.2:
            return content.after(each for each in content.pending if rng.random() < 0.5)
        if kind < 0.55:
            return self._torn(content)
        return self._mixed_sectors(content)

    def _torn(self, content: _Content) -> bytes:
        """A part of one write, everything before it and nothing after it."""
        at = self._rng.randrange(len(content.pending))
        last = content.pending[at]
        data = bytearray(content.after(content.pending[:at]))
        if isinstance(last, Written):
            size = self._rng.randint(0, len(last.data))
            if self._rng.random() < 0.3:
                end = last.position + size
                size = max(0, end - end % SECTOR - last.position)
            last = Written(last.inode, last.position, last.data[:size])
        _apply(data, last)
        return bytes(data)

    def _mixed_sectors(self, content: _Content) -> bytes:
        """The last length, or the durable one; each sector has new bytes, old ones or others."""
        old, new = content.durable, content.after(content.pending)
        size = len(old) if self._rng.random() < 0.1 else len(new)
        data = bytearray()
        for start in range(0, size, SECTOR):
            end = min(size, start + SECTOR)
            before, after = old[start:end], new[start:end]
            kept = after.ljust(end - start, b"\0")
            if before != after and self._rng.random() < 0.5:
                missing = end - start - len(before)
                filler = (
                    bytes(missing) if self._rng.random() < 0.7 else self._rng.randbytes(missing)
                )
                kept = before + filler
            data += kept
        return bytes(data)
