"""One Apache Kafka on this machine, broker and controller in one process, for as long as needed.

It keeps what it says in a file beside its data. It never answers beyond this machine.
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
from tests.waiting import wait_until

HEAP_MB = 384
READY_S = 90
"""Two JVM starts on a busy machine; an idle one needs five seconds."""

_ATTEMPTS = 3
"""A port that was free may be taken before the server listens on it."""

_CLUSTER_ID = "a29ob3J0LWNvbnRyYWN0dw"

SETTINGS: Mapping[str, object] = {
    "process.roles": "broker,controller",
    "node.id": 1,
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    # One machine has one copy of everything.
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    # Tests wait for what happens, not for what might.
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 500,
    "log.initial.task.delay.ms": 100,
    "log.retention.check.interval.ms": 200,
    "log.cleaner.backoff.ms": 100,
    "log.segment.delete.delay.ms": 100,
    # A small heap and two cores.
    "log.cleaner.dedupe.buffer.size": 2 * 1024 * 1024,
    "num.network.threads": 2,
    "num.io.threads": 4,
    "background.threads": 2,
    "num.recovery.threads.per.data.dir": 1,
}


class Kafka:
    """Apache Kafka until it is stopped. Made in a folder of its own, which it fills.

    Raises Unavailable where there is no Java, or no way to its jars.
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
            assert "Address already in use" in self.journal, f"it ended: {self.journal[-3000:]}"
        raise AssertionError(f"no port in {_ATTEMPTS} attempts: {self.journal[-3000:]}")

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def journal(self) -> str:
        return self._log.read_text("utf-8", errors="replace")

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        """End it as it wants to be ended; kill it if that takes too long."""
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
        """Whether it answers; if not, it has ended."""
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
            wait_until(self._is_decided, READY_S, "Apache Kafka to answer")
        except BaseException:
            self.kill()
            raise
        return self.is_running

    def _format(self, properties: Path) -> None:
        words = ("format", "-t", _CLUSTER_ID, "-c", f"{properties}")
        ended = subprocess.run(
            java.command(self._classpath, "kafka.tools.StorageTool", *words),
            capture_output=True,
            text=True,
            timeout=READY_S,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr

    def _is_decided(self) -> bool:
        return not self.is_running or _answers(self.port)


def _answers(port: int) -> bool:
    """Whether a broker at that port knows of itself: before that it cannot make topics."""
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
    """All held at once, so that they differ."""
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports: list[int] = [server.getsockname()[1] for server in servers]
    for server in servers:
        server.close()
    return ports
