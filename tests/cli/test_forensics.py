"""kohort pipeline forensics: what it writes and prints, and what it refuses before Spark starts."""

import json
import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

import kohort.cli.pipeline.forensics as command
from kohort.cli.app import app
from tests.pipeline.forensics.forensics_process import (
    HistoryFiles,
    error_in,
    forensics,
    generate_history,
)

pyarrow_parquet = pytest.importorskip("pyarrow.parquet")

END_OFFSETS = '{"at_ms":1,"topic":"t","partition":0,"log_start":0,"log_end":5}\n'


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> HistoryFiles:
    return generate_history(tmp_path_factory.mktemp("history"), "crash-loop", "steady", "scaling")


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_: object) -> None:
        pytest.fail("Spark was started")

    monkeypatch.setattr(command, "open_session", start)


def rows_in(target: Path, table: str) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = pyarrow_parquet.read_table(target / table).to_pylist()
    return rows


def refuse(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["pipeline", "forensics", *arguments], terminal_width=200)
    assert not result.stdout
    return result.exit_code, result.stderr


def test_a_copied_log_becomes_tables_a_page_and_json(history: HistoryFiles, tmp_path: Path) -> None:
    target, page = tmp_path / "tables", tmp_path / "report.html"

    finished = forensics(*history.arguments, "--to", f"{target}", "--report", f"{page}", "--json")

    assert finished.code == 0, finished.stderr
    report = json.loads(finished.stdout)
    assert {each["group_id"] for each in report["groups"]} == history.groups.keys()
    assert {each["group_id"] for each in rows_in(target, "gold/groups")} == history.groups.keys()
    crashing = history.group_of("crash-loop")
    found = {(each["group_id"], each["finding"]) for each in rows_in(target, "gold/findings")}
    assert (crashing, "crash-loop") in found
    assert report["headline"] in page.read_text("utf-8")
    statuses = {each["group_id"]: each["status"] for each in report["groups"]}
    assert statuses[crashing] == "critical"
    assert set(statuses.values()) <= {"critical", "warning", "healthy"}
    assert json.loads((target / "_complete.json").read_text("utf-8"))["has_events"]
    assert "findings" in finished.stderr


@pytest.mark.usefixtures("no_spark")
def test_an_unreachable_broker_is_reported_with_its_address_and_the_reason(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        arguments = ("--bootstrap", address, "--kafka", "default.api.timeout.ms=1500")

        code, stderr = refuse(*arguments, "--to", f"{tmp_path / 'tables'}")

    assert code == 1
    assert address in error_in(stderr)
    assert "connection refused" in error_in(stderr)
    assert not (tmp_path / "tables").exists()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "use either --bootstrap HOST:PORT"),
        (("--from-log", "here", "--bootstrap", "h:1"), "use either --bootstrap HOST:PORT"),
        (("--bootstrap", "h:1", "--ends", "f"), "--ends can only be used with --from-log"),
        (("--from-log", "here", "--continuous"), "does not grow"),
        (("--from-log", "here", "--since", "yesterday"), "yesterday"),
        (("--from-log", "here", "--master", "somewhere"), "somewhere"),
        (("--from-log", "here", "--spark", "memory"), "is not NAME=VALUE"),
        (("--from-log", "here", "--group", ""), "--group is empty"),
        (("--bootstrap", "h:1", "--own-group", ""), "--own-group is empty"),
        (("--bootstrap", "h:1", "--group", "kohort-forensics"), "the group of this command"),
        (("--bootstrap", "h:1", "--kafka", "group.id=mine"), "--own-group"),
        (("--bootstrap", "h:1", "--kafka", "no.such.option=1"), "no.such.option"),
        (("--from-log", "here", "--rebuild", "0"), "--rebuild"),
    ],
)
@pytest.mark.usefixtures("no_spark")
def test_invalid_options_are_refused(arguments: tuple[str, ...], reason: str) -> None:
    code, stderr = refuse(*arguments, "--to", "tables")

    assert code == 2
    assert reason in stderr


def test_the_target_directory_is_required() -> None:
    code, stderr = refuse("--from-log", "here")

    assert code == 2
    assert "--to" in stderr


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--from-log", "{tmp}/missing", "--to", "{tmp}/tables"), "missing: no such directory"),
        (("--from-log", "{tmp}/other", "--to", "{tmp}/tables"), "no segment of"),
        (("--from-log", "relative", "--to", "{tmp}/tables"), "neither an absolute path nor a URI"),
        (("--from-log", "{log}", "--to", "{log}"), "inside the log directory"),
        (("--from-log", "{log}", "--to", "{log}/tables"), "inside the log directory"),
        (("--from-log", "{log}", "--to", "{tmp}/other"), "has other files, such as notes.txt"),
        (("--from-log", "{log}", "--to", "{tmp}/file"), "is not a directory"),
        (("--from-log", "{log}", "--to", "{tmp}/file/tables"), "cannot be created"),
        (("--from-log", "{log}", "--to", "file://{tmp}/other"), "has other files"),
        (("--report", "{tmp}/missing/report.html"), "missing does not exist"),
        (("--report", "{tmp}"), "is a directory"),
        (("--ends", "{tmp}/missing"), "cannot be read: No such file"),
        (("--ends", "{tmp}/file"), "the first line is not a JSON object"),
        (("--ends", "{tmp}/columns"), "has no partition, log_start, log_end"),
        (("--ends", "{tmp}/empty"), "is empty"),
    ],
)
@pytest.mark.usefixtures("no_spark")
def test_unusable_files_and_directories_are_refused_before_spark_starts(
    history: HistoryFiles, tmp_path: Path, arguments: tuple[str, ...], reason: str
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").touch()
    (tmp_path / "file").write_text("text", "utf-8")
    (tmp_path / "empty").touch()
    (tmp_path / "columns").write_text('{"at_ms":1,"topic":"t"}\n', "utf-8")
    given = [each.format(tmp=tmp_path, log=history.log) for each in arguments]
    if "--from-log" not in given:
        given += ["--from-log", history.log, "--to", f"{tmp_path / 'tables'}"]

    code, stderr = refuse(*given)

    assert code == 1, stderr
    assert reason in error_in(stderr)
    assert not (tmp_path / "tables").exists()


def test_valid_files_and_directories_reach_spark(
    history: HistoryFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class SparkStarted(Exception):
        pass

    def start(*_: object) -> None:
        raise SparkStarted("Spark was started")

    monkeypatch.setattr(command, "open_session", start)
    ends, target = tmp_path / "ends.jsonl", tmp_path / "tables"
    ends.write_text(END_OFFSETS, "utf-8")
    for name in ("bronze", "silver", "gold", "_checkpoint"):
        (target / name).mkdir(parents=True)
    (target / "_complete.json").touch()
    arguments = ("--from-log", history.log, "--ends", f"{ends}", "--to", f"{target}")

    code, stderr = refuse(*arguments, "--report", f"{tmp_path / 'report.html'}")

    assert code == 1
    assert "Spark was started" in error_in(stderr)
