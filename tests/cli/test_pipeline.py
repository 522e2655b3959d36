"""kohort pipeline ingest as a process: kills, Ctrl-C, and startup errors."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
from typer.testing import CliRunner

import kohort
from kohort.cli.app import app
from tests.pipeline.ingest_setup import (
    IngestBroker,
    commits_in,
    numbered,
    rows_in,
    rows_up_to,
)
from tests.pipeline.spark_settings import spark_arguments
from tests.wait import pause, wait_until

TIMEOUT_S = 180
"""Spark takes ten seconds to start, and more on a busy machine."""

POLL_S = 0.002


@pytest.fixture(scope="module")
def broker() -> Iterator[IngestBroker]:
    with kohort.Node(settings={"group.initial.rebalance.delay.ms": 0}) as node:
        yield IngestBroker(node.bootstrap_servers)


class IngestProcess:
    """The command in its own process group, as in a terminal."""

    def __init__(
        self, broker: IngestBroker, topic: str, target: Path, *more: str, **env: str
    ) -> None:
        self.target = target
        self.group = f"of-{topic}"
        self._stdout = target.with_name("stdout")
        self._stderr = target.with_name("stderr")
        args = args_for(broker, topic, self.group, target)
        with self._stdout.open("wb") as stdout, self._stderr.open("wb") as stderr:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "kohort",
                    "pipeline",
                    "ingest",
                    *args,
                    *spark_arguments(),
                    *more,
                ],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
                env={**os.environ, **env},
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
            self.kill()

    def wait(self) -> int:
        return self._process.wait(TIMEOUT_S)

    @property
    def stdout(self) -> str:
        return self._stdout.read_text("utf-8")

    @property
    def stderr(self) -> str:
        return self._stderr.read_text("utf-8")

    def signal(self, number: signal.Signals) -> None:
        """Signal the whole process group, as Ctrl-C does."""
        os.killpg(self._process.pid, number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self._process.wait()

    def await_commit(self, batch: int) -> None:
        self._wait_for(lambda: batch in commits_in(self.target))

    def kill_when(self, condition: Callable[[], bool]) -> None:
        """Suspend the process when the condition holds, check it again, and kill."""
        while True:
            self._wait_for(condition)
            self.signal(signal.SIGSTOP)
            if condition():
                self.kill()
                return
            self.signal(signal.SIGCONT)

    def _wait_for(self, condition: Callable[[], bool]) -> None:
        def is_done() -> bool:
            pause(POLL_S)
            return condition() or self._process.poll() is not None

        wait_until(is_done, TIMEOUT_S)
        assert self._process.poll() is None, f"the process ended: {self.stdout}{self.stderr}"


def startup_error(*args: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["pipeline", "ingest", *args], terminal_width=200)
    assert not result.stdout
    return result.exit_code, result.stderr


def args_for(broker: IngestBroker, topic: str, group: str, target: Path) -> list[str]:
    source = ["--bootstrap", broker.bootstrap_servers, "--topic", topic]
    return [*source, "--group", group, "--to", str(target)]


def valid_args(broker: IngestBroker, tmp_path: Path) -> list[str]:
    return args_for(broker, "t", "g", tmp_path / "table")


# Exactly once


def is_staged(target: Path, batch: int) -> bool:
    """Whether the batch is staged but not committed."""
    staged = any((target / "_staging").glob(f"*/data/batch={batch}"))
    return staged and batch not in commits_in(target)


def is_spark_commit_missing(target: Path) -> bool:
    """Whether the last batch is committed in the table but not in Spark's checkpoint."""
    last = max(commits_in(target), default=None)
    return last is not None and not (target / "_checkpoint" / "commits" / str(last)).exists()


@pytest.mark.full
def test_records_are_stored_once_despite_kills(broker: IngestBroker, tmp_path: Path) -> None:
    topic, target = broker.create_topic(2), tmp_path / "table"
    for partition in (0, 1):
        broker.write(topic, numbered(range(3_000)), partition=partition)
    # A killed member blocks the group until its session expires.
    args = ("--rows-per-batch", "500", "--kafka", "session.timeout.ms=6000")

    with IngestProcess(broker, topic, target, *args) as first:
        first.kill_when(lambda: is_staged(target, 1))
    after_first = commits_in(target)
    with IngestProcess(broker, topic, target, *args) as second:
        second.await_commit(2)
        second.kill_when(lambda: is_spark_commit_missing(target))
    between = rows_in(target)
    with IngestProcess(broker, topic, target, *args, "--once", "--json") as third:
        assert third.wait() == 0, third.stderr

    summary = json.loads(third.stdout)
    assert after_first == [0]
    assert len(between) == len(set(between))
    assert rows_in(target) == rows_up_to([3_000, 3_000])
    assert summary["rows_in_table"] == 6_000
    assert summary["is_group_told"]
    assert broker.committed(third.group) == {0: 3_000, 1: 3_000}
    assert broker.state_of(third.group) == "EMPTY"
    assert "Traceback" not in third.stderr
    assert "Exception" not in third.stderr


