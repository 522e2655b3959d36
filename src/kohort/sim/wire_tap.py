"""Decodes group requests and responses from the bytes that enter and leave the node.

It knows only what an observer on the wire can know, in that order.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from kohort.sim.network import Link
from kohort.wire.envelope import decode_request, decode_response, peek_request
from kohort.wire.frame import FrameReader

FETCH, OFFSET_COMMIT, OFFSET_FETCH, JOIN_GROUP, HEARTBEAT, SYNC_GROUP = 1, 8, 9, 11, 12, 14

_PARKED: Final = frozenset({FETCH, JOIN_GROUP, SYNC_GROUP})
"""The node may answer these late, and later requests of their connection wait until then."""

_UNDERSTOOD: Final = frozenset({OFFSET_COMMIT, OFFSET_FETCH, JOIN_GROUP, HEARTBEAT, SYNC_GROUP})


class Exchange:
    """A request as it arrived at the node."""

    __slots__ = (
        "api_key",
        "arrived",
        "is_delayed",
        "link",
        "order",
        "request",
        "snapshot",
        "version",
    )

    def __init__(self, link: Link, order: int, api_key: int, version: int, request: Any) -> None:
        self.link = link
        self.order = order
        """The number of the request in order of arrival."""
        self.api_key = api_key
        self.version = version
        self.request = request
        self.is_delayed = False
        """It may be handled after requests of other connections that arrive later."""
        self.arrived = 0
        """When it arrived; in the time of the evictions checker."""
        self.snapshot: Any = None
        """State of its group on arrival, for a checker."""


class _Wire:
    def __init__(self) -> None:
        self.requests = FrameReader()
        self.responses = FrameReader()
        self.waiting: deque[Exchange] = deque()


class WireTap:
    def __init__(
        self,
        on_request: Callable[[Exchange], None],
        on_response: Callable[[Exchange, Any], None],
    ) -> None:
        self._on_request = on_request
        self._on_response = on_response
        self._wires: dict[Link, _Wire] = {}
        self._arrived = 0

    def received(self, link: Link, data: bytes) -> None:
        wire = self._wires.get(link)
        if wire is None:
            wire = self._wires[link] = _Wire()
        for frame in wire.requests.feed(data):
            self._arrived += 1
            api_key, version = peek_request(frame)
            request = decode_request(frame)[1] if api_key in _UNDERSTOOD else None
            exchange = Exchange(link, self._arrived, api_key, version, request)
            exchange.is_delayed = any(each.api_key in _PARKED for each in wire.waiting)
            wire.waiting.append(exchange)
            if request is not None:
                self._on_request(exchange)

    def sent(self, link: Link, data: bytes) -> None:
        wire = self._wires[link]
        for frame in wire.responses.feed(data):
            if not wire.waiting:
                # The client reports the unexpected response.
                return
            exchange = wire.waiting.popleft()
            if exchange.request is not None:
                response = decode_response(frame, exchange.api_key, exchange.version)[1]
                self._on_response(exchange, response)
