"""The main program of one consumer process, so that it can be killed and suspended for real.

    python -m kohort.demo.consumer_main '{"group.id": ...}' TOPIC

It reads commands from stdin, one per line. When stdin is closed, its parent is gone, and it leaves
its group. It prints the number of records it has received to stdout.
"""

import json
import sys
import threading
import time
from queue import Empty, SimpleQueue
from typing import Final

from kohort.client.consumer import Consumer

LEAVE: Final = "leave"
STALL: Final = "stall"
"""Followed by a duration in milliseconds."""

_POLL_MS: Final = 200
_REPORT_S: Final = 0.5
_CLOSE_MS: Final = 3_000


def main(options: str, topic: str) -> None:
    commands: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_read_stdin, args=(commands,), name="commands", daemon=True).start()
    consumer = Consumer(json.loads(options))
    try:
        consumer.subscribe([topic])
        _consume(consumer, commands)
    finally:
        consumer.close(_CLOSE_MS)


def _read_stdin(commands: SimpleQueue[str]) -> None:
    for line in sys.stdin:
        commands.put(line.strip())
    commands.put(LEAVE)


def _consume(consumer: Consumer, commands: SimpleQueue[str]) -> None:
    count, reported, report_at = 0, 0, 0.0
    while _next_command(commands) != LEAVE:
        count += sum(map(len, consumer.poll(_POLL_MS).values()))
        if count > reported and time.monotonic() >= report_at:
            _report(count)
            reported, report_at = count, time.monotonic() + _REPORT_S
    _report(count)


def _next_command(commands: SimpleQueue[str], wait_s: float = 0.0) -> str | None:
    """Return the next command. A stall waits here, and ends early if the next command arrives."""
    try:
        line = commands.get(timeout=wait_s) if wait_s else commands.get_nowait()
    except Empty:
        return None
    command, _, argument = line.partition(" ")
    if command == STALL:
        return _next_command(commands, int(argument) / 1_000)
    return command


def _report(count: int) -> None:
    sys.stdout.write(json.dumps({"records": count}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
