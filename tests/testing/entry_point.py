"""Registers the pytest plugin for processes of tests, whether Kohort is installed or not."""

from pathlib import Path
from typing import Final

PLUGIN: Final = "kohort.testing.pytest_plugin"


def add_entry_point(directory: Path) -> None:
    """Register the plugin as the installed package does, for processes with this import path."""
    found = directory / "kohort_entry_point-1.dist-info"
    found.mkdir()
    (found / "METADATA").write_text("Metadata-Version: 2.1\nName: kohort-entry-point\nVersion: 1\n")
    (found / "entry_points.txt").write_text(f"[pytest11]\nkohort = {PLUGIN}\n")
