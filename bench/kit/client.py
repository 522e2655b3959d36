"""A minimal client for benchmarks: one socket, one request at a time."""

import socket
from typing import Any, Self

from kohort.wire.envelope import decode_response, encode_request
from kohort.wire.frame import FrameReader
from kohort.wire.schema import schema_of


class Client:
    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self._socket = socket.create_connection((host, port), timeout=60)
        self._reader = FrameReader()
        self._correlation_id = 0

    def ask(self, body: object, version: int) -> Any:
        self._correlation_id += 1
        api_key = schema_of(type(body)).api_key
        assert api_key is not None
        frame = self.ask_raw(encode_request(body, version, self._correlation_id, "bench"))
        return decode_response(frame, api_key, version)[1]

    def ask_raw(self, frame: bytes) -> bytes:
        """Send a prepared frame; return the response without its length."""
        self._socket.sendall(frame)
        while True:
            data = self._socket.recv(1 << 20)
            if not data:
                raise ConnectionError("the node closed the connection")
            frames = self._reader.feed(data)
            if frames:
                return frames[0]

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
