"""An Apache Kafka on this machine: broker and controller in one process, on the loopback interface.

Its log output goes to a file beside its data.
"""

import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from kohort.wire.api.k03_metadata import MetadataRequest
from kohort.wire.envelope import decode_response, encode_request
from kohort.wire.frame import FrameReader
from tests.apache import java
from tests.apache.jars import find_classpath
from tests.wait import wait_until

HEAP_MB = 384
READY_S = 90
"""Two JVM starts on a busy machine; an idle machine needs five seconds."""

_ATTEMPTS = 3
"""A free port may be taken before the server listens on it."""

_CLUSTER_ID = "a29ob3J0LWNvbnRyYWN0dw"

SETTINGS: Mapping[str, object] = {
    "process.roles": "broker,controller",
    "node.id": 1,
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    # One broker has one replica of everything.
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    # Short delays keep the tests fast.
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 500,
    "log.initial.task.delay.ms": 100,
    "log.retention.check.interval.ms": 200,
    "log.cleaner.backoff.ms": 100,
    "log.segment.delete.delay.ms": 100,
    # For a small heap and two cores.
    "log.cleaner.dedupe.buffer.size": 2 * 1024 * 1024,
    "num.network.threads": 2,
    "num.io.threads": 4,
    "background.threads": 2,
    "num.recovery.threads.per.data.dir": 1,
}


class Kafka:
    """A running Apache Kafka with its own directory.

    Raises Unavailable if there is no Java or the jars cannot be downloaded.
    """

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, object] | None = None,
        *,
        heap_mb: int = HEAP_MB,
        options: Sequence[str] = java.QUICK,
    ) -> None:
        self._classpath = find_classpath()
        self._heap_mb = heap_mb
        self._options = options
        self._log = directory / "kafka.log"
        for attempt in range(1, _ATTEMPTS + 1):
            place = directory / f"attempt-{attempt}"
            place.mkdir(parents=True)
            if self._start(place, settings or {}):
                return
            assert "Address already in use" in self.log, f"Kafka exited: {self.log[-3000:]}"
        raise AssertionError(f"no free port in {_ATTEMPTS} attempts: {self.log[-3000:]}")

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> str:
        return self._log.read_text("utf-8", errors="replace")

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        """Stop it cleanly; kill it if that takes too long."""
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _start(self, place: Path, settings: Mapping[str, object]) -> bool:
        """Whether it serves requests; if not, it has exited."""
        self.port, controller = _free_ports(2)
        where = {
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "log.dirs": place / "data",
        }
        properties = place / "server.properties"
        every = {**SETTINGS, **where, **settings}
        properties.write_text("".join(f"{key}={value}\n" for key, value in every.items()), "utf-8")
        self._format(properties)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                java.command(
                    self._classpath,
                    "kafka.Kafka",
                    f"{properties}",
                    heap_mb=self._heap_mb,
                    options=self._options,
                ),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            wait_until(self._has_started_or_exited, READY_S, "Apache Kafka to start")
        except BaseException:
            self.kill()
            raise
        return self.is_running

    def _format(self, properties: Path) -> None:
        arguments = ("format", "-t", _CLUSTER_ID, "-c", f"{properties}")
        ended = subprocess.run(
            java.command(self._classpath, "kafka.tools.StorageTool", *arguments),
            capture_output=True,
            text=True,
            timeout=READY_S,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr

    def _has_started_or_exited(self) -> bool:
        return not self.is_running or _is_ready(self.port)


def _is_ready(port: int) -> bool:
    """Whether the broker is in its own metadata: before that it cannot create topics."""
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as connection:
            connection.sendall(encode_request(MetadataRequest(topics=()), 4, 1, "waiting"))
            reader = FrameReader()
            frames: list[bytes] = []
            while not frames and (data := connection.recv(1 << 16)):
                frames = reader.feed(data)
    except OSError:
        return False
    return bool(frames) and bool(decode_response(frames[0], 3, 4)[1].brokers)


def _free_ports(count: int) -> list[int]:
    """All ports are bound at the same time, so that they differ."""
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports: list[int] = [server.getsockname()[1] for server in servers]
    for server in servers:
        server.close()
    return ports
