"""Reads the files of the repository, without those that tools generate."""

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "src" / "kohort"

_GENERATED = {"__pycache__", "build", "dist", "metastore_db", "spark-warehouse"}


def read(name: str) -> str:
    """The text of a file, by its path from the root."""
    return (ROOT / name).read_text(encoding="utf-8")


def find_texts() -> Iterator[tuple[str, str]]:
    """Every text file: its path from the root with slashes, and its text."""
    for path in sorted(_walk(ROOT)):
        content = path.read_bytes()
        if b"\0" not in content:
            yield path.relative_to(ROOT).as_posix(), content.decode("utf-8")


def _walk(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_dir():
            is_hidden = path.name.startswith(".") and path.name != ".ci"
            if not is_hidden and path.name not in _GENERATED:
                yield from _walk(path)
        elif path.name not in {".git", ".venv.lock", "derby.log"}:
            yield path
