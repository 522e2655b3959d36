"""A node without sockets, threads and syncs: frames go in, bytes come out, in this process.

The cost of a request here is that of the node's own Python code.
"""

from itertools import cycle
from pathlib import Path
from typing import Any

from kohort.log.catalog import Catalog
from kohort.node.broker import Broker
from kohort.node.clock import SystemClock
from kohort.node.config import BrokerConfig
from kohort.node.connection import Connection
from kohort.node.loop import NodeLoop
from kohort.node.topics import Topics
from kohort.wire.envelope import decode_response, encode_request
from kohort.wire.schema import schema_of


class Unplugged:
    """A node, and one connection to it or several: it is their network and their transport."""

    def __init__(self, directory: Path) -> None:
        settings = BrokerConfig({"group.initial.rebalance.delay.ms": "0", "num.partitions": "10"})
        self._clock = SystemClock()
        now = self._clock.now
        self._catalog, _ = Catalog.open(directory, now(), settings.topic_defaults())
        broker = Broker(settings, Topics(self._catalog, settings), None)
        self._loop = NodeLoop(broker, self, self._clock)
        self._loop.start()
        while not self._loop.is_loaded:
            self._loop.load()
        self._written: Any = b""
        self._connection = self._connect(1)

    def ask(self, body: object, version: int) -> Any:
        api_key = schema_of(type(body)).api_key
        assert api_key is not None
        self._written = b""
        self._receive(encode_request(body, version, 1, "bench"))
        # A join without a delay is answered when its timer fires.
        while not self._written:
            self._loop.timers_due()
            self._loop.iterate()
        return decode_response(self._written[4:], api_key, version)[1]

    def repeat(self, frames: list[bytes]) -> Any:
        """A call that sends the next of these frames."""
        source = cycle(frames)
        ask = self._receive
        return lambda: ask(next(source))

    def repeat_on_each(self, turns: list[list[bytes]]) -> Any:
        """A call that sends one frame on each of several connections, in one iteration."""
        connections = [self._connect(number) for number in range(2, 2 + len(turns[0]))]
        source = cycle(turns)

        def ask() -> None:
            for connection, frame in zip(connections, next(source), strict=True):
                connection.feed(frame)
            self._loop.iterate(connections)

        return ask

    def _connect(self, port: int) -> Connection:
        connection = self._loop.connect(self, "127.0.0.1", port)
        assert connection is not None
        return connection

    def _receive(self, frame: bytes) -> None:
        """Run one event-loop iteration."""
        connection = self._connection
        connection.feed(frame)
        self._loop.iterate((connection,))

    def close(self) -> None:
        self._catalog.close(self._clock.now())

    # As the loop's network

    def send(self) -> None: ...

    # As the connection's transport

    def write(self, data: Any) -> None:
        self._written = data

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def is_closing(self) -> bool:
        return False

    def abort(self) -> None:
        raise AssertionError("the node has closed the connection")
