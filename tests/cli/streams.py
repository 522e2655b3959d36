"""Clusters that commands are run on, and commands as processes of their own."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from typer.testing import CliRunner, Result

from kohort.cli.app import app
from tests.client.clusters import Cluster
from tests.tidy.repository import ROOT
from tests.waiting import wait_until

LATELY_MS = time.time_ns() // 1_000_000 - 60_000
"""Neither so old that it is let go of, nor of the future, which brokers refuse."""


def run(cluster: Cluster, *words: str, stdin: str | bytes | None = None) -> Result:
    environment = {"KOHORT_BOOTSTRAP": cluster.bootstrap_servers}
    return CliRunner().invoke(app, words, env=environment, input=stdin)


def lines(cluster: Cluster, *words: str, stdin: str | bytes | None = None) -> list[str]:
    """What a command that succeeds writes."""
    ended = run(cluster, *words, stdin=stdin)
    assert ended.exit_code == 0, (ended.output, ended.exception)
    return ended.stdout.splitlines()


class Running:
    """A command in a process of its own; what it writes goes to files, which tests look at."""

    def __init__(self, process: "subprocess.Popen[str]", output: Path, errors: Path) -> None:
        self.process = process
        self._output = output
        self._errors = errors

    @property
    def written(self) -> str:
        """To its standard output, so far."""
        return self._output.read_text()

    @property
    def said(self) -> str:
        """On its error stream, so far."""
        return self._errors.read_text()

    def wait_for(self, *words: str) -> str:
        """A line of its output that has all these words."""

        def find() -> str | None:
            lines = self.written.splitlines()
            return next((line for line in lines if all(word in line for word in words)), None)

        return wait_until(find, 60, f"{words}: {self.written} {self.said}") or ""

    def wait_for_error(self, text: str) -> None:
        wait_until(lambda: text in self.said, 60, f"{text!r}: {self.said}")

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        return self.process.wait(30)


@contextmanager
def running(
    cluster: Cluster, *words: str, at: Path, stdin: int = subprocess.DEVNULL, is_piped: bool = False
) -> Iterator[Running]:
    """`at` is a folder for its files; with a pipe its output goes there instead."""
    output, errors = at / "output", at / "errors"
    with (
        output.open("w") as output_file,
        errors.open("w") as errors_file,
        subprocess.Popen(
            [sys.executable, "-m", "kohort", *words],
            cwd=ROOT,
            env={**os.environ, "KOHORT_BOOTSTRAP": cluster.bootstrap_servers},
            stdin=stdin,
            stdout=subprocess.PIPE if is_piped else output_file,
            stderr=errors_file,
            text=True,
        ) as process,
    ):
        try:
            yield Running(process, output, errors)
        finally:
            process.kill()
