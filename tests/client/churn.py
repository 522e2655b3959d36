"""Group churn: members join, leave, stall and crash at random while records are produced.

One seed drives all random choices. Members are threads with their own consumer; some are processes
that are killed.
"""

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from confluent_kafka import Producer

import kohort
from kohort.types import Topic
from tests.client.node_cluster import QUICK, Cluster, flatten
from tests.wait import pause, wait_until

Key = tuple[int, int]
"""Partition and offset."""


@dataclass(slots=True)
class ProcessedRecords:
    """The records that each member has processed."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    seen: Counter[Key] = field(default_factory=Counter)
    failures: list[BaseException] = field(default_factory=list)
    generation: int = 0
    """The last generation of any member."""

    def note(self, keys: list[Key]) -> None:
        with self.lock:
            self.seen.update(keys)


class Worker(threading.Thread):
    """Polls until it gets another command."""

    def __init__(
        self, servers: str, topic: Topic, ledger: ProcessedRecords, options: dict[str, Any]
    ) -> None:
        super().__init__(daemon=True)
        self._ledger = ledger
        self._topic = topic
        self._consumer = kohort.Consumer(bootstrap_servers=servers, **options)
        self._end: Callable[[], None] | None = None
        self._dawdle_s = 0.0
        self.start()

    def run(self) -> None:
        try:
            self._consumer.subscribe([self._topic])
            while self._end is None:
                records = flatten(self._consumer.poll(50))
                self._ledger.note([(each.partition, each.offset) for each in records])
                pause(self._dawdle_s)
                self._dawdle_s = 0.0
            self._end()
        except BaseException as error:  # checked by the test
            self._ledger.failures.append(error)
            self._consumer.abandon()
        generation = max((each.generation for each in self._consumer.rebalances()), default=0)
        self._ledger.generation = max(self._ledger.generation, generation)

    def dawdle(self, seconds: float) -> None:
        self._dawdle_s = seconds

    def leave(self) -> None:
        self._end = self._consumer.close

    def die(self) -> None:
        self._end = self._consumer.abandon


class GroupChurn:
    def __init__(
        self, cluster: Cluster, directory: Path, seed: int, *, partitions: int, members_max: int
    ) -> None:
        self.random = Random(seed)  # noqa: S311  # the same chance again, not a secret
        self.cluster = cluster
        self.ledger = ProcessedRecords()
        self.topic = cluster.create_topic(partitions)
        self._partitions = partitions
        self._directory = directory
        self._members_max = members_max
        self._group = cluster.name_group()
        self._workers: list[Worker] = []
        self._leaving: list[Worker] = []
        self._processes: list[tuple[subprocess.Popen[bytes], Path]] = []
        self._producer = Producer(
            {"bootstrap.servers": cluster.bootstrap_servers, "acks": "all", "linger.ms": 5}
        )
        self.written: Counter[Key] = Counter()
        self._ends: Counter[int] = Counter()
        self.options = {**QUICK, "group_id": self._group, "auto_commit_interval_ms": 100}

    def produce(self, count: int) -> None:
        """To random partitions."""
        for _ in range(count):
            partition = self.random.randrange(self._partitions)
            self._producer.produce(self.topic, value=b"value", partition=partition)
            self.written[partition, self._ends[partition]] += 1
            self._ends[partition] += 1
        assert self._producer.flush(30) == 0

    # Random events

    def join(self) -> None:
        if len(self._workers) < self._members_max:
            servers = self.cluster.bootstrap_servers
            self._workers.append(Worker(servers, self.topic, self.ledger, self.options))

    def leave(self) -> None:
        if len(self._workers) > 1:
            self._leaving.append(self._pick())
            self._leaving[-1].leave()

    def die(self) -> None:
        if len(self._workers) > 1:
            self._leaving.append(self._pick())
            self._leaving[-1].die()

    def dawdle(self) -> None:
        if self._workers:
            self.random.choice(self._workers).dawdle(self.random.random() / 2)

    def start_process(self) -> None:
        path = self._directory / f"doomed-{len(self._processes)}"
        words = (self.cluster.bootstrap_servers, self.topic, self._group)
        with path.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.client.killable_consumer", *words], stdout=output
            )
        self._processes.append((process, path))

    def kill_process(self) -> None:
        for process, _ in self._processes:
            if process.poll() is None:
                process.kill()
                return

    def _pick(self) -> Worker:
        return self._workers.pop(self.random.randrange(len(self._workers)))

    # End

    def settle(self) -> None:
        """Let the remaining members read everything, then leave."""
        for process, _ in self._processes:
            process.kill()
            process.wait()
        self.join()
        try:
            wait_until(lambda: self._has_all() or self.ledger.failures, 90, "all records")
        finally:
            for worker in self._workers:
                worker.leave()
            for worker in self._workers + self._leaving:
                worker.join(60)
        assert not self.ledger.failures, self.ledger.failures

    def _has_all(self) -> bool:
        with self.ledger.lock:
            seen = set(self.ledger.seen)
        return len(self.seen_by_processes() | seen) >= len(self.written)

    def seen_by_processes(self) -> set[Key]:
        """Only complete lines: the kill may have cut the last one."""
        keys: set[Key] = set()
        for _, path in self._processes:
            lines = path.read_text().splitlines(keepends=True)
            for line in lines:
                if line.endswith("\n"):
                    partition, offset = line.split()
                    keys.add((int(partition), int(offset)))
        return keys
