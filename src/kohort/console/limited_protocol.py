"""HTTP connections with limits, so that clients which send nothing or half a request, or which do
not read their response, cannot block the console for others.
"""

import asyncio
from typing import Any, Final, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from kohort.types import value


@value
class HttpLimits:
    connections_max: int = 512
    """Protects file descriptors. A further connection replaces the one that has been waiting for a
    request for longest; if there is none, it is refused."""
    head_s: float = 10.0
    """For the request line and the headers."""
    body_s: float = 30.0
    """For the body of a request, which has at most a few megabytes."""
    unread_s: float = 30.0
    """How long a client may not read its response."""


DEFAULT_LIMITS: Final = HttpLimits()


def limited_protocol(limits: HttpLimits) -> type[asyncio.Protocol]:
    """The class that uvicorn makes an instance of for each connection."""

    class LimitedProtocol(_LimitedProtocol):
        http_limits = limits

    return LimitedProtocol


class _LimitedProtocol(H11Protocol):
    http_limits = DEFAULT_LIMITS

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.waiting_since: float | None = None
        """Since when the client has to send something; None while its request is answered."""
        self._awaited: Any = None
        self._request_timer: asyncio.TimerHandle | None = None
        self._response_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast(asyncio.Transport, transport)
        if len(self.connections) >= self.http_limits.connections_max:
            self._make_room(transport)
        super().connection_made(transport)
        self._expect()

    def _make_room(self, transport: asyncio.Transport) -> None:
        waiting = [
            (each.waiting_since, id(each), each)
            for each in self.connections
            if isinstance(each, _LimitedProtocol)
            and each.waiting_since is not None
            and not each.transport.is_closing()
        ]
        (min(waiting)[2].transport if waiting else transport).abort()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._request_timer, self._response_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._expect()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._expect()

    def _expect(self) -> None:
        """Limit the time for the head or the body, whichever the client has to send."""
        state = self.conn.their_state
        if state is self._awaited:
            return
        self._awaited = state
        if self._request_timer is not None:
            self._request_timer.cancel()
            self._request_timer = None
        limits = {h11.IDLE: self.http_limits.head_s, h11.SEND_BODY: self.http_limits.body_s}
        seconds = limits.get(state)
        self.waiting_since = None
        if seconds is not None:
            self.waiting_since = self.loop.time()
            self._request_timer = self.loop.call_later(seconds, self.transport.abort)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._response_timer = self.loop.call_later(self.http_limits.unread_s, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._response_timer is not None:
            self._response_timer.cancel()
            self._response_timer = None
