"""A load generator in a separate process: sends prepared frames again as soon as they are answered.

It reads a plan from standard input, one connection per line: the size of a response, or `=` and in
hex what a response must contain after its correlation id, then in hex the frames to send in turn.
It decodes nothing, so that it is not the bottleneck; its report says how busy it was.
"""

import argparse
import json
import os
import select
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle

from bench.kit.figures import percentile

_HEAD = 8
"""Length and correlation id: the part of a response that may differ from the expected one."""

_LOOKS = 5_000
"""Empty polls, to measure the cost of one."""

_PATIENCE_S = 60.0
"""Time without any response after which the broker has failed."""

_SERVED_EVERY = 32
"""Connections opened at a time: Kafka's default backlog is 50."""


@dataclass(slots=True)
class Lane:
    """One connection: its frames, the expected response, and how much of one is missing."""

    number: int
    receive: Callable[[bytearray], int]
    send: Callable[[bytes], None]
    frames: Iterator[bytes]
    answer_size: int
    answer: bytes | None
    missing: int
    sent_at: int = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("--seconds", type=float, default=4.0, help="how long to go on")
    parser.add_argument("--answers", type=int, default=0, help="or after how many to stop")
    parser.add_argument("--core", type=int, help="the core to stay on")
    parser.add_argument("--waits", action="store_true", help="sleep while there is nothing to do")
    options = parser.parse_args()
    if options.core is not None:
        os.sched_setaffinity(0, {options.core})
    lanes = list(_connect(options.port, sys.stdin))
    generator = Generator(lanes, is_spinning=not options.waits)
    sys.stdout.write(json.dumps(generator.drive(options.seconds, options.answers)) + "\n")


def _connect(port: int, plan: Iterator[str]) -> Iterator[Lane]:
    for place, line in enumerate(plan):
        expected, *frames = line.split()
        connection = socket.create_connection(("127.0.0.1", port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        answer = bytes.fromhex(expected[1:]) if expected.startswith("=") else None
        size = int(expected) if answer is None else len(answer) + _HEAD
        ready = [bytes.fromhex(each) for each in frames]
        if place % _SERVED_EVERY == 0:
            connection.sendall(ready[0])
            left = size
            while left > 0:
                left -= len(connection.recv(left))
        number = connection.fileno()
        receive, send = connection.recv_into, connection.sendall
        yield Lane(number, receive, send, cycle(ready), size, answer, size)


class Generator:
    """One round of load on open connections."""

    def __init__(self, lanes: list[Lane], *, is_spinning: bool) -> None:
        self._by_number = {lane.number: lane for lane in lanes}
        self._poll = select.epoll()
        for number in self._by_number:
            self._poll.register(number, select.EPOLLIN)
        # It polls without sleeping: waking it would cost the broker CPU time.
        self._timeout = 0.0 if is_spinning else 0.1
        self._look_s = self._time_looks() if is_spinning else 0.0

    def _time_looks(self) -> float:
        began = time.process_time()
        for _ in range(_LOOKS):
            self._poll.poll(0)
            time.perf_counter_ns()
        return (time.process_time() - began) / _LOOKS

    def drive(self, seconds: float, answers_max: int) -> dict[str, float]:
        took_ns: list[int] = []
        began, cpu_began = time.perf_counter_ns(), time.process_time()
        for lane in self._by_number.values():
            lane.sent_at = time.perf_counter_ns()
            lane.send(next(lane.frames))
        empty = self._run(took_ns, began + int(seconds * 1e9), answers_max)
        took = (time.perf_counter_ns() - began) / 1e9
        if not took_ns:
            raise TimeoutError(f"no answer in {took:.1f} s")
        busy_s = time.process_time() - cpu_began - empty * self._look_s
        took_ns.sort()
        return {
            "answers": len(took_ns),
            "seconds": took,
            "per_second": len(took_ns) / took,
            "p50_ms": percentile(took_ns, 0.5) / 1e6,
            "p99_ms": percentile(took_ns, 0.99) / 1e6,
            "generator_cpu_share": max(0.0, busy_s) / took,
        }

    def _run(self, took_ns: list[int], end: int, answers_max: int) -> int:
        """Run the load; return the number of empty polls. Name lookups are avoided for speed."""
        # One reused buffer: allocating a megabyte per response would cost more than the response.
        into = bytearray(1 << 20)
        by_number, poll, timeout = self._by_number, self._poll.poll, self._timeout
        clock, took, says = time.perf_counter_ns, took_ns.append, into.startswith
        limit = answers_max or sys.maxsize
        empty = 0
        now = last = clock()
        while now < end or answers_max:
            ready = poll(timeout)
            now = clock()
            if not ready:
                empty += 1
                if now - last > _PATIENCE_S * 1e9:
                    raise TimeoutError(f"no answer in {_PATIENCE_S} s")
                continue
            last = now
            for number, _ in ready:
                lane = by_number[number]
                received = lane.receive(into)
                lane.missing -= received
                if lane.missing > 0:
                    if not received:
                        raise ConnectionError("the broker closed a connection")
                    continue
                if lane.answer is not None and not says(lane.answer, _HEAD):
                    raise ValueError(f"another answer than expected: {into[:received].hex()}")
                now = clock()
                took(now - lane.sent_at)
                if len(took_ns) >= limit:
                    return empty
                lane.missing = lane.answer_size
                lane.sent_at = now
                lane.send(next(lane.frames))
        return empty


if __name__ == "__main__":
    main()
