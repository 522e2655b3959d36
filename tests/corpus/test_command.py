"""kohort corpus: what it prints, what it refuses, and how it exits."""

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kohort.cli.app import app
from kohort.corpus.kinds import KINDS

ROOT = Path(__file__).parents[2]

SUMMARY = (
    "seed 1, 1 h: 2 groups, 6498 records, 600 events, 90 rebalances, 1 pathology, 0 look-alikes\n"
)
LIST = (Path(__file__).parent / "golden" / "list.txt").read_text("utf-8")


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["corpus", *arguments])
    return result.exit_code, result.output


def test_the_list_names_every_kind_by_its_sort() -> None:
    code, output = run("--list")

    assert (code, output) == (0, LIST)


def test_a_summary_says_what_was_made(tmp_path: Path) -> None:
    kinds = ("--kind", "quiet", "--kind", "rebalance-storm")

    code, output = run("--seed", "1", "--hours", "1", *kinds, "--to", str(tmp_path / "new"))

    assert (code, output) == (0, SUMMARY)


def test_kinds_take_turns_until_there_are_enough_groups(tmp_path: Path) -> None:
    words = ("--kind", "quiet", "--kind", "idle-topic", "--groups", "3", "--hours", "1")

    code, output = run(*words, "--no-events", "--partitions", "2", "--to", str(tmp_path))

    assert code == 0
    assert "3 groups" in output
    assert " 0 events" in output
    assert len(list((tmp_path / "log").glob("__consumer_offsets-*"))) == 2


def test_an_unknown_kind_is_refused_with_the_nearest(tmp_path: Path) -> None:
    code, output = run("--kind", "rebalance-strom", "--to", str(tmp_path / "new"))

    reason = "there is no kind 'rebalance-strom'; the nearest is 'rebalance-storm'"
    assert (code, output) == (1, f"kohort: {reason}\n")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("words", [(), ("--real",)])
def test_a_directory_with_something_in_it_is_left_alone(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "precious").write_text("work", "utf-8")

    code, output = run("--to", str(tmp_path), *words)

    assert (code, output) == (1, f"kohort: {tmp_path} is not empty\n")
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_a_file_in_the_place_of_the_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("work", "utf-8")

    code, output = run("--to", str(tmp_path / "file"))

    assert (code, output) == (
        1,
        f"kohort: {tmp_path / 'file'} cannot be written: Not a directory\n",
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_that_may_not_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)

    code, output = run("--to", str(tmp_path / "locked" / "new"))

    assert (code, output) == (
        1,
        f"kohort: {tmp_path / 'locked' / 'new'} cannot be written: Permission denied\n",
    )


def test_what_does_not_go_with_real_clients_is_refused(tmp_path: Path) -> None:
    code, output = run("--real", "--kind", "steady", "--to", str(tmp_path))

    assert code == 1
    assert output.startswith("kohort: --real has a script of its own")


def test_without_a_directory_it_says_what_is_missing() -> None:
    assert run("--seed", "1") == (1, "kohort: say where to put it: --to DIR\n")


@pytest.mark.parametrize("words", [("--groups", "0"), ("--hours", "0"), ("--partitions", "0")])
def test_numbers_that_make_no_sense_are_refused(tmp_path: Path, words: tuple[str, str]) -> None:
    code, output = run(*words, "--to", str(tmp_path / "new"))

    assert code == 2
    assert words[0] in output


def test_the_page_about_it_names_every_kind_with_its_meaning() -> None:
    page = (ROOT / "docs" / "corpus.md").read_text("utf-8")

    for kind in KINDS.values():
        assert f"| `{kind.name}` | {kind.sort} | {kind.meaning} |" in page
