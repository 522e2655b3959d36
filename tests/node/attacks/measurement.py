"""Runs one attack against one server and measures what a well-behaved client sees."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.node.attacks.arena import Arena
from tests.node.attacks.attack import Attack
from tests.node.attacks.servers import PeakMemory, Server

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    heartbeat_s: float
    growth_bytes: int
    outcome: str
    problems: tuple[str, ...]
    """Empty if the server is alive and correct."""


class Bystander:
    """The process of `tests.node.attacks.bystander`."""

    def __init__(self, port: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.node.attacks.bystander", f"{port}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        self._expect("ready")

    def begin(self) -> None:
        self._tell("begin")
        self._expect("begun")

    def end(self) -> dict[str, Any]:
        self._tell("end")
        result: dict[str, Any] = json.loads(self._hear())
        return result

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()

    def _tell(self, word: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()

    def _hear(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def _expect(self, word: str) -> None:
        heard = self._hear().strip()
        assert heard == word, f"expected {word}, got {heard!r}"


@contextmanager
def bystander(port: int) -> Iterator[Bystander]:
    one = Bystander(port)
    try:
        yield one
    finally:
        one.kill()


def measure(server: Server, attack: Attack, arena: Arena) -> Measurement:
    attack.prepare(arena)
    try:
        with bystander(server.port) as watching:
            memory = PeakMemory(server.pid)
            memory.start()
            watching.begin()
            describe = attack.act(arena)
            arena.close()
            # A heartbeat that still waits counts, and so does the memory until it is answered.
            seen = watching.end()
            memory.stop()
        problems = list(seen["problems"])
        outcome = describe()
    finally:
        arena.close()
    if not server.is_running():
        problems.append("the server has ended")
    elif "Traceback" in server.read_log():
        problems.append("traceback in the log")
    return Measurement(
        heartbeat_s=seen["longest_s"],
        growth_bytes=memory.growth_bytes,
        outcome=outcome,
        problems=tuple(problems),
    )
