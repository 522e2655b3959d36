"""A load generator in a process of its own: ready-made frames, sent again as soon as answered.

It reads a plan from standard input, one connection a line: the size of an answer, and the frames
in hex that are sent in turn. It decodes nothing, so that it is not the bottleneck; how busy it was
is in its report.
"""

import json
import os
import select
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle


@dataclass(slots=True)
class Lane:
    """One connection: its frames, the size of an answer, and how much of one is still to come."""

    socket: socket.socket
    frames: Iterator[bytes]
    answer_size: int
    missing: int


def main() -> None:
    host, port, seconds, core = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
    if core != "-":
        os.sched_setaffinity(0, {int(core)})
    lanes = [_connect(host, port, *line.split()) for line in sys.stdin if line.strip()]
    sys.stdout.write(json.dumps(_drive(lanes, seconds)) + "\n")


def _connect(host: str, port: int, answer_size: str, *frames: str) -> Lane:
    connection = socket.create_connection((host, port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Lane(connection, cycle(map(bytes.fromhex, frames)), int(answer_size), int(answer_size))


def _drive(lanes: list[Lane], seconds: float) -> dict[str, float]:
    poll = select.epoll()
    by_number = {}
    # Received into one place: a fresh megabyte for each answer would cost more than the answer.
    into = bytearray(1 << 20)
    for lane in lanes:
        poll.register(lane.socket.fileno(), select.EPOLLIN)
        by_number[lane.socket.fileno()] = lane
        lane.socket.sendall(next(lane.frames))
    answers = 0
    began, cpu_began = time.perf_counter(), time.process_time()
    end = began + seconds
    while time.perf_counter() < end:
        # It never sleeps: to wake it for every answer would be charged to the node.
        for number, _ in poll.poll(0):
            lane = by_number[number]
            received = lane.socket.recv_into(into)
            if not received:
                raise ConnectionError("the node closed a connection")
            lane.missing -= received
            if lane.missing <= 0:
                answers += 1
                lane.missing = lane.answer_size
                lane.socket.sendall(next(lane.frames))
    took = time.perf_counter() - began
    return {
        "answers": answers,
        "seconds": took,
        "per_second": answers / took,
        "generator_cpu_share": (time.process_time() - cpu_began) / took,
    }


if __name__ == "__main__":
    main()
