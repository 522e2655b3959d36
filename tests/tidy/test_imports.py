"""The import contracts of pyproject.toml hold, can be broken, and are completed here."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy.repository import PACKAGES, ROOT

CHECKSUMS_AND_COMPRESSION = {"crc32c", "lz4", "zstandard", "cramjam"}

LEAN_PACKAGES = (
    "types",
    "settings",
    "wire",
    "events",
    "text",
    "conditions",
    "assignors",
    "log",
    "coordinator",
    "protocol",
)

# One import for each contract that it breaks.
FORBIDDEN_IMPORTS = {
    "wire/frame.py": "import kohort.coordinator",
    "coordinator/coordinator.py": "import time",
    "coordinator/groups/classic/group.py": "import kohort.wire.frame",
    "client/consumer.py": "import kohort.node",
    "client/member/member.py": "from random import random",
    "protocol/session.py": "import socket",
    "admin/topics.py": "from confluent_kafka.admin import AdminClient",
    "console/app.py": "import kohort.log",
    "console/html_renderer.py": "import kohort.pipeline",
    "cli/groups.py": "import kohort.node",
    "sim/world.py": "import pyspark.sql",
    "node/server.py": "from starlette.applications import Starlette",
    "node/loop.py": "import threading",
    "log/disk.py": "def read():\n    from asyncio import run",
    "types/ids.py": "from rich.console import Console",
    "node/clock.py": "from kohort.sim import clock",
    "pipeline/source/planner.py": "import pyspark.sql",
    "pipeline/errors.py": "from tests.tidy import rules",
}


def third_party_imports(text: str) -> set[str]:
    """The roots of all imports that are neither ours nor the standard library's."""
    return set(_imported_roots(text)) - set(sys.stdlib_module_names) - {"kohort"}


def _imported_roots(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield (node.module or "").partition(".")[0]


def lint_imports(package_root: Path) -> tuple[int, int, str]:
    """How many contracts the package below package_root keeps and breaks, and the output."""
    finished = subprocess.run(
        [
            str(Path(sys.executable).with_name("lint-imports")),
            "--no-cache",
            "--no-logo",
            "--config",
            str(ROOT / "pyproject.toml"),
        ],
        cwd=package_root,
        env={**os.environ, "PYTHONPATH": str(package_root)},
        capture_output=True,
        text=True,
        check=False,
    )
    output = finished.stdout + finished.stderr
    counts = re.search(r"Contracts: (\d+) kept, (\d+) broken", output)
    assert counts, output
    return int(counts[1]), int(counts[2]), output


def test_every_contract_is_kept() -> None:
    kept, broken, output = lint_imports(PACKAGES.parent)

    assert broken == 0, output
    assert kept > 0


def test_every_contract_can_be_broken(tmp_path: Path) -> None:
    for module in sorted(PACKAGES.rglob("*.py")):
        empty = tmp_path / "kohort" / module.relative_to(PACKAGES)
        empty.parent.mkdir(parents=True, exist_ok=True)
        empty.touch()
    for name, text in FORBIDDEN_IMPORTS.items():
        (tmp_path / "kohort" / name).write_text(text)

    kept, broken, output = lint_imports(tmp_path)

    assert kept == 0, output
    assert broken == len(FORBIDDEN_IMPORTS)


def test_the_lean_packages_use_only_checksums_and_compression() -> None:
    offences = [
        f"{path.relative_to(ROOT)} imports {root}"
        for package in LEAN_PACKAGES
        for path in sorted((PACKAGES / package).rglob("*.py"))
        for root in third_party_imports(path.read_text(encoding="utf-8"))
        if root not in CHECKSUMS_AND_COMPRESSION
    ]

    assert offences == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import numpy.linalg", {"numpy"}),
        ("from attrs import define", {"attrs"}),
        ("def late():\n    import yaml, os", {"yaml"}),
        ("import struct\nfrom kohort.types import Topic\nfrom os.path import join", set()),
    ],
)
def test_third_party_imports_are_seen(text: str, expected: set[str]) -> None:
    assert third_party_imports(text) == expected
