"""A load generator in a process of its own: ready-made frames, sent again as soon as answered.

It reads a plan from standard input, one connection a line: the frame in hex and the size of its
answer. It decodes nothing, so that it is not the bottleneck; how busy it was is in its report.
"""

import json
import os
import select
import socket
import sys
import time
from dataclasses import dataclass


@dataclass(slots=True)
class Lane:
    """One connection: its frame, how large each answer is, and how much of one is still to come."""

    socket: socket.socket
    frame: bytes
    answer_size: int
    missing: int


def main() -> None:
    host, port, seconds, core = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
    if core != "-":
        os.sched_setaffinity(0, {int(core)})
    lanes = [_connect(host, port, *line.split()) for line in sys.stdin if line.strip()]
    sys.stdout.write(json.dumps(_drive(lanes, seconds)) + "\n")


def _connect(host: str, port: int, frame: str, answer_size: str) -> Lane:
    connection = socket.create_connection((host, port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Lane(connection, bytes.fromhex(frame), int(answer_size), int(answer_size))


def _drive(lanes: list[Lane], seconds: float) -> dict[str, float]:
    poll = select.epoll()
    by_number = {}
    for lane in lanes:
        poll.register(lane.socket.fileno(), select.EPOLLIN)
        by_number[lane.socket.fileno()] = lane
        lane.socket.sendall(lane.frame)
    answers = 0
    began, cpu_began = time.perf_counter(), time.process_time()
    end = began + seconds
    while time.perf_counter() < end:
        for number, _ in poll.poll(1):
            lane = by_number[number]
            received = len(lane.socket.recv(1 << 20))
            if not received:
                raise ConnectionError("the node closed a connection")
            lane.missing -= received
            if lane.missing <= 0:
                answers += 1
                lane.missing = lane.answer_size
                lane.socket.sendall(lane.frame)
    took = time.perf_counter() - began
    return {
        "answers": answers,
        "seconds": took,
        "per_second": answers / took,
        "generator_cpu_share": (time.process_time() - cpu_began) / took,
    }


if __name__ == "__main__":
    main()
