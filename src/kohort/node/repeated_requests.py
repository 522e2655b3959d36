"""Fast path for requests that a client sends repeatedly.

Nothing is decided here. A request that this class finds is the one that decoding the frame would
have given; `tests/node/test_repeated_requests.py` compares both. Two forms are recognised: the
bytes of the last request with another correlation id (heartbeats), and a frame that differs from
an earlier one in fixed-width numbers only (commits, see `repeated_commits`).
"""

from typing import Final

from kohort.node.request import Request, RequestTemplate, Responder

_FRAME_BYTES_MAX: Final = 4096
"""The largest remembered frame; bounds the memory of a connection."""


class RepeatedRequests:
    """Recognises frames that resemble earlier requests of a connection."""

    __slots__ = ("_last", "_last_rest", "_last_start", "template")

    def __init__(self) -> None:
        self._last: Request | None = None
        self._last_start = self._last_rest = b""
        self.template: RequestTemplate | None = None

    def find(self, frame: bytes, received_at: float) -> Request | None:
        """Return the last request again, if the frame differs only in the correlation id.

        The connection must have sent the last response: the request object is reused.
        """
        last = self._last
        if last is None or frame[8:] != self._last_rest or frame[:4] != self._last_start:
            return None
        last.is_answered = False
        last.correlation_id = frame[4:8]
        last.received_at = received_at
        return last

    def read(
        self, frame: bytes, client_host: str, connection: Responder, received_at: float
    ) -> Request | None:
        """Return a request that differs from an earlier one only in its numbers."""
        template = self.template
        body = None if template is None else template.read(frame)
        if template is None or body is None:
            return None
        request = Request(template.header, body, client_host, connection, received_at)
        request.correlation_id = frame[4:8]
        return request

    def learn(self, request: Request, frame: bytes) -> None:
        """Remember a request that was just handled, if its handler made a template or a memo."""
        if len(frame) > _FRAME_BYTES_MAX:
            return
        self.template = request.template
        if request.memo is not None and request.is_answered:
            self._last = request
            self._last_start = frame[:4]
            self._last_rest = frame[8:]
