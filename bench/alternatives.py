"""Start and memory of brokers that a test can use: Kohort in three ways, Apache Kafka and kfake.

The start is measured from the start of the program until the first member has joined a group, with
an empty directory. kohort.Node and kohort.Node.process are programs that import kohort and start a
node, so Python's start and the imports are included. Kafka's start includes its offsets topic, but
not the formatting of its directory. kfake is a Go program with one broker. The CPU time of the
start depends less on what else the machine does. Memory is the resident set after the start, when
the broker is idle: of kohort.Node the whole Python process, of kohort.Node.process only the child.

Each broker is started once before measuring. Then they take turns. A broker that cannot be had
here is named with the reason.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from bench.beside_kafka.contest import unstarted, wait_until_idle
from bench.kit.brokers import Broker, CannotDo, KafkaBroker, KohortBroker, compiled_python, cpu_s_of
from bench.kit.figures import Taken, show_taken
from bench.kit.harness import exit_when_terminated
from bench.kit.machine import describe_machine, describe_versions
from tests.apache.unavailable import Unavailable
from tools.docgen.markdown import table

KFAKE: Final = "github.com/twmb/franz-go/pkg/kfake"
KFAKE_VERSION: Final = "v0.0.0-20260918054303-01f206a7e32c"
FRANZ_VERSION: Final = "v1.22.2"
"""The version of franz-go that this version of kfake compiles with."""

_KFAKE_MAIN: Final = """
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1),
		kfake.GroupMaxSessionTimeout(time.Hour), // the member of the benchmark has a long session
	)
	if err != nil {
		panic(err)
	}
	fmt.Println(cluster.ListenAddrs()[0])
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	<-stop
	cluster.Close()
}
"""

_NODE_MAIN: Final = """
import os, signal, sys
import kohort
signal.signal(signal.SIGTERM, lambda *_: sys.exit())
with {make}(data={data!r}) as node:
    print(getattr(node, "pid", os.getpid()), node.bootstrap_servers, flush=True)
    signal.pause()
"""


class ThreadNodeBroker(Broker):
    """A program that runs a node on a thread."""

    name = "kohort.Node"

    def prepare(self) -> None:
        """Do nothing: a node creates its directory."""

    @property
    def pid(self) -> int:
        """Of the process that has the node."""
        return self._node_pid

    def _spawn(self) -> subprocess.Popen[str]:
        program = _NODE_MAIN.format(make=self.name, data=f"{self.directory / 'data'}")
        with self.journal.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-c", program],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, **compiled_python()},
            )

    def _find_port(self, process: subprocess.Popen[str]) -> int:
        pid, _, address = self._first_line(process).partition(" ")
        self._node_pid = int(pid)
        return int(address.rpartition(":")[2])


class ProcessNodeBroker(ThreadNodeBroker):
    """A program that runs a node as a child process."""

    name = "kohort.Node.process"

    @property
    def cpu_s(self) -> float:
        """Of both processes."""
        assert self._process is not None, "it runs"
        return super().cpu_s + cpu_s_of(self._process.pid)


class ServeBroker(KohortBroker):
    name = "kohort serve"


class KfakeBroker(Broker):
    name = "kfake"

    def prepare(self) -> None:
        _build_kfake()

    def _spawn(self) -> subprocess.Popen[str]:
        with self.journal.open("ab") as log:
            return subprocess.Popen([_build_kfake()], stdout=subprocess.PIPE, stderr=log, text=True)

    def _find_port(self, process: subprocess.Popen[str]) -> int:
        return int(self._first_line(process).rpartition(":")[2])


@cache
def _kfake_directory() -> tempfile.TemporaryDirectory[str]:
    """Removed when this process ends."""
    return tempfile.TemporaryDirectory(prefix="kohort-bench-")


@cache
def _build_kfake() -> Path:
    """Download kfake and build a program with it, once."""
    directory = Path(_kfake_directory().name)
    (directory / "main.go").write_text(_KFAKE_MAIN, "utf-8")
    modules = (f"{KFAKE}@{KFAKE_VERSION}", f"github.com/twmb/franz-go@{FRANZ_VERSION}")
    go = shutil.which("go")
    if go is None:
        raise CannotDo("there is no go in the PATH")
    for words in (("mod", "init", "alternatives"), ("get", *modules), ("build", "-o", "kfake")):
        ended = subprocess.run(
            [go, *words], cwd=directory, capture_output=True, text=True, check=False
        )
        if ended.returncode:
            raise CannotDo(f"go {words[0]} failed: {ended.stderr.strip().splitlines()[-1]}")
    return directory / "kfake"


SIDES: Final[tuple[type[Broker], ...]] = (
    ThreadNodeBroker,
    ProcessNodeBroker,
    ServeBroker,
    KafkaBroker,
    KfakeBroker,
)

START, CPU, MEMORY = "start, s", "CPU of the start, s", "memory, MB"
QUANTITIES: Final = (START, CPU, MEMORY)


class Board:
    """The samples of each broker so far, and why one failed."""

    def __init__(self) -> None:
        self._samples: dict[tuple[str, str], list[float]] = defaultdict(list)
        self._failures: dict[str, str] = {}

    def measure(self, kind: type[Broker], *, counts: bool) -> None:
        """Start a broker once. A broker that failed is skipped."""
        if kind.name in self._failures:
            return
        try:
            with unstarted(kind) as broker:
                found = {START: broker.start(), CPU: broker.cpu_s}
                wait_until_idle(broker)
                found[MEMORY] = broker.resident_mb
        except (CannotDo, Unavailable, OSError) as error:
            self._failures[kind.name] = f"{error}"
            return
        if counts:
            for quantity, amount in found.items():
                self._samples[kind.name, quantity].append(amount)

    def rows(self) -> Iterator[tuple[str, ...]]:
        for kind in SIDES:
            failure = self._failures.get(kind.name, "")
            samples = [tuple(self._samples[kind.name, each]) for each in QUANTITIES]
            yield kind.name, *(show_taken(Taken(samples=each, failure=failure)) for each in samples)


def main() -> None:
    exit_when_terminated()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="starts of each broker (9)")
    rounds: int = parser.parse_args().rounds
    board = Board()
    for number in range(rounds + 1):
        # Who goes first changes, so that no broker always follows the same one.
        for kind in SIDES if number % 2 else reversed(SIDES):
            board.measure(kind, counts=number > 0)
    print(table(("broker", *QUANTITIES), board.rows()))
    facts = {**describe_machine(), **describe_versions(), "kfake": KFAKE_VERSION}
    print(f"\n{'; '.join(f'{name}: {text}' for name, text in facts.items())}")
    print(f"load average at the end: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
