"""The directory a corpus is written to, and the files beside its log."""

from collections.abc import Iterable
from pathlib import Path


class Occupied(Exception):
    """The directory holds something already, and nothing of it shall be lost."""


def claim(directory: Path) -> None:
    """Make it, if it is not there; refuse it, if something is in it."""
    if directory.exists() and any(directory.iterdir()):
        raise Occupied(f"{directory} is not empty")
    directory.mkdir(parents=True, exist_ok=True)


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """The same bytes on every system."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for line in lines:
            file.write(f"{line}\n")
