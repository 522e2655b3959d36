"""The command `python -m tools.histories`: its output, errors and exit codes."""

import os
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from tools.histories.__main__ import run as run_command
from tools.histories.scenarios import SCENARIOS

app = typer.Typer()
app.command()(run_command)

ROOT = Path(__file__).parents[2]

SUMMARY = (
    "seed 1, 1 h: 2 groups, 6498 records, 600 events, 90 rebalances, 1 pathology, 0 look-alikes\n"
)
LIST = (Path(__file__).parent / "golden" / "list.txt").read_text("utf-8")


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.output


def test_the_list_has_every_scenario_by_category() -> None:
    code, output = run("--list")

    assert (code, output) == (0, LIST)


def test_the_summary_counts_what_was_generated(tmp_path: Path) -> None:
    scenarios = ("--kind", "quiet", "--kind", "rebalance-storm")

    code, output = run("--seed", "1", "--hours", "1", *scenarios, "--to", str(tmp_path / "new"))

    assert (code, output) == (0, SUMMARY)


def test_groups_take_the_scenarios_in_turn(tmp_path: Path) -> None:
    options = ("--kind", "quiet", "--kind", "idle-topic", "--groups", "3", "--hours", "1")

    code, output = run(*options, "--no-events", "--partitions", "2", "--to", str(tmp_path))

    assert code == 0
    assert "3 groups" in output
    assert " 0 events" in output
    assert len(list((tmp_path / "log").glob("__consumer_offsets-*"))) == 2


def test_an_unknown_scenario_is_refused_with_a_suggestion(tmp_path: Path) -> None:
    code, output = run("--kind", "rebalance-strom", "--to", str(tmp_path / "new"))

    reason = "unknown scenario 'rebalance-strom'; did you mean rebalance-storm?"
    assert (code, output) == (1, f"kohort: {reason}\n")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("options", [(), ("--real",)])
def test_a_directory_that_is_not_empty_is_refused(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "precious").write_text("work", "utf-8")

    code, output = run("--to", str(tmp_path), *options)

    assert (code, output) == (1, f"kohort: {tmp_path} is not empty\n")
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_a_file_instead_of_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("work", "utf-8")

    code, output = run("--to", str(tmp_path / "file"))

    assert (code, output) == (
        1,
        f"kohort: cannot write {tmp_path / 'file'}: Not a directory\n",
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)

    code, output = run("--to", str(tmp_path / "locked" / "new"))

    assert (code, output) == (
        1,
        f"kohort: cannot write {tmp_path / 'locked' / 'new'}: Permission denied\n",
    )


def test_real_refuses_options_of_the_generator(tmp_path: Path) -> None:
    code, output = run("--real", "--kind", "steady", "--to", str(tmp_path))

    assert code == 1
    assert output.startswith("kohort: --real can only be combined with")


def test_the_output_directory_is_required() -> None:
    assert run("--seed", "1") == (1, "kohort: missing output directory: use --to DIR\n")


@pytest.mark.parametrize("options", [("--groups", "0"), ("--hours", "0"), ("--partitions", "0")])
def test_numbers_below_one_are_refused(tmp_path: Path, options: tuple[str, str]) -> None:
    code, output = run(*options, "--to", str(tmp_path / "new"))

    assert code == 2
    assert options[0] in output


def test_the_documentation_has_every_scenario_with_its_meaning() -> None:
    page = (ROOT / "docs" / "explanation" / "labelled-histories.md").read_text("utf-8")

    for scenario in SCENARIOS.values():
        assert f"| `{scenario.name}` | {scenario.category} | {scenario.meaning} |" in page
