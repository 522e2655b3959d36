"""Starts, stops, kills and suspends the consumer processes, each by its process id.

No process outlives this one, because a consumer leaves when its stdin is closed. Ctrl-C in a
terminal does not reach them, so that they can leave their groups in order.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from kohort.demo import consumer_main
from kohort.demo.schedule import Action, ActionKind
from kohort.demo.services import CONSUMERS, HEARTBEAT_MS, ORDERS, POLL_INTERVAL_MS, DemoConsumer
from kohort.demo.threads import OnFailure
from kohort.types import GroupId

_LEAVE_S: Final = 8.0
"""A consumer that takes longer to leave its group is killed."""
_COMMIT_INTERVAL_MS: Final = 1_000


class _ConsumerProcess:
    """One process, from its start to its end."""

    def __init__(
        self, consumer: DemoConsumer, bootstrap_servers: str, log: Path, on_failure: OnFailure
    ) -> None:
        self.consumer = consumer
        self.records = 0
        self.is_ending = False
        self._log = log
        self._on_failure = on_failure
        arguments = [json.dumps(_options(consumer, bootstrap_servers)), ORDERS]
        with log.open("ab") as stderr:
            self._process = subprocess.Popen(  # noqa: S603  # this Python and one of our modules
                [sys.executable, "-m", consumer_main.__name__, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
                text=True,
            )
        self._reader = threading.Thread(target=self._read_stdout, name=consumer.name, daemon=True)
        self._reader.start()

    def send(self, command: str) -> None:
        """Send a command; do nothing if the process has ended."""
        assert self._process.stdin is not None
        if not self._process.stdin.closed:
            # If the process ends right now, `_read_stdout` reports it.
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(f"{command}\n")
                self._process.stdin.flush()

    def signal(self, number: signal.Signals) -> None:
        # Popen does not signal a process that has ended, whose id may be reused.
        self._process.send_signal(number)

    def request_leave(self) -> None:
        self.is_ending = True
        self.signal(signal.SIGCONT)
        self.send(consumer_main.LEAVE)

    def kill(self) -> None:
        self.is_ending = True
        self._process.kill()
        self.wait()

    def wait(self, timeout_s: float = _LEAVE_S) -> None:
        """Wait for the end of the process; kill it after the timeout."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()

    def _read_stdout(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self.records = json.loads(line)["records"]
        code = self._process.wait()
        if not self.is_ending:
            reason = _last_line(self._log) or f"exit code {code}"
            self._on_failure(self.consumer.name, reason)


class ConsumerProcesses:
    """Executes the actions of a schedule. One thread uses it; any thread may call `kill`."""

    def __init__(self, bootstrap_servers: str, logs: Path, on_failure: OnFailure) -> None:
        self._bootstrap_servers = bootstrap_servers
        self.logs = logs
        self._on_failure = on_failure
        self._processes: dict[str, _ConsumerProcess] = {}
        self._records: Counter[GroupId] = Counter()
        """Records of processes that have been replaced."""
        self._lock = threading.Lock()
        self._is_closed = False
        logs.mkdir(parents=True, exist_ok=True)

    def execute(self, action: Action) -> None:
        process = self._processes.get(action.consumer)
        if action.kind is ActionKind.START:
            self._start(CONSUMERS[action.consumer])
        elif process is not None:
            _EXECUTORS[action.kind](process, action)

    def consumed(self) -> Mapping[GroupId, int]:
        """Return the number of records that each service has received."""
        running: Counter[GroupId] = Counter()
        for process in self._processes.values():
            running[process.consumer.service.group_id] += process.records
        return self._records + running

    def close(self) -> None:
        """Let all consumers leave their groups at the same time."""
        processes = list(self._processes.values())
        for process in processes:
            process.request_leave()
        for process in processes:
            process.wait()

    def kill(self) -> None:
        """Kill all processes and start no more."""
        with self._lock:
            self._is_closed = True
            for process in self._processes.values():
                process.kill()

    def _start(self, consumer: DemoConsumer) -> None:
        before = self._processes.get(consumer.name)
        if before is not None:
            # A deployment starts the new process when the old one has ended.
            before.wait()
            self._records[consumer.service.group_id] += before.records
        log = self.logs / f"{consumer.name}.txt"
        with self._lock:
            if not self._is_closed:
                self._processes[consumer.name] = _ConsumerProcess(
                    consumer, self._bootstrap_servers, log, self._on_failure
                )


_EXECUTORS: Final[Mapping[ActionKind, Callable[[_ConsumerProcess, Action], None]]] = {
    ActionKind.STOP: lambda process, _: process.request_leave(),
    ActionKind.CRASH: lambda process, _: process.kill(),
    ActionKind.STALL: lambda process, action: process.send(
        f"{consumer_main.STALL} {action.duration_ms}"
    ),
    ActionKind.SUSPEND: lambda process, _: process.signal(signal.SIGSTOP),
    ActionKind.RESUME: lambda process, _: process.signal(signal.SIGCONT),
}


def _options(consumer: DemoConsumer, bootstrap_servers: str) -> dict[str, object]:
    service = consumer.service
    return {
        "bootstrap.servers": bootstrap_servers,
        "group.id": service.group_id,
        "group.instance.id": consumer.instance_id,
        "client.id": consumer.name,
        "partition.assignment.strategy": service.strategy,
        "session.timeout.ms": service.session_ms,
        "heartbeat.interval.ms": HEARTBEAT_MS,
        "max.poll.interval.ms": POLL_INTERVAL_MS,
        "auto.commit.interval.ms": _COMMIT_INTERVAL_MS,
        "auto.offset.reset": "earliest",
    }


def _last_line(log: Path) -> str:
    """The last line of a traceback is its error."""
    lines = log.read_text("utf-8", "replace").split(os.linesep)
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
