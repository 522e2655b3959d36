"""kohort pipeline ingest as a process: kills, Ctrl-C, and what it refuses to begin with."""

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
from tests.pipeline.ingesting import (
    Broker,
    all_places,
    commits_in,
    numbered,
    places_in,
)
from tests.pipeline.quick import spark_words
from tests.waiting import pause, wait_until

PATIENCE_S = 180
"""A Spark takes ten seconds to start, and many more on a busy machine."""

BETWEEN_LOOKS_S = 0.002


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with kohort.Node(settings={"group.initial.rebalance.delay.ms": 0}) as node:
        yield Broker(node.bootstrap_servers)


class Ingest:
    """The command in a process group of its own, as a terminal would have it."""

    def __init__(self, broker: Broker, topic: str, target: Path, *more: str, **env: str) -> None:
        self.target = target
        self.group = f"of-{topic}"
        self._said = target.with_name("said")
        self._journal = target.with_name("journal")
        words = words_for(broker, topic, self.group, target)
        with self._said.open("wb") as stdout, self._journal.open("wb") as stderr:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "kohort",
                    "pipeline",
                    "ingest",
                    *words,
                    *spark_words(),
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
        return self._process.wait(PATIENCE_S)

    @property
    def said(self) -> str:
        return self._said.read_text("utf-8")

    @property
    def journal(self) -> str:
        return self._journal.read_text("utf-8")

    def signal(self, number: signal.Signals) -> None:
        """To all of them, as Ctrl-C does."""
        os.killpg(self._process.pid, number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self._process.wait()

    def await_commit(self, batch: int) -> None:
        self._watch(lambda: batch in commits_in(self.target))

    def kill_when(self, is_moment: Callable[[], bool]) -> None:
        """Catch it at a moment that may be short, make sure, and kill it then."""
        while True:
            self._watch(is_moment)
            self.signal(signal.SIGSTOP)
            if is_moment():
                self.kill()
                return
            self.signal(signal.SIGCONT)

    def _watch(self, condition: Callable[[], bool]) -> None:
        def is_decided() -> bool:
            pause(BETWEEN_LOOKS_S)
            return condition() or self._process.poll() is not None

        wait_until(is_decided, PATIENCE_S)
        assert self._process.poll() is None, f"it has ended: {self.said}{self.journal}"


def refuse(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["pipeline", "ingest", *words], terminal_width=200)
    assert not result.stdout
    return result.exit_code, result.stderr


def words_for(broker: Broker, topic: str, group: str, target: Path) -> list[str]:
    place = ["--bootstrap", broker.bootstrap_servers, "--topic", topic]
    return [*place, "--group", group, "--to", str(target)]


def good_words(broker: Broker, tmp_path: Path) -> list[str]:
    return words_for(broker, "t", "g", tmp_path / "table")


# Every record once


def is_staged(target: Path, batch: int) -> bool:
    """Whether the batch is being written, and has no commit."""
    staged = any((target / "_staging").glob(f"*/data/batch={batch}"))
    return staged and batch not in commits_in(target)


def is_before_sparks_log(target: Path) -> bool:
    """Whether the last batch has its commit, and no entry in Spark's log of them."""
    last = max(commits_in(target), default=None)
    return last is not None and not (target / "_checkpoint" / "commits" / str(last)).exists()


def test_killed_at_the_worst_moments_it_keeps_every_record_once(
    broker: Broker, tmp_path: Path
) -> None:
    topic, target = broker.make_topic(2), tmp_path / "table"
    for partition in (0, 1):
        broker.write(topic, numbered(range(3_000)), partition=partition)
    # A member that was killed is missed for as long as its session lasts.
    words = ("--rows-per-batch", "500", "--kafka", "session.timeout.ms=6000")

    with Ingest(broker, topic, target, *words) as first:
        first.kill_when(lambda: is_staged(target, 1))
    after_first = commits_in(target)
    with Ingest(broker, topic, target, *words) as second:
        second.await_commit(2)
        second.kill_when(lambda: is_before_sparks_log(target))
    between = places_in(target)
    with Ingest(broker, topic, target, *words, "--once", "--json") as third:
        assert third.wait() == 0, third.journal

    summary = json.loads(third.said)
    assert after_first == [0]
    assert len(between) == len(set(between))
    assert places_in(target) == all_places([3_000, 3_000])
    assert summary["rows_in_table"] == 6_000
    assert summary["is_group_told"]
    assert broker.committed(third.group) == {0: 3_000, 1: 3_000}
    assert broker.state_of(third.group) == "EMPTY"
    assert "Traceback" not in third.journal
    assert "Exception" not in third.journal


def test_ctrl_c_in_the_middle_finishes_the_batch_and_leaves(broker: Broker, tmp_path: Path) -> None:
    topic, target = broker.make_topic(2), tmp_path / "table"
    for partition in (0, 1):
        broker.write(topic, numbered(range(20_000)), partition=partition)

    with Ingest(broker, topic, target, "--rows-per-batch", "1000") as ingest:
        ingest.await_commit(0)
        ingest.signal(signal.SIGINT)
        assert ingest.wait() == 0, ingest.journal

    done = broker.committed(ingest.group)
    assert places_in(target) == all_places([done[0], done[1]])
    assert 1_000 <= sum(done.values()) < 40_000
    assert broker.state_of(ingest.group) == "EMPTY"
    assert f"{sum(done.values())} rows and 0 bad ones" in ingest.said
    assert "Traceback" not in ingest.journal
    assert "WARN" not in ingest.journal


# Refusals


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--every", "soon"], "'soon' is no time"),
        (["--every", "2h"], "'2h' is no time"),
        (["--every", "10m"], "at most 300 s"),
        (["--kafka", "nonsense"], "is no NAME=VALUE"),
        (["--kafka", "group.id=x"], "it has an option of its own, --group"),
        (["--kafka", "sesion.timeout.ms=1"], "did you mean session.timeout.ms?"),
        (["--spark", "nonsense"], "--spark 'nonsense' is no NAME=VALUE"),
        (["--master", "mars"], "'mars' is no master of Spark's"),
        (["--rows-per-batch", "0"], "--rows-per-batch"),
        (["--from", "somewhere"], "--from"),
        (["--group", ""], "a group must be named"),
        (["--topic", ","], "a topic must be named"),
        (["--partition-by", "date,date"], "partitioned by date more than once"),
    ],
)
def test_what_is_not_understood_is_refused(
    broker: Broker, tmp_path: Path, words: list[str], reason: str
) -> None:
    code, said = refuse(*good_words(broker, tmp_path), *words)

    assert code == 2
    assert reason in " ".join(said.replace("│", " ").split())
    assert not (tmp_path / "table").exists()