@pytest.mark.full
def test_ctrl_c_finishes_the_batch_and_leaves_the_group(
    broker: IngestBroker, tmp_path: Path
) -> None:
    topic, target = broker.create_topic(2), tmp_path / "table"
    for partition in (0, 1):
        broker.write(topic, numbered(range(20_000)), partition=partition)

    with IngestProcess(broker, topic, target, "--rows-per-batch", "1000") as ingest:
        ingest.await_commit(0)
        ingest.signal(signal.SIGINT)
        assert ingest.wait() == 0, ingest.stderr

    done = broker.committed(ingest.group)
    assert rows_in(target) == rows_up_to([done[0], done[1]])
    assert 1_000 <= sum(done.values()) < 40_000
    assert broker.state_of(ingest.group) == "EMPTY"
    assert f"{sum(done.values())} rows and 0 bad records" in ingest.stdout
    assert "Traceback" not in ingest.stderr
    assert "WARN" not in ingest.stderr


# Startup errors


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (["--every", "soon"], "'soon' is no duration"),
        (["--every", "2h"], "at most 300 s"),
        (["--every", "10m"], "at most 300 s"),
        (["--kafka", "nonsense"], "is not NAME=VALUE"),
        (["--kafka", "group.id=x"], "use --group"),
        (["--kafka", "sesion.timeout.ms=1"], "did you mean session.timeout.ms?"),
        (["--spark", "nonsense"], "--spark 'nonsense' is not NAME=VALUE"),
        (["--master", "mars"], "'mars' is not a Spark master"),
        (["--rows-per-batch", "0"], "--rows-per-batch"),
        (["--from", "somewhere"], "--from"),
        (["--group", ""], "the group is missing"),
        (["--topic", ","], "the topic is missing"),
        (["--partition-by", "date,date"], "partition column date is given twice"),
    ],
)
def test_invalid_option_is_rejected(
    broker: IngestBroker, tmp_path: Path, args: list[str], reason: str
) -> None:
    code, stderr = startup_error(*valid_args(broker, tmp_path), *args)

    assert code == 2
    assert reason in " ".join(stderr.replace("│", " ").split())
    assert not (tmp_path / "table").exists()


@pytest.mark.parametrize("missing", ["--bootstrap", "--topic", "--group", "--to"])
def test_missing_option_is_named(broker: IngestBroker, tmp_path: Path, missing: str) -> None:
    args = valid_args(broker, tmp_path)
    position = args.index(missing)

    code, stderr = startup_error(*args[:position], *args[position + 2 :])

    assert code == 2
    assert missing in stderr


def sentence_in(stderr: str) -> str:
    (line,) = stderr.splitlines()
    assert line.startswith("kohort: ")
    return line.removeprefix("kohort: ")


def test_unreachable_broker_fails_within_the_timeout(broker: IngestBroker, tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        args = [*valid_args(broker, tmp_path), "--bootstrap", address]

        code, stderr = startup_error(*args, "--kafka", "request.timeout.ms=1500")

    assert code == 1
    assert sentence_in(stderr).endswith(f"within 1.5 s: {address} (connection refused)")


def test_unknown_topic_is_named(broker: IngestBroker, tmp_path: Path) -> None:
    code, stderr = startup_error(*valid_args(broker, tmp_path), "--topic", "misspelt")

    assert code == 1
    sentence = "topic misspelt does not exist: create it, or correct its name"
    assert sentence_in(stderr) == sentence
    assert not (tmp_path / "table").exists()


def test_missing_schema_file_is_named(broker: IngestBroker, tmp_path: Path) -> None:
    args = ("--json-schema", str(tmp_path / "none.ddl"))
    code, stderr = startup_error(*valid_args(broker, tmp_path), *args)

    assert code == 1
    assert (
        sentence_in(stderr) == f"{tmp_path / 'none.ddl'} cannot be read: No such file or directory"
    )


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (None, "is no Java"),
        ("echo 'openjdk version \"11.0.2\"' >&2", "is Java 11"),
    ],
)
def test_missing_java_is_reported(
    broker: IngestBroker, tmp_path: Path, script: str | None, reason: str
) -> None:
    java = tmp_path / "java" / "bin" / "java"
    if script is not None:
        java.parent.mkdir(parents=True)
        java.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
        java.chmod(0o755)
    home = str(tmp_path / "java")

    with IngestProcess(broker, broker.create_topic(), tmp_path / "table", JAVA_HOME=home) as ingest:
        assert ingest.wait() == 1

    sentence = sentence_in(ingest.stderr)
    assert sentence.startswith("Spark needs Java 17 or newer")
    assert reason in sentence


def test_unreachable_master_is_named(broker: IngestBroker, tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        master = f"spark://127.0.0.1:{unused.getsockname()[1]}"
        args = ("--master", master)
        with IngestProcess(broker, broker.create_topic(), tmp_path / "table", *args) as ingest:
            assert ingest.wait() == 1

    assert sentence_in(ingest.stderr).startswith(f"{master} cannot be reached")
