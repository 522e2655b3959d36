"""The Dockerfile. No Docker engine runs here, so a linter checks it, and a test its commands."""

import re
import subprocess
import sys
from pathlib import Path

from tests.package.environment import ROOT


def test_the_linter_finds_nothing_in_the_dockerfile() -> None:
    hadolint = Path(sys.executable).parent / "hadolint"

    ended = subprocess.run(
        [hadolint, "--no-color", "Dockerfile"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ended.returncode, ended.stdout) == (0, "")


def test_every_file_that_the_dockerfile_copies_exists_and_is_not_ignored() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text("utf-8")
    sent = (ROOT / ".dockerignore").read_text("utf-8")
    copied = [
        name
        for line in re.findall(r"^COPY (?!--from)(.*) \S+$", dockerfile, re.MULTILINE)
        for name in line.split()
    ]

    assert "pyproject.toml" in copied
    for name in copied:
        assert (ROOT / name).exists()
        assert f"!{name}\n" in sent