@pytest.mark.parametrize("missing", ["--bootstrap", "--topic", "--group", "--to"])
def test_a_missing_option_is_named(broker: Broker, tmp_path: Path, missing: str) -> None:
    words = good_words(broker, tmp_path)
    place = words.index(missing)

    code, said = refuse(*words[:place], *words[place + 2 :])

    assert code == 2
    assert missing in said


def sentence_in(stderr: str) -> str:
    (line,) = stderr.splitlines()
    assert line.startswith("kohort: ")
    return line.removeprefix("kohort: ")


def test_a_broker_that_is_not_there_is_not_waited_for_long(broker: Broker, tmp_path: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        words = [*good_words(broker, tmp_path), "--bootstrap", address]

        code, said = refuse(*words, "--kafka", "default.api.timeout.ms=1500")

    assert code == 1
    assert sentence_in(said).startswith(f"{address}: ")


def test_an_unknown_topic_is_named(broker: Broker, tmp_path: Path) -> None:
    code, said = refuse(*good_words(broker, tmp_path), "--topic", "misspelt")

    assert code == 1
    sentence = "topic misspelt does not exist: create it, or mend its name"
    assert sentence_in(said) == sentence
    assert not (tmp_path / "table").exists()


def test_a_schema_file_that_is_not_there_is_named(broker: Broker, tmp_path: Path) -> None:
    words = ("--json-schema", str(tmp_path / "none.ddl"))
    code, said = refuse(*good_words(broker, tmp_path), *words)

    assert code == 1
    assert sentence_in(said) == f"{tmp_path / 'none.ddl'} cannot be read: No such file or directory"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (None, "is no Java"),
        ("echo 'openjdk version \"11.0.2\"' >&2", "is Java 11"),
    ],
)
def test_without_a_java_it_says_what_to_install(
    broker: Broker, tmp_path: Path, script: str | None, reason: str
) -> None:
    java = tmp_path / "java" / "bin" / "java"
    if script is not None:
        java.parent.mkdir(parents=True)
        java.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
        java.chmod(0o755)
    home = str(tmp_path / "java")

    with Ingest(broker, broker.make_topic(), tmp_path / "table", JAVA_HOME=home) as ingest:
        assert ingest.wait() == 1

    sentence = sentence_in(ingest.journal)
    assert sentence.startswith("Spark needs Java 17 or newer")
    assert reason in sentence


def test_a_master_that_is_not_there_is_named(broker: Broker, tmp_path: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        master = f"spark://127.0.0.1:{nobody.getsockname()[1]}"
        words = ("--master", master)
        with Ingest(broker, broker.make_topic(), tmp_path / "table", *words) as ingest:
            assert ingest.wait() == 1

    assert sentence_in(ingest.journal).startswith(f"nobody answers at {master}")
