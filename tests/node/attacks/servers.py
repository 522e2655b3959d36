"""The servers under attack, each a fresh process: Kohort from a source tree, or Apache Kafka."""

import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.apache.cluster import Kafka
from tests.wait import wait_until

READY = re.compile(r"^kohort ready on .+:(?P<port>\d+)$", re.MULTILINE)
READY_S = 60.0
_LOOK_S = 0.05

_KAFKA_JAVA = (
    "-Xms1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)
"""The options of kafka-server-start with 1 GB of heap; the last line is ours."""

SETTINGS: Mapping[str, object] = {"group.initial.rebalance.delay.ms": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A running server."""

    port: int
    pid: int
    is_running: Callable[[], bool]
    read_log: Callable[[], str]


@contextmanager
def run_kohort(checkout: Path) -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="kohort-attacked-") as name:
        directory = Path(name)
        stdout, stderr = directory / "stdout", directory / "stderr"
        words = [sys.executable, "-m", "kohort", "serve", "--listen", "127.0.0.1:0"]
        words += ["--data", f"{directory / 'data'}"]
        words += [word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}")]
        environment = {**os.environ, "PYTHONPATH": f"{checkout / 'src'}"}
        with stdout.open("wb") as said, stderr.open("wb") as logged:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=said, stderr=logged, env=environment
            )
        try:
            wait_until(lambda: READY.search(stdout.read_text("utf-8")), READY_S, "a node")
            ready = READY.search(stdout.read_text("utf-8"))
            assert ready is not None
            yield Server(
                port=int(ready["port"]),
                pid=process.pid,
                is_running=lambda: process.poll() is None,
                read_log=lambda: stderr.read_text("utf-8", errors="replace"),
            )
        finally:
            process.kill()
            process.wait()


@contextmanager
def run_kafka() -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="kafka-attacked-") as name:
        kafka = Kafka(Path(name), SETTINGS, heap_mb=1024, options=_KAFKA_JAVA)
        try:
            yield Server(
                port=kafka.port,
                pid=kafka.pid,
                is_running=lambda: kafka.is_running,
                read_log=lambda: kafka.log,
            )
        finally:
            kafka.kill()


class PeakMemory(threading.Thread):
    """Watches the resident bytes of a process, also until its death."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._status = Path(f"/proc/{pid}/status")
        self._ended = threading.Event()
        # From now on the kernel counts the peak from zero.
        Path(f"/proc/{pid}/clear_refs").write_text("5", "ascii")
        self._before = self._peak = self._read("VmRSS")

    @property
    def growth_bytes(self) -> int:
        return self._peak - self._before

    def run(self) -> None:
        while not self._ended.wait(_LOOK_S):
            self._look()

    def stop(self) -> None:
        self._ended.set()
        self.join()
        self._look()

    def _look(self) -> None:
        with suppress(OSError, IndexError):  # the process has ended
            self._peak = max(self._peak, self._read("VmHWM"))

    def _read(self, name: str) -> int:
        return int(self._status.read_text("ascii").split(f"{name}:")[1].split()[0]) * 1024
