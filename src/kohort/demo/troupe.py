"""The shop's programs as processes: started, stopped, killed and frozen, each by its own id.

None of them outlives this process: their standard input ends with it. Ctrl-C in a terminal does not
reach them, so that they can be ended in order.
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

from kohort.demo import member
from kohort.demo.cast import HEARTBEAT_MS, ORDERS, POLL_MS, PROGRAMS, Program
from kohort.demo.parts import OnEnd
from kohort.demo.schedule import Act, Deed
from kohort.types import GroupId

_END_S: Final = 8.0
"""How long a program may take to leave its group; then it is killed."""
_COMMIT_MS: Final = 1_000


class _Actor:
    """One process, from its start to its end."""

    def __init__(
        self, program: Program, bootstrap_servers: str, journal: Path, on_end: OnEnd
    ) -> None:
        self.program = program
        self.records = 0
        self.is_to_end = False
        self._journal = journal
        self._on_end = on_end
        words = [json.dumps(_options(program, bootstrap_servers)), ORDERS]
        with journal.open("ab") as stderr:
            self._process = subprocess.Popen(  # noqa: S603  # this Python, and a module of ours
                [sys.executable, "-m", member.__name__, *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
                text=True,
            )
        self._listener = threading.Thread(target=self._listen, name=program.name, daemon=True)
        self._listener.start()

    def tell(self, order: str) -> None:
        """Nothing, if it has ended."""
        assert self._process.stdin is not None
        if not self._process.stdin.closed:
            # It may die in this very moment, which `_listen` notices.
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(f"{order}\n")
                self._process.stdin.flush()

    def signal(self, number: signal.Signals) -> None:
        # Not sent to a process that was already waited for: its number may be another's.
        self._process.send_signal(number)

    def ask_to_leave(self) -> None:
        self.is_to_end = True
        self.signal(signal.SIGCONT)
        self.tell(member.LEAVE)

    def kill(self) -> None:
        self.is_to_end = True
        self._process.kill()
        self.wait()

    def wait(self, timeout_s: float = _END_S) -> None:
        """Until it has ended, by force if it takes too long."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join()
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as said:
            for line in said:
                self.records = json.loads(line)["records"]
        code = self._process.wait()
        if not self.is_to_end:
            self._on_end(self.program.name, _last_line(self._journal) or f"it ended with {code}")


class Troupe:
    """Carries out the acts of a schedule. One thread uses it; `kill` may come from any."""

    def __init__(self, bootstrap_servers: str, journals: Path, on_end: OnEnd) -> None:
        self._bootstrap_servers = bootstrap_servers
        self.journals = journals
        self._on_end = on_end
        self._actors: dict[str, _Actor] = {}
        self._records: Counter[GroupId] = Counter()
        self._lock = threading.Lock()
        self._is_closed = False
        journals.mkdir(parents=True, exist_ok=True)

    def carry_out(self, act: Act) -> None:
        actor = self._actors.get(act.name)
        if act.deed is Deed.START:
            self._start(PROGRAMS[act.name])
        elif actor is not None:
            _DOINGS[act.deed](actor, act)

    def consumed(self) -> Mapping[GroupId, int]:
        """How many records each service was given by now."""
        running: Counter[GroupId] = Counter()
        for actor in self._actors.values():
            running[actor.program.service.group_id] += actor.records
        return self._records + running

    def close(self) -> None:
        """Let all leave their groups, at the same time."""
        actors = list(self._actors.values())
        for actor in actors:
            actor.ask_to_leave()
        for actor in actors:
            actor.wait()

    def kill(self) -> None:
        """End them all at once; none starts any more."""
        with self._lock:
            self._is_closed = True
            for actor in self._actors.values():
                actor.kill()

    def _start(self, program: Program) -> None:
        before = self._actors.get(program.name)
        if before is not None:
            # As whoever deploys does: the next one starts when the last one has ended.
            before.wait()
            self._records[program.service.group_id] += before.records
        journal = self.journals / f"{program.name}.txt"
        with self._lock:
            if not self._is_closed:
                self._actors[program.name] = _Actor(
                    program, self._bootstrap_servers, journal, self._on_end
                )


def _stall(actor: _Actor, act: Act) -> None:
    actor.tell(f"{member.STALL} {act.for_ms}")


_DOINGS: Final[Mapping[Deed, Callable[[_Actor, Act], None]]] = {
    Deed.STOP: lambda actor, _: actor.ask_to_leave(),
    Deed.CRASH: lambda actor, _: actor.kill(),
    Deed.STALL: _stall,
    Deed.FREEZE: lambda actor, _: actor.signal(signal.SIGSTOP),
    Deed.THAW: lambda actor, _: actor.signal(signal.SIGCONT),
}


def _options(program: Program, bootstrap_servers: str) -> dict[str, object]:
    service = program.service
    return {
        "bootstrap.servers": bootstrap_servers,
        "group.id": service.group_id,
        "group.instance.id": program.instance_id,
        "client.id": program.name,
        "partition.assignment.strategy": service.strategy,
        "session.timeout.ms": service.session_ms,
        "heartbeat.interval.ms": HEARTBEAT_MS,
        "max.poll.interval.ms": POLL_MS,
        "auto.commit.interval.ms": _COMMIT_MS,
        "auto.offset.reset": "earliest",
    }


def _last_line(journal: Path) -> str:
    """The error of a traceback is its last line."""
    lines = journal.read_text("utf-8", "replace").split(os.linesep)
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
