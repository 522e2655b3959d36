"""Drives one session for a caller that waits for each response. One thread at a time.

It does not retry; callers handle routing and retries. Deadlines are times of `monotonic_ms`.
"""

import socket
import time
from typing import Any

from kohort.protocol.dns import resolve
from kohort.protocol.errors import ConnectFailed, ProtocolError, RequestTimedOut
from kohort.protocol.session import Completed, PendingRequest, Session
from kohort.protocol.sockets import (
    Address,
    ConnectionSettings,
    ResolvedAddress,
    open_socket,
    reason_of,
)
from kohort.types import Millis


def monotonic_ms() -> Millis:
    return Millis(time.monotonic_ns() // 1_000_000)


class BlockingConnection:
    def __init__(self, address: Address, settings: ConnectionSettings, deadline: Millis) -> None:
        """Unreachable if the session is not ready by the deadline or within the setup timeout."""
        ready_by = Millis(min(deadline, monotonic_ms() + settings.setup_timeout_ms))
        self._session = Session(
            settings.client_id, ready_by=ready_by, response_bytes_max=settings.response_bytes_max
        )
        self._socket = self._connect(resolve(address), settings, ready_by)
        try:
            self._session.connected()
            while not self._session.is_ready:
                self._exchange(ready_by)
        except BaseException:
            self.close()
            raise

    def request(self, body: object, deadline: Millis, *, version_max: int | None = None) -> Any:
        """The response. Only after RequestNotSent can the connection be used again."""
        request = PendingRequest(body=body, deadline=deadline, version_max=version_max)
        self._session.send(request)
        while True:
            for completed, response in self._exchange(deadline):
                if completed is request:
                    return response

    def close(self) -> None:
        self._session.close()
        self._socket.close()

    def _connect(
        self, addresses: list[ResolvedAddress], settings: ConnectionSettings, ready_by: Millis
    ) -> socket.socket:
        error: ProtocolError = ConnectFailed("the host name has no address")
        for address in addresses:
            opened = open_socket(address, settings)
            try:
                opened.settimeout(_seconds_until(ready_by))
                opened.connect(address[4])
            except TimeoutError:
                error = ConnectFailed("connecting timed out")
            except OSError as failure:
                error = ConnectFailed(reason_of(failure))
            else:
                return opened
            opened.close()
        raise error

    def _exchange(self, deadline: Millis) -> list[Completed]:
        """Send all outgoing bytes, then receive once."""
        session = self._session
        try:
            self._socket.settimeout(_seconds_until(deadline))
            if session.outgoing:
                self._socket.sendall(session.outgoing)
                session.outgoing.clear()
            with session.receive_space() as space:
                count = self._socket.recv_into(space)
        except TimeoutError:
            if session.is_ready:
                raise RequestTimedOut("no response in time") from None
            raise session.failure("timed out") from None
        except OSError as error:
            raise session.failure(reason_of(error)) from None
        return list(session.received(count))


def _seconds_until(deadline: Millis) -> float:
    """A socket timeout, which must not be 0: that means non-blocking."""
    left_ms = deadline - monotonic_ms()
    if left_ms <= 0:
        raise TimeoutError
    return left_ms / 1000
