"""The brokers under contract: Kohort in this process, Kohort as a subprocess, and Apache Kafka.

Each one starts when a test first asks for it, and all tests of the session share it.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import kohort
from tests.apache.shared import shared_kafka
from tests.apache.unavailable import Unavailable, skip
from tests.contract.cluster import Cluster
from tests.node.served_node import ServedNode

IN_PROCESS = "Kohort in process"
SERVED = "Kohort served"
APACHE = "Apache Kafka"

BROKERS = (IN_PROCESS, SERVED, APACHE)

KOHORT_SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 500,
    "offsets.retention.check.interval.ms": 200,
    "log.retention.check.interval.ms": 200,
}


class Brokers:
    """The brokers that tests have asked for, until all are stopped."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._stack = ExitStack()
        self._started: dict[str, Cluster] = {}
        self._unavailable: dict[str, Unavailable] = {}
        self._locks = {name: threading.Lock() for name in BROKERS}

    def get(self, name: str) -> Cluster:
        """Skips the test if the broker is unavailable."""
        with self._locks[name]:
            if name not in self._started and name not in self._unavailable:
                self._start(name)
        if name in self._unavailable:
            skip(self._unavailable[name])
        return self._started[name]

    def stop(self) -> None:
        self._stack.close()

    def _start(self, name: str) -> None:
        folder = self._directory / name.replace(" ", "-").lower()
        folder.mkdir()
        try:
            bootstrap_servers = self._stack.enter_context(_STARTS[name](folder))
        except Unavailable as reason:
            self._unavailable[name] = reason
            return
        cluster = Cluster(name=name, bootstrap_servers=bootstrap_servers)
        cluster.wait_for_coordinator()
        self._started[name] = cluster


@contextmanager
def _in_process(folder: Path) -> Iterator[str]:
    with kohort.Node(settings=KOHORT_SETTINGS, data=folder, like_kafka=True) as node:
        yield node.bootstrap_servers


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    with ServedNode(folder, KOHORT_SETTINGS) as served:
        yield served.bootstrap_servers
        served.terminate()
        # It closes the logs of a thousand topics.
        assert served.wait(120) == 0
        assert "Traceback" not in served.log


@contextmanager
def _apache(folder: Path) -> Iterator[str]:
    with shared_kafka(folder) as kafka:
        yield kafka.bootstrap_servers


_STARTS: dict[str, Callable[[Path], AbstractContextManager[str]]] = {
    IN_PROCESS: _in_process,
    SERVED: _served,
    APACHE: _apache,
}
