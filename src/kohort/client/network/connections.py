"""All connections of one consumer: opens them when they are needed, and gives up what fails.

It belongs to one thread; `wake` alone may be called from others. To each broker there are up to
three connections, one for each lane. A broker that failed is left alone for a while, longer each
time, and what is sent to it meanwhile waits.
"""

import selectors
import socket
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

from kohort.client import diary
from kohort.client.backoff import Backoff
from kohort.client.errors import UnsupportedBroker
from kohort.client.member.events import Loss
from kohort.client.network.connection import Connection, Errand, Hangup
from kohort.client.network.names import Names, UnknownName
from kohort.client.network.requests import Answer, Lane, Request
from kohort.client.options import Address, Options
from kohort.types import Millis

Outcome: TypeAlias = tuple[Request, Answer]
"""An answer, a Loss, or an UnsupportedBroker where asking again is of no use."""

_Key: TypeAlias = tuple[Address, Lane]


class Network:
    def __init__(
        self,
        options: Options,
        roll: Callable[[], float],
        addresses: Callable[[], list[Address]],
    ) -> None:
        """`addresses` are where any broker may be found, the likely ones first."""
        self._options = options
        self._addresses = addresses
        self._backoff = Backoff(
            options.reconnect_backoff_ms, options.reconnect_backoff_max_ms, roll
        )
        self._connections: dict[_Key, Connection] = {}
        self._held: dict[_Key, list[Errand]] = defaultdict(list)
        self._failures: dict[Address, int] = {}
        self._not_before: dict[Address, Millis] = {}
        self._outcomes: list[Outcome] = []
        self._names = Names(self.wake)
        self._selector = selectors.DefaultSelector()
        self._alarm, self._bell = socket.socketpair()
        self._alarm.settimeout(0)
        self._bell.settimeout(0)
        self._selector.register(self._alarm, selectors.EVENT_READ, None)

    def wake(self) -> None:
        """End the wait that is under way, or the next one."""
        with suppress(OSError):  # full of calls that nobody has heard yet, or closed
            self._bell.send(b"!")

    def send(self, request: Request, now: Millis) -> None:
        errand = Errand(request=request, ends_at=Millis(now + request.timeout_ms))
        broker = request.broker
        address = self._choose(now) if broker is None else (broker.host, broker.port)
        self._carry((address, request.lane), errand, now)

    def deadline(self) -> Millis | None:
        moments = [connection.deadline() for connection in self._connections.values()]
        for (address, _), errands in self._held.items():
            if not self._names.is_pending(address):
                moments.append(self._not_before.get(address, Millis(0)))
            moments += (errand.ends_at for errand in errands)
        return min(moments, default=None)

    def wait(self, timeout_ms: Millis | None) -> list[tuple[selectors.SelectorKey, int]]:
        if self._outcomes:
            timeout_ms = Millis(0)
        return self._selector.select(None if timeout_ms is None else timeout_ms / 1000)

    def attend(self, ready: list[tuple[selectors.SelectorKey, int]], now: Millis) -> list[Outcome]:
        """Read and write what can be, and look at the clock: what has come of which request."""
        for selected, events in ready:
            if selected.data is None:
                self._hear()
            else:
                self._serve(selected.data, events, now)
        self._look_at_clock(now)
        outcomes, self._outcomes = self._outcomes, []
        return outcomes

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        self._selector.close()
        self._alarm.close()
        self._bell.close()

    # Where to

    def _choose(self, now: Millis) -> Address:
        """Any broker: one that is connected, or else one that has not just failed."""
        addresses = self._addresses()
        for address in addresses:
            connection = self._connections.get((address, Lane.CALL))
            if connection is not None and connection.is_open:
                return address
        return min(addresses, key=lambda address: max(now, self._not_before.get(address, 0)))

    def _carry(self, key: _Key, errand: Errand, now: Millis) -> None:
        connection = self._connections.get(key)
        if connection is None:
            try:
                connection = self._open(key, now)
            except (Hangup, UnknownName) as error:
                self._fail(key[0], str(error), now)
                self._lose([errand, *self._held.pop(key, [])], Loss.UNREACHABLE)
                return
            if connection is None:
                self._held[key].append(errand)
                return
        try:
            connection.send(errand, now)
            if connection.is_open:
                connection.flush()
        except UnsupportedBroker as error:
            self._outcomes.append((errand.request, error))
        except Hangup as hangup:
            self._drop(key, hangup, now)
        else:
            self._watch(key, connection)

    def _open(self, key: _Key, now: Millis) -> Connection | None:
        """None while it is too early, or its name is being looked up."""
        if now < self._not_before.get(key[0], 0):
            return None
        places = self._names.find(key[0])
        if places is None:
            return None
        connection = Connection(places, self._options, now)
        self._connections[key] = connection
        self._selector.register(connection.socket, selectors.EVENT_WRITE, key)
        return connection

    def _watch(self, key: _Key, connection: Connection) -> None:
        events = selectors.EVENT_READ
        if connection.wants_to_write:
            events |= selectors.EVENT_WRITE
        if self._selector.get_key(connection.socket).events != events:
            self._selector.modify(connection.socket, events, key)

    # What happens

    def _hear(self) -> None:
        with suppress(BlockingIOError):
            while self._alarm.recv(1024):
                pass

    def _serve(self, key: _Key, events: int, now: Millis) -> None:
        connection = self._connections.get(key)
        if connection is None:
            return
        was_open = connection.is_open
        try:
            if events & selectors.EVENT_WRITE:
                connection.on_writable()
            if events & selectors.EVENT_READ:
                for errand, answer in connection.on_readable(now):
                    self._outcomes.append((errand.request, answer))
                connection.flush()
        except Hangup as hangup:
            if not self._try_next(key, connection):
                self._drop(key, hangup, now)
            return
        if connection.is_open and not was_open:
            self._failures.pop(key[0], None)
            self._not_before.pop(key[0], None)
        self._watch(key, connection)

    def _try_next(self, key: _Key, connection: Connection) -> bool:
        self._forget(connection)
        try:
            is_trying = connection.try_next()
        except Hangup:
            return False
        if is_trying:
            self._selector.register(connection.socket, selectors.EVENT_WRITE, key)
        return is_trying

    def _look_at_clock(self, now: Millis) -> None:
        for key, connection in list(self._connections.items()):
            if now >= connection.deadline():
                self._check(key, connection, now)
        for key in [key for key in self._held if self._can_open(key[0], now)]:
            for errand in self._held.pop(key):
                self._carry(key, errand, now)
        for key, errands in list(self._held.items()):
            late = [errand for errand in errands if now >= errand.ends_at]
            self._lose(late, Loss.TIMED_OUT)
            self._held[key] = [errand for errand in errands if errand not in late]
            if not self._held[key]:
                del self._held[key]

    def _can_open(self, address: Address, now: Millis) -> bool:
        return now >= self._not_before.get(address, 0) and not self._names.is_pending(address)

    def _check(self, key: _Key, connection: Connection, now: Millis) -> None:
        try:
            late = connection.check(now)
        except Hangup as hangup:
            if connection.is_open:
                self._close(key)
            else:
                self._drop(key, hangup, now)
            return
        if late:
            # Answers come in order: without this one, none that follows can be told from it.
            self._lose(late, Loss.TIMED_OUT)
            self._fail(key[0], "it did not answer in time", now)
            self._lose([each for each in self._close(key) if each not in late], Loss.DISCONNECTED)

    # Failing

    def _drop(self, key: _Key, hangup: Hangup, now: Millis) -> None:
        was_open = self._connections[key].is_open
        self._fail(key[0], str(hangup), now)
        self._lose(self._close(key), Loss.DISCONNECTED if was_open else Loss.UNREACHABLE)

    def _close(self, key: _Key) -> list[Errand]:
        connection = self._connections.pop(key)
        self._forget(connection)
        return connection.close()

    def _forget(self, connection: Connection) -> None:
        with suppress(KeyError):  # one that found no address to try next is forgotten already
            self._selector.unregister(connection.socket)

    def _lose(self, errands: list[Errand], loss: Loss) -> None:
        self._outcomes += ((errand.request, loss) for errand in errands)

    def _fail(self, address: Address, reason: str, now: Millis) -> None:
        failures = self._failures.get(address, 0)
        if not failures:
            host, port = address
            diary.warn("broker-lost", address=f"{host}:{port}", reason=reason)
        self._failures[address] = failures + 1
        self._not_before[address] = self._backoff.after(now, failures)
