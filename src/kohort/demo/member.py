"""One program of the shop, a process of its own: so it can be killed and frozen in earnest.

    python -m kohort.demo.member '{"group.id": ...}' TOPIC

It hears orders on standard input, one in a line; when that ends, whoever started it is gone, and it
goes too. On standard output it says how many records it was given.
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
"""Followed by how many milliseconds."""

_POLL_MS: Final = 200
_TELL_S: Final = 0.5
_CLOSE_MS: Final = 3_000


def main(options: str, topic: str) -> None:
    orders: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=(orders,), name="orders", daemon=True).start()
    consumer = Consumer(json.loads(options))
    try:
        consumer.subscribe([topic])
        _work(consumer, orders)
    finally:
        consumer.close(_CLOSE_MS)


def _listen(orders: SimpleQueue[str]) -> None:
    for line in sys.stdin:
        orders.put(line.strip())
    orders.put(LEAVE)


def _work(consumer: Consumer, orders: SimpleQueue[str]) -> None:
    count, told, tell_at = 0, 0, 0.0
    while _hear(orders) != LEAVE:
        count += sum(map(len, consumer.poll(_POLL_MS).values()))
        if count > told and time.monotonic() >= tell_at:
            _tell(count)
            told, tell_at = count, time.monotonic() + _TELL_S
    _tell(count)


def _hear(orders: SimpleQueue[str], wait_s: float = 0.0) -> str | None:
    """The next order; a stall is carried out here, and ends early when it is told to leave."""
    try:
        heard = orders.get(timeout=wait_s) if wait_s else orders.get_nowait()
    except Empty:
        return None
    word, _, given = heard.partition(" ")
    if word == STALL:
        return _hear(orders, int(given) / 1_000)
    return word


def _tell(count: int) -> None:
    sys.stdout.write(json.dumps({"records": count}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
