"""Runs commands on a cluster, in this process or in their own."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from typer.testing import CliRunner, Result

from kohort.cli.app import app
from tests.client.node_cluster import Cluster
from tests.tidy.repository import ROOT
from tests.wait import wait_until

RECENT_MS = time.time_ns() // 1_000_000 - 60_000
"""A timestamp that is not deleted by retention and not in the future, which brokers reject."""


def run(cluster: Cluster, *args: str, stdin: str | bytes | None = None) -> Result:
    environment = {"KOHORT_BOOTSTRAP": cluster.bootstrap_servers}
    return CliRunner().invoke(app, args, env=environment, input=stdin)


def lines(cluster: Cluster, *args: str, stdin: str | bytes | None = None) -> list[str]:
    """Return the stdout of a command that must succeed."""
    result = run(cluster, *args, stdin=stdin)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout.splitlines()


class RunningCommand:
    """A command in its own process, with stdout and stderr in files."""

    def __init__(self, process: "subprocess.Popen[str]", stdout: Path, stderr: Path) -> None:
        self.process = process
        self._stdout = stdout
        self._stderr = stderr

    @property
    def stdout(self) -> str:
        return self._stdout.read_text()

    @property
    def stderr(self) -> str:
        return self._stderr.read_text()

    def wait_for(self, *texts: str) -> str:
        """Wait for a line of stdout that contains all these texts, and return it."""

        def find() -> str | None:
            lines = self.stdout.splitlines()
            return next((line for line in lines if all(text in line for text in texts)), None)

        return wait_until(find, 60, f"{texts}: {self.stdout} {self.stderr}") or ""

    def wait_for_error(self, text: str) -> None:
        wait_until(lambda: text in self.stderr, 60, f"{text!r}: {self.stderr}")

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        return self.process.wait(30)


@contextmanager
def running(
    cluster: Cluster, *args: str, at: Path, stdin: int = subprocess.DEVNULL, is_piped: bool = False
) -> Iterator[RunningCommand]:
    """Write stdout and stderr to files in `at`. With `is_piped`, stdout is a pipe."""
    stdout, stderr = at / "stdout", at / "stderr"
    with (
        stdout.open("w") as stdout_file,
        stderr.open("w") as stderr_file,
        subprocess.Popen(
            [sys.executable, "-m", "kohort", *args],
            cwd=ROOT,
            env={**os.environ, "KOHORT_BOOTSTRAP": cluster.bootstrap_servers},
            stdin=stdin,
            stdout=subprocess.PIPE if is_piped else stdout_file,
            stderr=stderr_file,
            text=True,
        ) as process,
    ):
        try:
            yield RunningCommand(process, stdout, stderr)
        finally:
            process.kill()
