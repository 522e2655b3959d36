"""The output directory of a history and the text files in it."""

from collections.abc import Iterable
from pathlib import Path


class DirectoryNotEmpty(Exception):
    """The output directory has files in it. The generator never overwrites anything."""


def create_empty(directory: Path) -> None:
    """Create the directory if it does not exist; raise DirectoryNotEmpty if it has contents."""
    if directory.exists() and any(directory.iterdir()):
        raise DirectoryNotEmpty(f"{directory} is not empty")
    directory.mkdir(parents=True, exist_ok=True)


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write the same bytes on every operating system."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for line in lines:
            file.write(f"{line}\n")
