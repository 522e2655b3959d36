"""CRC-32C: only the compiled module of the crc32c package is loaded."""

import os
import subprocess
import sys
from pathlib import Path

import crc32c
from hypothesis import given
from hypothesis import strategies as st

from kohort.wire.batch_header import checksum

CHECK = "from kohort.wire.batch_header import checksum; import sys; print(checksum(b'123456789'))"


def run_script(script: str, *, path: Path | None = None) -> list[str]:
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
def test_checksum_matches_the_crc32c_package(data: bytes) -> None:
    assert checksum(data) == checksum(memoryview(data)) == crc32c.crc32c(data)


def test_only_the_compiled_module_is_loaded() -> None:
    known, *modules = run_script(f"{CHECK}; print(*sys.modules)")

    assert int(known) == 0xE3069283
    assert not {"crc32c", "argparse", "importlib.metadata"} & set(modules)


def test_package_without_compiled_module_is_imported(tmp_path: Path) -> None:
    (tmp_path / "crc32c.py").write_text("def crc32c(data, value=0):\n    return 7\n", "utf-8")

    assert run_script(CHECK, path=tmp_path) == ["7"]
