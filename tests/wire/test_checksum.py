"""CRC-32C comes from a package, of which no more is loaded than what computes it."""

import os
import subprocess
import sys
from pathlib import Path

import crc32c
from hypothesis import given
from hypothesis import strategies as st

from kohort.wire.batch_header import checksum

CHECK = "from kohort.wire.batch_header import checksum; import sys; print(checksum(b'123456789'))"


def said_by(script: str, *, path: Path | None = None) -> list[str]:
    found_first = {} if path is None else {"PYTHONPATH": str(path)}
    finished = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **found_first},
        capture_output=True,
        text=True,
        check=True,
    )
    return finished.stdout.split()


@given(data=st.binary())
def test_it_is_what_the_package_itself_computes(data: bytes) -> None:
    assert checksum(data) == checksum(memoryview(data)) == crc32c.crc32c(data)


def test_the_rest_of_the_package_is_not_loaded() -> None:
    known, *modules = said_by(f"{CHECK}; print(*sys.modules)")

    assert int(known) == 0xE3069283
    assert not {"crc32c", "argparse", "importlib.metadata"} & set(modules)


def test_a_package_that_is_made_otherwise_is_asked_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "crc32c.py").write_text("def crc32c(data, value=0):\n    return 7\n", "utf-8")

    assert said_by(CHECK, path=tmp_path) == ["7"]
