"""A small HTTP server on the node's event loop, for the metrics page and the control operations.

A connection carries one request. Sizes, times and the number of connections are bounded. A request
for an unknown host name is refused, which prevents DNS rebinding by other web sites.
"""

import asyncio
import contextlib
import re
import socket
from collections.abc import Callable
from typing import Final, TypeAlias, cast

from kohort.settings.hosts import AllowedHosts
from kohort.types import value

_HEAD_BYTES_MAX: Final = 8192
"""The request line and the headers. Prometheus sends about 400 bytes."""

SECONDS_MAX: Final = 10.0
"""For sending the request, and for reading the response."""

_END_OF_HEAD: Final = b"\r\n\r\n"


class HttpRefusal(Exception):
    """The request gets this error response."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@value
class HttpRequest:
    method: str
    path: str
    query: str
    headers: dict[str, list[str]]
    """By lower-case name."""
    body: bytes

    def find_header(self, name: str) -> str | None:
        """The value of a header that is given once."""
        given = self.headers.get(name, [])
        return given[0] if len(given) == 1 else None


@value
class HttpServerLimits:
    connections_max: int
    """A further one replaces the one whose request has been incomplete for longest, so that
    half-sent requests cannot keep other clients out."""
    body_bytes_max: int = 0
    seconds_max: float = SECONDS_MAX


Handler: TypeAlias = Callable[["HttpConnection", HttpRequest], None]
"""Handles a complete request; it calls `respond` now or later."""


class HttpServer:
    """Serves requests under these host names. `purpose` is for the refusal of other names."""

    def __init__(
        self, hosts: AllowedHosts, limits: HttpServerLimits, handle: Handler, *, purpose: str
    ) -> None:
        self.hosts = hosts
        self.limits = limits
        self.handle = handle
        self.purpose = purpose
        self.connections: dict[HttpConnection, None] = {}
        """In the order in which they were accepted."""

    async def start(self, host: str, port: int) -> int:
        """Return the port; port 0 selects a free one."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: HttpConnection(self, loop), host, port)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    @property
    def bound_hosts(self) -> list[str]:
        """The addresses of the listening sockets."""
        return [each.getsockname()[0] for each in self._server.sockets]

    def accept(self, connection: "HttpConnection") -> None:
        if len(self.connections) >= self.limits.connections_max:
            waiting = (each for each in self.connections if each.is_waiting)
            next(waiting, connection).abort()
        self.connections[connection] = None

    def stop(self) -> None:
        for listener in self._server.sockets:
            # Closing alone has no effect while a forked child has a copy of the socket.
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for each in tuple(self.connections):
            each.abort()


class HttpConnection(asyncio.Protocol):
    """One HTTP connection, which carries one request."""

    def __init__(self, server: HttpServer, loop: asyncio.AbstractEventLoop) -> None:
        self._server = server
        self._loop = loop
        self._received = b""
        self._has_request = False
        self.on_lost: Callable[[], object] | None = None
        """Called when the client disconnects, or the connection is closed."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._arm()
        self._server.accept(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # asyncio's name
        self._deadline.cancel()
        self._server.connections.pop(self, None)
        if self.on_lost is not None:
            self.on_lost()

    @property
    def is_waiting(self) -> bool:
        """Whether its request is incomplete."""
        return not self._has_request and not self.is_closing

    @property
    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def data_received(self, data: bytes) -> None:
        if self._has_request:
            return
        self._received += data
        head, separator, body = self._received.partition(_END_OF_HEAD)
        if not separator and len(head) > _HEAD_BYTES_MAX:
            self.abort()
            return
        if not separator:
            return
        try:
            request = self._find_request(head, body)
            if request is not None:
                self._has_request = True
                self._received = b""
                self._server.handle(self, request)
        except HttpRefusal as refusal:
            self._has_request = True
            self.respond(refusal.status, "text/plain", f"{refusal}\n".encode())

    def _find_request(self, head: bytes, body: bytes) -> HttpRequest | None:
        """Return None while a part of the body is missing."""
        if len(head) > _HEAD_BYTES_MAX:
            raise HttpRefusal("431 Request Header Fields Too Large", "the headers are too large")
        lines = head.decode("latin-1").split("\r\n")
        method, target, *_ = (*lines[0].split(maxsplit=2), "", "")
        path, _, query = target.partition("?")
        headers = _read_headers(lines[1:])
        request = HttpRequest(method=method, path=path, query=query, headers=headers, body=body)
        self._check_host(request)
        length = self._read_length(request)
        if len(body) < length:
            return None
        return HttpRequest(
            method=method, path=path, query=query, headers=headers, body=body[:length]
        )

    def _check_host(self, request: HttpRequest) -> None:
        host = request.find_header("host")
        connected_to: str = self._transport.get_extra_info("sockname")[0]
        if host is None or not self._server.hosts.allows(host, connected_to):
            raise HttpRefusal(
                "421 Misdirected Request",
                f"{self._server.purpose} not served under this host name: allow it with"
                " --allowed-host",
            )

    def _read_length(self, request: HttpRequest) -> int:
        if "transfer-encoding" in request.headers:
            raise HttpRefusal("411 Length Required", "send the body with a Content-Length")
        if "content-length" not in request.headers:
            return 0
        given = request.find_header("content-length") or ""
        if re.fullmatch("[0-9]{1,18}", given) is None:
            raise HttpRefusal("400 Bad Request", f"Content-Length {given!r} is not a number")
        if int(given) > self._server.limits.body_bytes_max:
            raise HttpRefusal(
                "413 Content Too Large",
                f"a body of {given} bytes: the maximum is {self._server.limits.body_bytes_max}",
            )
        return int(given)

    def abort(self) -> None:
        self._transport.abort()

    def wait(self) -> None:
        """The response may take long: from now on only the client ends the connection."""
        self._deadline.cancel()

    def respond(self, status: str, content_type: str, body: bytes) -> None:
        """Send the response and close. The client has some time to read it."""
        self._deadline.cancel()
        self._arm()
        self._transport.write(_response(status, content_type, body))
        self._transport.close()

    def _arm(self) -> None:
        self._deadline = self._loop.call_later(self._server.limits.seconds_max, self.abort)


def _read_headers(lines: list[str]) -> dict[str, list[str]]:
    headers: dict[str, list[str]] = {}
    for line in lines:
        name, separator, text = line.partition(":")
        if separator:
            headers.setdefault(name.lower(), []).append(text.strip(" \t"))
    return headers


def _response(status: str, content_type: str, body: bytes) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n"
        "X-Content-Type-Options: nosniff\r\n\r\n"
    )
    return head.encode() + body
