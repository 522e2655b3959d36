"""Drives sessions with many brokers on one thread: connects on demand, and reconnects with backoff.

Only `wake` may be called from other threads. A broker that failed is left alone for a while,
longer after each failure; requests for it wait until then.
"""

import os
import selectors
import socket
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from typing import Any, TypeAlias

from kohort.protocol.backoff import Backoff
from kohort.protocol.dns import Resolver
from kohort.protocol.errors import Disconnected, ProtocolError, RequestNotSent, RequestTimedOut
from kohort.protocol.session import Completed, PendingRequest, Session, SessionState
from kohort.protocol.sockets import (
    Address,
    ConnectionSettings,
    ResolvedAddress,
    open_socket,
    reason_of,
)
from kohort.types import Millis

Result: TypeAlias = tuple[Any, Any]
"""The context of a request, with its response or with the ProtocolError that it failed with."""

_Key: TypeAlias = tuple[Address, Hashable]


class _Connection:
    """A session on a non-blocking socket."""

    def __init__(
        self, addresses: list[ResolvedAddress], settings: ConnectionSettings, now: Millis
    ) -> None:
        """`addresses` are those of one host name, tried in order."""
        self._settings = settings
        self._addresses = deque(addresses)
        self._used_at = now
        self.session = Session(
            settings.client_id,
            ready_by=Millis(now + settings.setup_timeout_ms),
            response_bytes_max=settings.response_bytes_max,
        )
        self.socket = self._connect()

    def _connect(self) -> socket.socket:
        """Begin to connect to the next address."""
        reason = "the host name has no address"
        while self._addresses:
            address = self._addresses.popleft()
            opened = open_socket(address, self._settings)
            opened.settimeout(0)
            try:
                opened.connect(address[4])
            except BlockingIOError:
                return opened
            except OSError as error:
                opened.close()
                reason = reason_of(error)
            else:
                return opened
        raise self.session.failure(reason)

    def try_next_address(self) -> bool:
        """Whether the host name has another address, which is tried now."""
        if self.session.state is not SessionState.CONNECTING or not self._addresses:
            return False
        self.socket.close()
        self.socket = self._connect()
        return True

    @property
    def wants_to_write(self) -> bool:
        return self.session.state is SessionState.CONNECTING or bool(self.session.outgoing)

    def idle_at(self, max_idle_ms: Millis) -> Millis:
        return Millis(self._used_at + max_idle_ms)

    def send(self, request: PendingRequest, now: Millis) -> None:
        self._used_at = now
        self.session.send(request)
        if self.session.is_ready:
            self.flush()

    def on_writable(self) -> None:
        if self.session.state is SessionState.CONNECTING:
            code = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                raise self.session.failure(os.strerror(code))
            self.session.connected()
        self.flush()

    def flush(self) -> None:
        outgoing = self.session.outgoing
        if not outgoing:
            return
        try:
            written = self.socket.send(outgoing)
        except BlockingIOError:
            return
        except OSError as error:
            raise self.session.failure(reason_of(error)) from None
        del outgoing[:written]

    def on_readable(self, now: Millis) -> Iterator[Completed]:
        try:
            with self.session.receive_space() as space:
                count = self.socket.recv_into(space)
        except BlockingIOError:
            return
        except OSError as error:
            raise self.session.failure(reason_of(error)) from None
        self._used_at = now
        yield from self.session.received(count)


