"""kohort pipeline forensics as a process: what it leaves and says, and what it refuses."""

import json
import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kohort.cli.app import app
from tests.pipeline.forensics.commanding import Corpus, forensics, make_corpus, sentence_in

pyarrow_parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return make_corpus(tmp_path_factory.mktemp("corpus"), "crash-loop", "steady", "scaling")


def rows_in(target: Path, table: str) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = pyarrow_parquet.read_table(target / table).to_pylist()
    return rows


def refuse(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["pipeline", "forensics", *words], terminal_width=200)
    assert not result.stdout
    return result.exit_code, result.stderr


def test_a_copied_log_becomes_tables_a_page_and_json(corpus: Corpus, tmp_path: Path) -> None:
    target, page = tmp_path / "tables", tmp_path / "report.html"

    ended = forensics(*corpus.words, "--to", f"{target}", "--report", f"{page}", "--json")

    assert ended.code == 0, ended.journal
    told = json.loads(ended.said)
    assert {each["group_id"] for each in told["groups"]} == corpus.groups.keys()
    assert {each["group_id"] for each in rows_in(target, "gold/groups")} == corpus.groups.keys()
    guilty = corpus.group_of("crash-loop")
    found = {(each["group_id"], each["finding"]) for each in rows_in(target, "gold/findings")}
    assert (guilty, "crash-loop") in found
    assert told["headline"] in page.read_text("utf-8")
    assert json.loads((target / "_complete.json").read_text("utf-8"))["has_events"]
    assert "findings" in ended.journal


def test_a_broker_that_is_not_there_is_told_before_a_spark_is_started(tmp_path: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        words = ("--bootstrap", address, "--kafka", "default.api.timeout.ms=1500")

        code, said = refuse(*words, "--to", f"{tmp_path / 'tables'}")

    assert code == 1
    assert sentence_in(said).startswith(f"{address}: ")
    assert not (tmp_path / "tables").exists()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ((), "say where the history is"),
        (("--from-log", "here", "--bootstrap", "h:1"), "say where the history is"),
        (("--bootstrap", "h:1", "--ends", "f"), "--ends is for --from-log"),
        (("--from-log", "here", "--continuous"), "does not grow"),
        (("--from-log", "here", "--since", "yesterday"), "is no time"),
        (("--from-log", "here", "--master", "somewhere"), "is no master of Spark's"),
        (("--from-log", "here", "--spark", "memory"), "is no NAME=VALUE"),
        (("--bootstrap", "h:1", "--kafka", "group.id=mine"), "--own-group"),
        (("--bootstrap", "h:1", "--kafka", "no.such.option=1"), "no.such.option"),
        (("--from-log", "here", "--rebuild", "0"), "--rebuild"),
    ],
)
def test_what_cannot_be_asked_is_refused_at_once(words: tuple[str, ...], reason: str) -> None:
    code, said = refuse(*words, "--to", "tables")

    assert code == 2
    assert reason in said


def test_a_place_for_the_tables_must_be_named() -> None:
    code, said = refuse("--from-log", "here")

    assert code == 2
    assert "--to" in said
