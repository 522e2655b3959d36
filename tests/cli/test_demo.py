"""kohort demo as a process: shutdown, output files, and startup errors."""

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
from kohort.demo import consumer_main
from tests.wait import wait_until

TIMEOUT_S = 600
"""Spark and its report take most of a minute, and several on a busy machine."""

MARKER = "KOHORT_TEST_MARKER"


class DemoProcess:
    """The command in its own process group, as in a terminal."""

    def __init__(self, directory: Path, *args: str, **env: str) -> None:
        self.to = directory / "to"
        self._stdout = directory / "stdout"
        self._stderr = directory / "stderr"
        self._marker = uuid.uuid4().hex
        with self._stdout.open("wb") as stdout, self._stderr.open("wb") as stderr:
            self._process = subprocess.Popen(
                [*(sys.executable, "-m", "kohort", "demo", "--to", str(self.to)), *args],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
                env={**os.environ, **env, MARKER: self._marker},
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
    def stdout(self) -> str:
        return self._stdout.read_text("utf-8")

    @property
    def stderr(self) -> str:
        return self._stderr.read_text("utf-8")

    def await_text(self, text: str) -> None:
        def is_done() -> bool:
            return text in self.stdout or self._process.poll() is not None

        wait_until(is_done, TIMEOUT_S)
        assert text in self.stdout, f"the process ended: {self.stdout}{self.stderr}"

    def ctrl_c(self) -> None:
        """Signal the whole process group, as a terminal does."""
        os.killpg(self._process.pid, signal.SIGINT)

    def wait(self) -> int:
        return self._process.wait(TIMEOUT_S)

    def find_pids(self, matches: Callable[[str], bool] = lambda _: True) -> list[int]:
        """Return the pids of the command and its descendants whose command line matches."""
        found = []
        for directory in Path("/proc").glob("[0-9]*"):
            try:
                has_marker = (
                    f"{MARKER}={self._marker}".encode() in (directory / "environ").read_bytes()
                )
                command = (directory / "cmdline").read_text("utf-8", "replace")
            except OSError:  # it has just ended, or belongs to another user
                continue
            if has_marker and command and matches(command):
                found.append(int(directory.name))
        return found

    def await_no_processes(self) -> None:
        """Wait, because a JVM takes a while to notice that its parent has ended."""
        wait_until(lambda: not self.find_pids(), 30, "all processes to end")


def count_in(stdout: str, row: str) -> int:
    """Return the number in a row of the orders table."""
    found = re.search(rf"^\s*{row} +([\d,]+)", stdout, re.MULTILINE)
    assert found, stdout
    return int(found[1].replace(",", ""))


def startup_error(*args: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["demo", *args])
    assert not result.stdout
    return result.exit_code, result.stderr


# Shutdown


def test_ctrl_c_shuts_down_cleanly_and_prints_a_summary(tmp_path: Path) -> None:
    with DemoProcess(tmp_path, "--listen", "127.0.0.1:0", JAVA_HOME=str(tmp_path / "none")) as demo:
        demo.await_text("generation 1")
        demo.ctrl_c()
        assert demo.wait() == 0, demo.stderr
        demo.await_no_processes()

    assert "No table of orders and no report: Spark needs Java 17 or newer" in demo.stdout
    assert "shutting down: stop requested" in demo.stdout
    assert count_in(demo.stdout, "consumed by checkout") >= count_in(demo.stdout, "produced") > 0
    assert re.search(r"member-joined +\d", demo.stdout)
    assert f"node's data  {demo.to}/data" in demo.stdout
    assert demo.stderr == ""


def test_second_ctrl_c_stops_immediately(tmp_path: Path) -> None:
    with DemoProcess(tmp_path, "--no-spark", "--listen", "127.0.0.1:0") as demo:
        demo.await_text("starts")
        demo.ctrl_c()
        demo.await_text("shutting down: stop requested")
        demo.ctrl_c()
        code = demo.wait()
        demo.await_no_processes()

    # The clean shutdown may finish before the second Ctrl-C.
    assert code in (0, 130)
    assert ("stopped immediately" in demo.stdout) == (code == 130)
    assert demo.stderr == ""


def test_killed_consumer_is_reported_and_exit_code_is_1(tmp_path: Path) -> None:
    args = ("--no-spark", "--minutes", "0.2", "--listen", "127.0.0.1:0")

    with DemoProcess(tmp_path, *args) as demo:
        demo.await_text("generation 1")
        os.kill(
            demo.find_pids(lambda command: consumer_main.__name__ in command)[0], signal.SIGKILL
        )
        assert demo.wait() == 1, demo.stdout
        demo.await_no_processes()

    assert re.search(r"(checkout|billing)-\d failed: exit code -9", demo.stdout)
    assert "shutting down: the time is over" in demo.stdout
    assert demo.stderr == ""


# With Spark


@pytest.mark.full
def test_spark_writes_table_and_report(tmp_path: Path) -> None:
    with DemoProcess(tmp_path, "--minutes", "0.4", "--listen", "127.0.0.1:0") as demo:
        assert demo.wait() == 0, demo.stdout + demo.stderr
        demo.await_no_processes()

    bad = re.search(r"and (\d+) with invalid JSON, stored separately", demo.stdout)
    assert bad
    stored, produced = count_in(demo.stdout, "stored by Spark"), count_in(demo.stdout, "produced")
    assert stored + int(bad[1]) == produced > 0
    assert "Spark has started" in demo.stdout
    assert re.search(r"[1-9]\d* rebalances analysed", demo.stdout)
    assert "<html" in (demo.to / "report.html").read_text("utf-8")
    assert (demo.to / "forensics" / "_complete.json").exists()
    assert list((demo.to / "orders" / "data").rglob("*.parquet"))
    assert demo.stderr == ""


# Startup errors


@pytest.mark.parametrize("minutes", ["0.1", "-1", "nan", "inf", "10001"])
def test_invalid_length_is_rejected(minutes: str) -> None:
    code, reason = startup_error("--minutes", minutes)

    assert code == 2
    assert reason == f"kohort: --minutes {minutes}: must be between 0.2 and 10000\n"


def test_non_empty_directory_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()

    code, reason = startup_error("--to", str(tmp_path))

    assert code == 2
    assert reason == f"kohort: --to {tmp_path}: directory is not empty\n"


def test_path_below_a_file_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    code, reason = startup_error("--to", str(tmp_path / "file" / "below"))

    assert code == 2
    assert reason == f"kohort: --to {tmp_path}/file/below: Not a directory\n"


def test_busy_port_fails_with_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"

        code, reason = startup_error("--to", str(tmp_path), "--listen", address)

    assert code == 1
    assert reason == f"kohort: cannot listen on {address}: Address already in use\n"
