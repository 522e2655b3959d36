"""Drives load on a broker from separate processes: steady load, and crowds of scripted members.

While a load is measured, the broker has one core and the generator another. Kafka is started and
warmed up with all cores, so it creates its usual number of threads.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

from bench.kit import request_frames
from bench.kit.brokers import BROKER_CORE, LOAD_CORE, Broker, CannotDo
from bench.kit.client import Client


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """The frames that one connection sends in turn, and whether all responses are equal."""

    frames: Sequence[bytes]
    is_same: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Driven:
    """The result of a load. Shares are CPU seconds per second."""

    answers: int
    per_second: float
    p50_ms: float
    p99_ms: float
    generator: float
    broker: float


@contextmanager
def held(broker: Broker, *, is_free: bool = False) -> Iterator[int | None]:
    """Pin the broker and yield the generator's core. If free, the system schedules both."""
    if is_free:
        yield None
        return
    broker.hold(BROKER_CORE)
    try:
        yield LOAD_CORE
    finally:
        broker.hold()


def drive(
    broker: Broker,
    lanes: Sequence[Lane],
    *,
    seconds: float = 0.0,
    answers: int = 0,
    is_free: bool = False,
) -> Driven:
    """Run for this many seconds, or until this many responses."""
    plan = _plan(broker.port, lanes)
    words = [sys.executable, "-m", "bench.kit.load", f"{broker.port}"]
    words += ["--seconds", f"{seconds}", "--answers", f"{answers}"]
    with held(broker, is_free=is_free) as core:
        words += ["--waits"] if core is None else ["--core", f"{core}"]
        before = broker.cpu_s
        done = subprocess.run(words, input=plan, capture_output=True, text=True, check=False)
        cpu_s = broker.cpu_s - before
    if done.returncode:
        raise CannotDo(f"{broker.name}: {done.stderr.strip().splitlines()[-1]}")
    report = json.loads(done.stdout)
    return Driven(
        answers=report["answers"],
        per_second=report["per_second"],
        p50_ms=report["p50_ms"],
        p99_ms=report["p99_ms"],
        generator=report["generator_cpu_share"],
        broker=cpu_s / report["seconds"],
    )


def _plan(port: int, lanes: Sequence[Lane]) -> str:
    """Each connection sends one request before measuring, to learn the response."""
    lines = []
    with Client(port) as client:
        for lane in lanes:
            answer = client.ask_raw(lane.frames[0])
            expected = f"={answer[4:].hex()}" if lane.is_same else f"{len(answer) + 4}"
            lines.append(f"{expected} {' '.join(frame.hex() for frame in lane.frames)}\n")
    return "".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """A member of a formed group."""

    group: str
    generation: int
    member_id: str


class Members:
    """A crowd of scripted members, until it is closed. Their groups outlive it."""

    def __init__(self, broker: Broker, core: int | None = None) -> None:
        self._broker = broker
        words = [sys.executable, "-m", "bench.kit.member_crowd", f"{broker.port}"]
        words += [] if core is None else ["--core", f"{core}"]
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def form(self, groups: Sequence[str], size: int, *, at_once: int = 50) -> list[Seat]:
        told = self._ask({"do": "form", "groups": groups, "size": size, "at_once": at_once})
        return [
            Seat(group=group, generation=generation, member_id=member_id)
            for group, (generation, member_ids) in told["groups"].items()
            for member_id in member_ids
        ]

    def rebalance(self, groups: Sequence[str]) -> tuple[float, float]:
        """Seconds until all members have their assignment, and the CPU share of the crowd."""
        told = self._ask({"do": "rebalance", "groups": groups})
        return told["seconds"], told["generator_cpu_share"]

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"failure": "the members ended"}
        if "failure" in answer:
            raise CannotDo(f"{self._broker.name}: {answer['failure']}")
        return answer

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def form_once(broker: Broker, groups: Sequence[str], size: int) -> list[Seat]:
    """Form groups for a steady load; the connections of their members are closed."""
    with Members(broker) as members:
        return members.form(groups, size)


def heartbeat_lanes(seats: Sequence[Seat]) -> list[Lane]:
    """One connection per member."""
    return [
        Lane(frames=[request_frames.heartbeat(seat.group, seat.member_id, seat.generation)])
        for seat in seats
    ]


def commit_lanes(
    seats: Sequence[Seat], topic: str, partitions: int, offsets: Sequence[int]
) -> list[Lane]:
    """One connection per member, with other offsets each time."""
    return [
        Lane(
            frames=[
                request_frames.commit(
                    seat.group,
                    seat.member_id,
                    seat.generation,
                    topic=topic,
                    partitions=partitions,
                    offset=offset,
                )
                for offset in offsets
            ]
        )
        for seat in seats
    ]
