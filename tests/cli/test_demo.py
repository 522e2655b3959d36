"""kohort demo as a process: how it ends, what it leaves, and what it refuses to begin with."""

import os
import re
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
from typer.testing import CliRunner

from kohort.cli.app import app
from kohort.demo import member
from tests.waiting import wait_until

PATIENCE_S = 600
"""Spark and its forensics take most of a minute, and many more on a busy machine."""

MARK = "KOHORT_TEST_MARK"


class Demo:
    """The command in a process group of its own, as a terminal would have it."""

    def __init__(self, directory: Path, *words: str, **env: str) -> None:
        self.to = directory / "to"
        self._said = directory / "said"
        self._journal = directory / "journal"
        self._mark = uuid.uuid4().hex
        with self._said.open("wb") as stdout, self._journal.open("wb") as stderr:
            self._process = subprocess.Popen(
                [*(sys.executable, "-m", "kohort", "demo", "--to", str(self.to)), *words],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
                env={**os.environ, **env, MARK: self._mark},
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    @property
    def said(self) -> str:
        return self._said.read_text("utf-8")

    @property
    def journal(self) -> str:
        return self._journal.read_text("utf-8")

    def await_words(self, words: str) -> None:
        def is_decided() -> bool:
            return words in self.said or self._process.poll() is not None

        wait_until(is_decided, PATIENCE_S)
        assert words in self.said, f"it has ended: {self.said}{self.journal}"

    def ctrl_c(self) -> None:
        """To the whole group, as a terminal does it."""
        os.killpg(self._process.pid, signal.SIGINT)

    def wait(self) -> int:
        return self._process.wait(PATIENCE_S)

    def processes(self, is_meant: Callable[[str], bool] = lambda _: True) -> list[int]:
        """All that it has started, and itself, whose command line is meant."""
        found = []
        for directory in Path("/proc").glob("[0-9]*"):
            try:
                has_mark = f"{MARK}={self._mark}".encode() in (directory / "environ").read_bytes()
                command = (directory / "cmdline").read_text("utf-8", "replace")
            except OSError:  # it has just ended, or is not ours
                continue
            if has_mark and command and is_meant(command):
                found.append(int(directory.name))
        return found

    def await_emptiness(self) -> None:
        """A JVM needs a moment to see that its owner has ended."""
        wait_until(lambda: not self.processes(), 30, "all its processes to end")


def figure_in(said: str, what: str) -> int:
    """A row of the last table."""
    found = re.search(rf"^\s*{what} +([\d,]+)", said, re.MULTILINE)
    assert found, said
    return int(found[1].replace(",", ""))


def refusal_of(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["demo", *words])
    assert not result.stdout
    return result.exit_code, result.stderr


# Ending


def test_ctrl_c_ends_it_in_order_and_sums_up(tmp_path: Path) -> None:
    with Demo(tmp_path, "--listen", "127.0.0.1:0", JAVA_HOME=str(tmp_path / "none")) as demo:
        demo.await_words("generation 1")
        demo.ctrl_c()
        assert demo.wait() == 0, demo.journal
        demo.await_emptiness()

    assert "no table of orders and no report: Spark needs Java 17 or newer" in demo.said
    assert "ends, for it was told to" in demo.said
    assert figure_in(demo.said, "read by checkout") >= figure_in(demo.said, "placed") > 0
    assert re.search(r"member-joined +\d", demo.said)
    assert f"node's data  {demo.to}/data" in demo.said
    assert demo.journal == ""


def test_a_second_ctrl_c_ends_it_at_once(tmp_path: Path) -> None:
    with Demo(tmp_path, "--no-spark", "--listen", "127.0.0.1:0") as demo:
        demo.await_words("starts")
        demo.ctrl_c()
        demo.await_words("ends, for it was told to")
        demo.ctrl_c()
        code = demo.wait()
        demo.await_emptiness()

    # It may have come to its end in that very moment.
    assert code in (0, 130)
    assert ("ended at once" in demo.said) == (code == 130)
    assert demo.journal == ""


def test_a_program_that_dies_by_itself_is_told_of_and_fails_the_run(tmp_path: Path) -> None:
    words = ("--no-spark", "--minutes", "0.2", "--listen", "127.0.0.1:0")

    with Demo(tmp_path, *words) as demo:
        demo.await_words("generation 1")
        os.kill(demo.processes(lambda command: member.__name__ in command)[0], signal.SIGKILL)
        assert demo.wait() == 1, demo.said
        demo.await_emptiness()

    assert re.search(r"(checkout|billing)-\d has died: it ended with -9", demo.said)
    assert "ends, for the time is over" in demo.said
    assert demo.journal == ""


# With Spark


def test_with_spark_it_leaves_a_table_and_a_report(tmp_path: Path) -> None:
    with Demo(tmp_path, "--minutes", "0.4", "--listen", "127.0.0.1:0") as demo:
        assert demo.wait() == 0, demo.said + demo.journal
        demo.await_emptiness()

    bad = re.search(r"and (\d+) that are no JSON, set aside", demo.said)
    assert bad
    kept, placed = figure_in(demo.said, "kept by Spark"), figure_in(demo.said, "placed")
    assert kept + int(bad[1]) == placed > 0
    assert "Spark has started" in demo.said
    assert re.search(r"[1-9]\d* rebalances explained", demo.said)
    assert "<html" in (demo.to / "report.html").read_text("utf-8")
    assert (demo.to / "forensics" / "_complete.json").exists()
    assert list((demo.to / "orders" / "data").rglob("*.parquet"))
    assert demo.journal == ""


# Refusals


@pytest.mark.parametrize("minutes", ["0.1", "-1", "nan", "inf", "10001"])
def test_a_length_that_makes_no_sense_is_refused(minutes: str) -> None:
    code, reason = refusal_of("--minutes", minutes)

    assert code == 2
    assert reason == f"kohort: --minutes {minutes}: it takes 0.2 to 10000\n"


def test_a_directory_that_has_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()

    code, reason = refusal_of("--to", str(tmp_path))

    assert code == 2
    assert reason == f"kohort: --to {tmp_path}: it is not empty\n"


def test_a_directory_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    code, reason = refusal_of("--to", str(tmp_path / "file" / "below"))

    assert code == 2
    assert reason == f"kohort: --to {tmp_path}/file/below: Not a directory\n"


def test_a_busy_port_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"

        code, reason = refusal_of("--to", str(tmp_path), "--listen", address)

    assert code == 1
    assert reason == f"kohort: cannot listen on {address}: Address already in use\n"
