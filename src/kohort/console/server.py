"""Runs the console on its own thread until it is stopped.

with Console("localhost:9092", listen="127.0.0.1:0") as console:
    webbrowser.open(console.url)
"""

import os
import socket
import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Final, Self

import uvicorn

from kohort.admin.cluster_connection import open_cluster
from kohort.admin.errors import InvalidRequest
from kohort.admin.group_monitor import start_monitor
from kohort.console import security
from kohort.console.app import App
from kohort.console.findings import FindingsStore
from kohort.console.limited_protocol import DEFAULT_LIMITS, HttpLimits, limited_protocol
from kohort.console.page import ConsoleContext
from kohort.protocol.own_address import find_own_address
from kohort.settings.hosts import (
    AllowedHosts,
    check_host,
    format_address,
    is_loopback,
    is_wildcard,
    read_allowed_hosts,
)
from kohort.settings.readers import BadValue, read_address
from kohort.types import Millis

DEFAULT_LISTEN: Final = "127.0.0.1:8080"

_TIMEOUT_MS: Final = Millis(10_000)
"""How long a page waits for the cluster."""


_GRACE_S: Final = 3
_BACKLOG: Final = 128


class CannotListen(Exception):
    """Cannot listen on the address; the message is one sentence."""


class Console:
    """Binds its address in the constructor; serves from `start` to `stop`."""

    def __init__(
        self,
        bootstrap: str,
        *,
        listen: str = DEFAULT_LISTEN,
        token: str | None = None,
        allowed_hosts: Iterable[str] = (),
        forensics: str | None = None,
        options: Mapping[str, str] | None = None,
        limits: HttpLimits = DEFAULT_LIMITS,
    ) -> None:
        """`bootstrap` may be set later, before `start`; `options` are those of `open_cluster`.

        The console answers to the names in `allowed_hosts`: HOST, or https://HOST behind a TLS
        proxy. The listening address and loopback names are always allowed.
        """
        self.bootstrap = bootstrap
        self._options = options or {}
        self._findings = None if forensics is None else FindingsStore(forensics)
        host, port = read_listen(listen)
        self.guard = security.make_guard(host, token, _read_allowed(allowed_hosts))
        self._limits = limits
        self._socket = _bind(host, port)
        bound, port = self._socket.getsockname()[:2]
        shown = find_own_address(is_ipv6=":" in bound) if is_wildcard(bound) else host
        self.url = f"http://{format_address(shown, port)}"
        self.is_exposed = not is_loopback(bound)
        """Whether other machines may be able to open it."""
        self._stopping = threading.Event()
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def token(self) -> str | None:
        """The token that changes require; None if they require none."""
        return self.guard.token

    def allow_host(self, host: str) -> None:
        """Answer to this name too. Call it before `start`."""
        self.guard = replace(self.guard, hosts=self.guard.hosts.including(host))

    def start(self) -> Self:
        """Raises AdminError if the cluster is unreachable."""
        try:
            self._cluster = open_cluster(
                self.bootstrap, options=self._options, timeout_ms=_TIMEOUT_MS
            )
        except BaseException:
            self._socket.close()
            raise
        self._monitor = start_monitor(self._cluster)
        context = ConsoleContext(
            cluster=self._cluster, monitor=self._monitor, findings=self._findings
        )
        config = uvicorn.Config(
            App(context, self.guard, self._stopping.is_set).asgi(),
            http=limited_protocol(self._limits),
            loop="asyncio",
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            # Not a line per malformed request, which anyone can send.
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_GRACE_S,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="kohort-console", daemon=True
        )
        self._thread.start()
        return self

    def stop(self) -> None:
        """Open pages show that the console is unreachable, and reconnect later."""
        self._stopping.set()
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join()
            self._server = self._thread = None
            self._monitor.close()
            self._cluster.close()
        self._socket.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


def read_listen(text: str) -> tuple[str, int]:
    """Raises InvalidRequest if it is not HOST:PORT."""
    try:
        host, port = read_address(text, port_min=0)
        if ":" in host:
            check_host(host)
    except ValueError as error:
        raise InvalidRequest(f"invalid listen address: {error}") from None
    return host, port


def _read_allowed(texts: Iterable[str]) -> AllowedHosts:
    try:
        return read_allowed_hosts(texts)
    except BadValue as error:
        raise InvalidRequest(str(error)) from None


def _bind(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as error:
        raise CannotListen(
            f"cannot listen on {format_address(host, port)}: {_reason(error)}"
        ) from None
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(_BACKLOG)
    except OSError as error:
        bound.close()
        raise CannotListen(
            f"cannot listen on {format_address(host, port)}: {_reason(error)}"
        ) from None
    return bound


def _reason(error: OSError) -> str:
    is_dns_error = isinstance(error, socket.gaierror) or error.errno is None
    return (error.strerror or str(error)) if is_dns_error else os.strerror(error.errno or 0)
