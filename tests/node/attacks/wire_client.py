"""A connection that sends given bytes and reads frames of any size."""

import itertools
import socket
import struct
from types import TracebackType
from typing import Any, Self

from kohort.wire.envelope import decode_response, encode_request
from kohort.wire.schema import schema_of

PATIENCE_S = 120.0
"""An answer that takes longer counts as none."""


class ConnectionLost(Exception):
    """The server has closed or refused the connection."""


class NoAnswer(Exception):
    """The server did not answer in time."""


class WireClient:
    """One connection. Its only state is the correlation id."""

    def __init__(self, port: int, patience_s: float = PATIENCE_S) -> None:
        try:
            self.socket = socket.create_connection(("127.0.0.1", port), patience_s)
        except TimeoutError as error:
            raise NoAnswer from error
        except OSError as error:
            raise ConnectionLost from error
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._numbers = itertools.count(1)

    def ask(self, body: object, version: int) -> Any:
        frame = encode(body, version, next(self._numbers))
        return decode(body, version, self.exchange(frame))

    def exchange(self, frame: bytes) -> bytes:
        """Send one frame and return the frame that answers it."""
        self.send(frame)
        return self.receive()

    def send(self, data: bytes) -> None:
        try:
            self.socket.sendall(data)
        except TimeoutError as error:
            raise NoAnswer from error
        except OSError as error:
            raise ConnectionLost from error

    def receive(self) -> bytes:
        (size,) = struct.unpack(">i", self._receive_exactly(4))
        return bytes(self._receive_exactly(size))

    def _receive_exactly(self, size: int) -> bytearray:
        data = bytearray(size)
        view, done = memoryview(data), 0
        while done < size:
            try:
                count = self.socket.recv_into(view[done:])
            except TimeoutError as error:
                raise NoAnswer from error
            except OSError as error:
                raise ConnectionLost from error
            if count == 0:
                raise ConnectionLost
            done += count
        return data

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def encode(body: object, version: int, number: int = 1) -> bytes:
    return encode_request(body, version, number, "attacks")


def decode(body: object, version: int, frame: bytes) -> Any:
    """The response to this request."""
    api_key = schema_of(type(body)).api_key
    assert api_key is not None
    return decode_response(frame, api_key, version)[1]
