"""The `kohort` command as a whole: version, usage errors, lazy imports."""

import subprocess
import sys
from importlib.metadata import version

import pytest
from typer.testing import CliRunner

from kohort.cli import decode, groups, pipeline, topics
from kohort.cli.app import COMMANDS, app
from kohort.cli.lazy_group import Commands, load


def test_version_of_the_package_is_printed() -> None:
    result = CliRunner().invoke(app, ["--version"])

    assert result.exit_code == 0
    assert result.stdout == f"kohort {version('kohort')}\n"


@pytest.mark.parametrize("arguments", [["--nonsense"], ["demo", "--nonsense"], ["nonsense"]])
def test_unknown_command_or_option_is_named(arguments: list[str]) -> None:
    result = CliRunner().invoke(app, arguments)

    assert result.exit_code == 2
    assert "nonsense" in result.stderr


def test_module_runs_the_same_command() -> None:
    finished = subprocess.run(
        [sys.executable, "-m", "kohort", "--version"], capture_output=True, text=True, check=True
    )

    assert finished.stdout == f"kohort {version('kohort')}\n"


@pytest.mark.parametrize(
    ("package", "commands"),
    [
        ("kohort.cli", COMMANDS),
        ("kohort.cli.decode", decode.COMMANDS),
        ("kohort.cli.groups", groups.COMMANDS),
        ("kohort.cli.topics", topics.COMMANDS),
        ("kohort.cli.pipeline", pipeline.COMMANDS),
    ],
)
def test_summary_is_the_first_paragraph_of_the_help(package: str, commands: Commands) -> None:
    for name, (target, summary) in commands.items():
        first, *_ = (load(package, name, target).help or "").split("\n\n")

        assert summary == " ".join(first.split())


def test_group_help_imports_no_command_module() -> None:
    program = (
        "import sys; from typer.testing import CliRunner; from kohort.cli.app import app;"
        "assert 'forensics' in CliRunner().invoke(app, ['pipeline', '--help']).stdout;"
        "assert 'migrate' in CliRunner().invoke(app, ['--help']).stdout; print(*sys.modules)"
    )
    finished = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    loaded = set(finished.stdout.split())
    assert "kohort.cli.pipeline" in loaded
    assert not {"kohort.cli.pipeline.ingest", "kohort.cli.migrate", "kohort.admin"} & loaded
