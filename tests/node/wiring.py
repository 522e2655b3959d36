"""A connection without a socket: what it writes is there to be looked at."""

import asyncio
from typing import Any

from kohort.node import dispatch
from kohort.node.connection import Connection
from kohort.node.metrics import Figures
from kohort.node.request import Request
from kohort.wire.frame import FrameReader
from tests.node.asking import Scene


class Transport(asyncio.Transport):
    """A socket that takes what it is given, and says so when it has had enough."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.is_read_from = True
        self.is_gone = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 1234) if name == "peername" else default

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def pause_reading(self) -> None:
        self.is_read_from = False

    def resume_reading(self) -> None:
        self.is_read_from = True

    def is_closing(self) -> bool:
        return self.is_gone

    def abort(self) -> None:
        self.is_gone = True


class Door:
    """Lets connections into the broker of a scene, and remembers what came through them."""

    request_max_bytes = 1_000_000
    inflight_max = 100

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self.taken: list[Request] = []

    @property
    def figures(self) -> Figures:
        return self._scene.broker.figures

    def handle(self, request: Request) -> None:
        self.taken.append(request)
        dispatch.handle(self._scene.broker, request, self._scene.now)

    def handle_unsupported(self, frame: bytes) -> bytes | None:
        return dispatch.answer_unsupported(frame)

    def joined(self, connection: Connection) -> bool:  # noqa: ARG002  # every one may
        return True

    def left(self, connection: Connection) -> None:
        """Nobody is counted."""


class Caller:
    """A client with one connection through a door."""

    def __init__(self, door: Door) -> None:
        self._transport = Transport()
        self._connection = Connection(door)
        self._connection.connection_made(self._transport)

    def ask(self, frame: bytes) -> bytes:
        """What is written in answer to a frame, if that is at once."""
        self._transport.written = b""
        self._connection.data_received(frame)
        assert not self._transport.is_gone, "hung up"
        return self._transport.written

    def frames(self) -> list[bytes]:
        """What was written since the last question, one by one."""
        return FrameReader().feed(self._transport.written)
