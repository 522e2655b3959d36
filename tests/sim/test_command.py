"""kohort simulate: output, plan files and exit codes."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from kohort.cli.app import app
from kohort.sim.plan import EventKind
from kohort.sim.plan_file import write_plan
from kohort.sim.plan_generator import draw_plan
from kohort.sim.trace import EVENTS
from tests.sim.mutations import MUTATIONS, applied

ROOT = Path(__file__).parents[2]
MUTATION = next(each for each in MUTATIONS if each.name == "two-responses")


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["simulate", *arguments])
    return result.exit_code, result.output


def test_passing_seeds_print_a_summary() -> None:
    code, output = run("--seed", "3", "--runs", "2")

    assert code == 0
    assert "2 seeds from 3 on" in output
    assert "none failed" in output


def test_a_failure_prints_its_seed_and_writes_a_shrunk_plan(tmp_path: Path) -> None:
    with applied(MUTATION):
        code, output = run("--seed", "0", "--keep", str(tmp_path))
        code_again, again = run("--replay", str(tmp_path / "0.seed"), "--trace")

    assert code == code_again == 1
    assert "seed 0 broke responses" in output
    assert "broke responses" in again


def test_a_plan_file_can_be_replayed(tmp_path: Path) -> None:
    file = tmp_path / "some.seed"
    file.write_text(write_plan(draw_plan(4)), "utf-8")

    code, output = run("--replay", str(file))

    assert code == 0
    assert "seed 4:" in output


@pytest.mark.parametrize("content", [None, "nonsense"])
def test_an_invalid_plan_file_is_rejected(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "bad.seed"
    if content is not None:
        file.write_text(content, "utf-8")

    code, output = run("--replay", str(file))

    assert code == 1
    assert str(file) in output.replace("\n", "")


def test_docs_explain_every_trace_event() -> None:
    legend = (ROOT / "docs" / "explanation" / "simulation.md").read_text("utf-8")

    code, output = run("--seed", "13", "--trace")

    assert code == 0
    used = {line.split()[2] for line in output.splitlines()[:-1]}
    assert len(used) > 10
    assert used <= set(EVENTS)
    for word, meaning in EVENTS.items():
        assert f"| {word} | {meaning} |" in legend
    for kind in EventKind:
        assert f"| {kind} | " in legend