class NetworkClient:
    """Connections to any number of brokers; `lane` distinguishes connections to the same broker."""

    def __init__(
        self,
        settings: ConnectionSettings,
        *,
        max_idle_ms: Millis,
        reconnect_backoff: Backoff,
        addresses: Callable[[], list[Address]],
        any_lane: Hashable,
        on_failure: Callable[[Address, str], None],
    ) -> None:
        """`addresses` returns all known brokers, the preferred first, for requests to any broker.

        Such requests prefer a broker that is connected in `any_lane`. `on_failure` is called for
        the first failure of a broker since it was last connected.
        """
        self._settings = settings
        self._max_idle_ms = max_idle_ms
        self._backoff = reconnect_backoff
        self._known_addresses = addresses
        self._any_lane = any_lane
        self._on_failure = on_failure
        self._connections: dict[_Key, _Connection] = {}
        self._held: dict[_Key, list[PendingRequest]] = defaultdict(list)
        """Requests that wait for a lookup, or until their broker may be tried again."""
        self._failures: dict[Address, int] = {}
        self._not_before: dict[Address, Millis] = {}
        self._results: list[Result] = []
        self._resolver = Resolver(self.wake)
        self._selector = selectors.DefaultSelector()
        self._wake_receiver, self._wake_sender = socket.socketpair()
        self._wake_receiver.settimeout(0)
        self._wake_sender.settimeout(0)
        self._selector.register(self._wake_receiver, selectors.EVENT_READ, None)

    def wake(self) -> None:
        """End the current `wait`, or the next one. Any thread may call it."""
        with suppress(OSError):  # the buffer is full, so a wake-up is pending; or it is closed
            self._wake_sender.send(b"!")

    def send(
        self,
        body: object,
        now: Millis,
        *,
        address: Address | None,
        lane: Hashable,
        timeout_ms: Millis,
        context: Any,
        version_max: int | None = None,
    ) -> None:
        """To any broker if `address` is None. The result comes from `process` with `context`."""
        request = PendingRequest(
            body=body,
            deadline=Millis(now + timeout_ms),
            version_max=version_max,
            context=context,
        )
        self._dispatch((address or self._choose_address(now), lane), request, now)

    def next_deadline(self) -> Millis | None:
        deadlines = [self._deadline_of(each) for each in self._connections.values()]
        for (address, _), requests in self._held.items():
            if not self._resolver.is_pending(address):
                deadlines.append(self._not_before.get(address, Millis(0)))
            deadlines += (request.deadline for request in requests)
        return min(deadlines, default=None)

    def wait(self, timeout_ms: Millis | None) -> list[tuple[selectors.SelectorKey, int]]:
        if self._results:
            timeout_ms = Millis(0)
        return self._selector.select(None if timeout_ms is None else timeout_ms / 1000)

    def process(self, ready: list[tuple[selectors.SelectorKey, int]], now: Millis) -> list[Result]:
        """Read and write ready sockets, then handle deadlines: the requests that ended."""
        for selected, events in ready:
            if selected.data is None:
                self._clear_wake_ups()
            else:
                self._serve(selected.data, events, now)
        self._handle_deadlines(now)
        results, self._results = self._results, []
        return results

    def close(self) -> None:
        for connection in self._connections.values():
            connection.socket.close()
        self._connections.clear()
        self._selector.close()
        self._wake_receiver.close()
        self._wake_sender.close()

    # Sending

    def _choose_address(self, now: Millis) -> Address:
        """A broker that is connected, or else the one that may be tried soonest."""
        addresses = self._known_addresses()
        for address in addresses:
            connection = self._connections.get((address, self._any_lane))
            if connection is not None and connection.session.is_ready:
                return address
        return min(addresses, key=lambda address: max(now, self._not_before.get(address, 0)))

    def _dispatch(self, key: _Key, request: PendingRequest, now: Millis) -> None:
        connection = self._connections.get(key)
        if connection is None:
            try:
                connection = self._open(key, now)
            except ProtocolError as error:
                self._note_failure(key[0], error, now)
                self._fail([request, *self._held.pop(key, [])], error)
                return
            if connection is None:
                self._held[key].append(request)
                return
        try:
            connection.send(request, now)
        except RequestNotSent as error:
            self._fail([request], error)
        except ProtocolError as error:
            self._drop(key, error, now)
        else:
            self._update_events(key, connection)

    def _open(self, key: _Key, now: Millis) -> _Connection | None:
        """None while a lookup runs, or the broker may not be tried again yet."""
        if now < self._not_before.get(key[0], 0):
            return None
        addresses = self._resolver.find(key[0])
        if addresses is None:
            return None
        connection = _Connection(addresses, self._settings, now)
        self._connections[key] = connection
        self._selector.register(connection.socket, selectors.EVENT_WRITE, key)
        return connection

    def _update_events(self, key: _Key, connection: _Connection) -> None:
        events = selectors.EVENT_READ
        if connection.wants_to_write:
            events |= selectors.EVENT_WRITE
        if self._selector.get_key(connection.socket).events != events:
            self._selector.modify(connection.socket, events, key)

    # Ready sockets

    def _clear_wake_ups(self) -> None:
        with suppress(BlockingIOError):
            while self._wake_receiver.recv(1024):
                pass

    def _serve(self, key: _Key, events: int, now: Millis) -> None:
        connection = self._connections.get(key)
        if connection is None:
            return
        was_ready = connection.session.is_ready
        try:
            if events & selectors.EVENT_WRITE:
                connection.on_writable()
            if events & selectors.EVENT_READ:
                for request, response in connection.on_readable(now):
                    self._results.append((request.context, response))
                connection.flush()
        except ProtocolError as error:
            if not self._try_next_address(key, connection):
                self._drop(key, error, now)
            return
        if connection.session.is_ready and not was_ready:
            self._failures.pop(key[0], None)
            self._not_before.pop(key[0], None)
        self._update_events(key, connection)

    def _try_next_address(self, key: _Key, connection: _Connection) -> bool:
        self._unregister(connection)
        try:
            is_trying = connection.try_next_address()
        except ProtocolError:
            return False
        if is_trying:
            self._selector.register(connection.socket, selectors.EVENT_WRITE, key)
        return is_trying

    # Deadlines

    def _deadline_of(self, connection: _Connection) -> Millis:
        deadline = connection.session.next_deadline()
        return connection.idle_at(self._max_idle_ms) if deadline is None else deadline

    def _handle_deadlines(self, now: Millis) -> None:
        for key, connection in list(self._connections.items()):
            if now >= self._deadline_of(connection):
                self._expire(key, connection, now)
        for key in [key for key in self._held if self._can_open(key[0], now)]:
            for request in self._held.pop(key):
                self._dispatch(key, request, now)
        for key, requests in list(self._held.items()):
            late = [request for request in requests if now >= request.deadline]
            self._fail(late, RequestTimedOut("the broker could not be connected in time"))
            self._held[key] = [request for request in requests if request not in late]
            if not self._held[key]:
                del self._held[key]

    def _can_open(self, address: Address, now: Millis) -> bool:
        return now >= self._not_before.get(address, 0) and not self._resolver.is_pending(address)

    def _expire(self, key: _Key, connection: _Connection, now: Millis) -> None:
        try:
            late = connection.session.expired(now)
        except ProtocolError as error:
            self._drop(key, error, now)
            return
        rest = [request for request in self._close(key) if request not in late]
        if not late:
            return  # it was idle
        # Responses come in order: without this one, those that follow cannot be matched.
        timed_out = RequestTimedOut("no response in time")
        self._note_failure(key[0], timed_out, now)
        self._fail(late, timed_out)
        self._fail(rest, Disconnected("an earlier request on the connection timed out"))

    # Failures

    def _drop(self, key: _Key, error: ProtocolError, now: Millis) -> None:
        self._note_failure(key[0], error, now)
        self._fail(self._close(key), error)

    def _close(self, key: _Key) -> list[PendingRequest]:
        connection = self._connections.pop(key)
        self._unregister(connection)
        connection.socket.close()
        return connection.session.close()

    def _unregister(self, connection: _Connection) -> None:
        with suppress(KeyError):  # it may be unregistered already, by _try_next_address
            self._selector.unregister(connection.socket)

    def _fail(self, requests: list[PendingRequest], error: ProtocolError) -> None:
        self._results += ((request.context, error) for request in requests)

    def _note_failure(self, address: Address, error: ProtocolError, now: Millis) -> None:
        failures = self._failures.get(address, 0)
        if not failures:
            self._on_failure(address, str(error))
        self._failures[address] = failures + 1
        self._not_before[address] = self._backoff.after(now, failures)
