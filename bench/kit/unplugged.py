"""A node without sockets, loop or syncs: frames go in, bytes come out, all in this process.

What a request costs here is the node's own Python and nothing else.
"""

import asyncio
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

from kohort.log.catalog import Catalog
from kohort.node import dispatch
from kohort.node.broker import Broker
from kohort.node.clock import SystemClock
from kohort.node.config import Settings
from kohort.node.connection import Connection
from kohort.node.metrics import Figures
from kohort.node.request import Request
from kohort.node.topics import Topics
from kohort.types import Millis
from kohort.wire.envelope import decode_response, encode_request
from kohort.wire.schema import schema_of


class Unplugged(asyncio.Transport):
    """A node, and the one connection to it: its hub and its transport."""

    request_max_bytes = 1 << 20
    inflight_max = 100

    def __init__(self, directory: Path) -> None:
        super().__init__()
        settings = Settings({"group.initial.rebalance.delay.ms": "0", "num.partitions": "10"})
        self._clock = SystemClock()
        now = self._clock.now
        self._catalog, _ = Catalog.open(directory, now(), settings.topic_defaults())
        self._soon: list[Callable[[], None]] = []
        topics = Topics(self._catalog, settings)
        self._broker = Broker(settings, topics, None, call_soon=self._soon.append)
        for _ in self._broker.load_groups(now):
            pass
        self._written: Any = b""
        self._connection = Connection(self)
        self._connection.connection_made(self)

    def ask(self, body: object, version: int) -> Any:
        api_key = schema_of(type(body)).api_key
        assert api_key is not None
        self._receive(encode_request(body, version, 1, "bench"))
        # A join without a delay is answered as soon as somebody looks at the clock.
        self._broker.fire_due(Millis(self._clock.now() + 1))
        return decode_response(self._written[4:], api_key, version)[1]

    def repeat(self, frames: list[bytes]) -> Any:
        """A call that asks the next of these frames, over and over."""
        source = cycle(frames)
        ask = self._receive
        return lambda: ask(next(source))

    def _receive(self, frame: bytes) -> None:
        """One turn of the loop that is not here."""
        self._connection.data_received(frame)
        while self._soon:
            self._soon.pop()()

    def close(self) -> None:
        self._catalog.close(self._clock.now())

    # As the connection's transport

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 1) if name == "peername" else default

    def write(self, data: Any) -> None:
        self._written = data

    def is_closing(self) -> bool:
        return False

    # As its hub

    @property
    def figures(self) -> Figures:
        return self._broker.figures

    def handle(self, request: Request) -> None:
        dispatch.handle(self._broker, request, self._clock.now())

    def handle_unsupported(self, frame: bytes) -> bytes | None:
        return dispatch.answer_unsupported(frame)

    def joined(self, connection: Connection) -> bool:  # noqa: ARG002  # it is the only one
        return True

    def left(self, connection: Connection) -> None:
        """It never does."""
