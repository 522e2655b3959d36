"""kohort simulate: what it prints, what it keeps, and how it exits."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from kohort.cli.app import app
from kohort.sim.drawing import draw_plan
from kohort.sim.plan import Kind
from kohort.sim.planfile import write_plan
from kohort.sim.trace import WORDS
from tests.sim.mutations import MUTATIONS, applied

ROOT = Path(__file__).parents[2]
MISTAKE = next(each for each in MUTATIONS if each.name == "twice-answered")


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["simulate", *arguments])
    return result.exit_code, result.output


def test_many_good_seeds_end_in_a_summary() -> None:
    code, output = run("--seed", "3", "--runs", "2")

    assert code == 0
    assert "2 seeds from 3 on" in output
    assert "none failed" in output


def test_a_failure_shows_its_seed_and_is_shrunk_into_a_file(tmp_path: Path) -> None:
    with applied(MISTAKE):
        code, output = run("--seed", "0", "--keep", str(tmp_path))
        code_again, again = run("--replay", str(tmp_path / "0.seed"), "--trace")

    assert code == code_again == 1
    assert "seed 0 broke answers" in output
    assert "broke answers" in again


def test_a_plan_in_a_file_is_run_again(tmp_path: Path) -> None:
    file = tmp_path / "some.seed"
    file.write_text(write_plan(draw_plan(4)), "utf-8")

    code, output = run("--replay", str(file))

    assert code == 0
    assert "seed 4:" in output


@pytest.mark.parametrize("content", [None, "nonsense"])
def test_a_file_that_holds_no_plan_is_refused(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "bad.seed"
    if content is not None:
        file.write_text(content, "utf-8")

    code, output = run("--replay", str(file))

    assert code == 1
    assert str(file) in output.replace("\n", "")


def test_a_trace_uses_only_words_that_its_legend_explains() -> None:
    legend = (ROOT / "docs" / "simulation.md").read_text("utf-8")

    code, output = run("--seed", "13", "--trace")

    assert code == 0
    used = {line.split()[2] for line in output.splitlines()[:-1]}
    assert len(used) > 10
    assert used <= set(WORDS)
    for word, meaning in WORDS.items():
        assert f"| {word} | {meaning} |" in legend
    for kind in Kind:
        assert f"| {kind} | " in legend
