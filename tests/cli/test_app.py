"""The command line as a whole: how it names itself, how it refuses, how it is started."""

import subprocess
import sys
from importlib.metadata import version

import pytest
from typer.testing import CliRunner

from kohort.cli.app import app


def test_version_is_that_of_the_package() -> None:
    result = CliRunner().invoke(app, ["--version"])

    assert result.exit_code == 0
    assert result.stdout == f"kohort {version('kohort')}\n"


@pytest.mark.parametrize("arguments", [["--nonsense"], ["demo", "--nonsense"], ["nonsense"]])
def test_what_is_not_understood_is_refused_by_name(arguments: list[str]) -> None:
    result = CliRunner().invoke(app, arguments)

    assert result.exit_code == 2
    assert "nonsense" in result.stderr


def test_the_module_starts_like_the_command() -> None:
    finished = subprocess.run(
        [sys.executable, "-m", "kohort", "--version"], capture_output=True, text=True, check=True
    )

    assert finished.stdout == f"kohort {version('kohort')}\n"
