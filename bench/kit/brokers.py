"""Starts Kohort and Apache Kafka as processes, pins them to cores, and kills them.

Both use their defaults, except that Kafka's internal topics have one replica. Kafka has the heap
size and garbage collector of its start script and logs warnings only, so that logging does not slow
it. Both listen on loopback only.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Final

from bench.kit import request_frames
from bench.kit.client import Client
from kohort.types import ErrorCode, Topic
from kohort.wire.api.k10_find_coordinator import FindCoordinatorRequest
from kohort.wire.api.k19_create_topics import CreatableTopic, CreateTopicsRequest
from kohort.wire.envelope import decode_response
from tests.apache import java
from tests.apache.jars import find_classpath

KOHORT, KAFKA = "kohort", "kafka"

OTHER_CHECKOUT: Final = "KOHORT_BENCH_OTHER_CHECKOUT"
"""Environment variable: the directory of a checkout to measure in Apache Kafka's place."""

READY_S: Final = 120.0
_BETWEEN_LOOKS_S: Final = 0.002

_CORES: Final = sorted(os.sched_getaffinity(0))
BROKER_CORE: Final = _CORES[0]
LOAD_CORE: Final = _CORES[-1]
"""The same core if the machine has only one."""

_KAFKA_JAVA: Final = (
    "-Xms1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)
"""The options of kafka-server-start with 1 GB of heap; the last line is ours."""

_KAFKA_HEAP_MB: Final = 1024
_CLUSTER_ID: Final = "a29ob3J0LWJlbmNobWFyaw"

_KAFKA_SETTINGS: Final[Mapping[str, object]] = {
    "process.roles": "broker,controller",
    "node.id": 1,
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
}

Look = Callable[[Client], bool]
"""A condition that is checked over a new connection until it is true."""

COMMON: Final[Mapping[str, object]] = {"group.initial.rebalance.delay.ms": 0}
"""For both: a group does not wait for more members before its first rebalance."""


class CannotDo(Exception):
    """A broker did not do what was requested. The message says what."""


class Broker(ABC):
    """One broker and its data directory."""

    name: ClassVar[str]

    def __init__(self, directory: Path, *, is_synced: bool) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.is_synced = is_synced
        self.port = 0
        self._process: subprocess.Popen[str] | None = None

    @abstractmethod
    def prepare(self) -> None:
        """Do what an operator does once, before the first start."""

    @abstractmethod
    def _spawn(self) -> subprocess.Popen[str]: ...

    @abstractmethod
    def _find_port(self, process: subprocess.Popen[str]) -> int: ...

    def _first_line(self, process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None, "it is a pipe"
        line = process.stdout.readline()
        if not line:
            raise CannotDo(f"{self.name} did not start: {self._last_words()}")
        return line

    def start(self) -> float:
        """Start it; return the seconds until a member has joined a group."""
        assert self._process is None, "it runs already"
        began = time.perf_counter()
        self._process = self._spawn()
        self.port = self._find_port(self._process)
        self.wait_for(_has_joined, "a member to join")
        return time.perf_counter() - began

    def wait_for(self, look: Look, what: str) -> None:
        """Retry until `look` is true. A refused or closed connection counts as false."""
        end = time.monotonic() + READY_S
        while not self._is_so(look):
            if self._process is None or self._process.poll() is not None:
                raise CannotDo(f"{self.name} has ended; the end of its log: {self._last_words()}")
            if time.monotonic() > end:
                raise CannotDo(f"{self.name}: {what} took more than {READY_S:.0f} s")
            time.sleep(_BETWEEN_LOOKS_S)

    def _is_so(self, look: Look) -> bool:
        try:
            with Client(self.port) as client:
                return look(client)
        except OSError:
            return False

    def kill(self) -> None:
        """Send SIGKILL."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, how: int) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def hold(self, *cores: int) -> None:
        """Pin all threads to these cores; to all cores if none is given."""
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            try:
                os.sched_setaffinity(int(task.name), set(cores or _CORES))
            except ProcessLookupError:
                continue  # a thread that has just ended

    @property
    def pid(self) -> int:
        assert self._process is not None, "it does not run"
        return self._process.pid

    @property
    def cpu_s(self) -> float:
        return cpu_s_of(self.pid)

    @property
    def resident_mb(self) -> float:
        status = Path(f"/proc/{self.pid}/status").read_text("ascii")
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    @property
    def journal(self) -> Path:
        return self.directory / "journal"

    def _last_words(self) -> str:
        return self.journal.read_text("utf-8", errors="replace")[-500:]

    def create_topic(self, name: str, partitions: int) -> None:
        wanted = CreatableTopic(name=Topic(name), num_partitions=partitions, replication_factor=1)
        with Client(self.port) as client:
            (result,) = client.ask(CreateTopicsRequest(topics=(wanted,)), 7).topics
        if result.error_code not in (0, ErrorCode.TOPIC_ALREADY_EXISTS):
            raise CannotDo(f"{self.name}: no topic: {ErrorCode(result.error_code).name}")


class KohortBroker(Broker):
    name = KOHORT
    environment: ClassVar[Mapping[str, str]] = {}

    def prepare(self) -> None:
        """Do nothing: a node creates its directory."""

    def _spawn(self) -> subprocess.Popen[str]:
        words = [sys.executable, "-m", "kohort", "serve", "--listen", "127.0.0.1:0"]
        words += ["--data", f"{self.directory / 'data'}"]
        words += ["--set", f"kohort.durability={'fsync' if self.is_synced else 'os'}"]
        for name, setting in COMMON.items():
            words += ["--set", f"{name}={setting}"]
        with self.journal.open("ab") as log:
            return subprocess.Popen(
                words,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, **compiled_python(), **self.environment},
            )

    def _find_port(self, process: subprocess.Popen[str]) -> int:
        return int(self._first_line(process).rpartition(":")[2])


class KafkaBroker(Broker):
    name = KAFKA

    def _find_port(self, process: subprocess.Popen[str]) -> int:  # noqa: ARG002  # it was told
        return self.port

    def prepare(self) -> None:
        self.port, controller = _free_ports(2)
        settings = {
            **_KAFKA_SETTINGS,
            **COMMON,
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "log.dirs": self.directory / "data",
        }
        if self.is_synced:
            # Every append is synced before it is answered.
            settings["log.flush.interval.messages"] = 1
        lines = (f"{key}={setting}\n" for key, setting in settings.items())
        self._properties.write_text("".join(lines), "utf-8")
        words = ("format", "-t", _CLUSTER_ID, "-c", f"{self._properties}")
        command = java.command(find_classpath(), "kafka.tools.StorageTool", *words)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CannotDo(f"kafka cannot format its folder: {done.stderr[-500:]}")

    @property
    def _properties(self) -> Path:
        return self.directory / "server.properties"

    def _spawn(self) -> subprocess.Popen[str]:
        words = java.command(
            find_classpath(),
            "kafka.Kafka",
            f"{self._properties}",
            heap_mb=_KAFKA_HEAP_MB,
            options=_KAFKA_JAVA,
        )
        with self.journal.open("ab") as log:
            return subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, text=True
            )


def cpu_s_of(pid: int) -> float:
    """CPU time of all threads. The number is the clock id of another process on Linux."""
    return time.clock_gettime(~pid << 3 | 2)


def compiled_python() -> dict[str, str]:
    """As on any machine where it was installed: Python finds what it has compiled before."""
    return {"PYTHONPYCACHEPREFIX": _compiled().name, "PYTHONDONTWRITEBYTECODE": ""}


@cache
def _compiled() -> tempfile.TemporaryDirectory[str]:
    """The bytecode directory of all programs started here; removed when this process ends."""
    return tempfile.TemporaryDirectory(prefix="kohort-bench-")


def _has_joined(client: Client) -> bool:
    """Whether a group of one member can be formed. Kafka creates its offsets topic on the way."""
    found = client.ask(FindCoordinatorRequest(coordinator_keys=("first",)), 4)
    if found.coordinators[0].error_code:
        return False
    joined = _join(client, "")
    if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        joined = _join(client, joined.member_id)
    return not joined.error_code


def _join(client: Client, member_id: str) -> Any:
    answer = client.ask_raw(
        request_frames.join("first", member_id, request_frames.subscription("orders"))
    )
    return decode_response(answer, request_frames.JOIN_KEY, request_frames.JOIN_VERSION)[1]


def _free_ports(count: int) -> list[int]:
    """Distinct free ports: all are bound at the same time."""
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports: list[int] = [server.getsockname()[1] for server in servers]
    for server in servers:
        server.close()
    return ports


class OtherKohortBroker(KohortBroker):
    """Another checkout of Kohort in Kafka's place, to measure a change before and after."""

    name = KAFKA
    environment: ClassVar = {"PYTHONPATH": f"{os.environ.get(OTHER_CHECKOUT, '')}/src"}


def _peer() -> type[Broker]:
    return OtherKohortBroker if os.environ.get(OTHER_CHECKOUT) else KafkaBroker


BROKERS: Final[tuple[type[Broker], ...]] = (KohortBroker, _peer())
