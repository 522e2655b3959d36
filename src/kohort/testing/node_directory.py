"""The data directory of a node for tests: a given one, or a temporary one."""

import os
import shutil
import tempfile
import weakref
from pathlib import Path


class NodeDirectory:
    """A temporary directory is removed by `remove`, by the garbage collector or at exit.

    A forked child does not remove the directory of its parent.
    """

    def __init__(self, given: Path | None) -> None:
        self._given = given
        self._removal: weakref.finalize[[str, int], NodeDirectory] | None = None
        self._temporary: Path | None = None

    def make(self) -> Path:
        """Return the directory; the temporary one is created by the first call."""
        if self._given is not None:
            return self._given
        if self._temporary is None:
            path = tempfile.mkdtemp(prefix="kohort-")
            self._removal = weakref.finalize(self, _remove, path, os.getpid())
            self._temporary = Path(path)
        return self._temporary

    def remove(self) -> None:
        """The next call of `make` creates another one."""
        self._temporary = None
        if self._removal is not None:
            self._removal()


def _remove(path: str, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(path, ignore_errors=True)
