"""TCP sockets on one selector: read from many, then let the event loop iterate, then send.

Each iteration reads the ready sockets, a bounded number at a time, before any request is handled,
and sends all responses afterwards. Batching keeps the CPU caches warm. asyncio watches the selector
as if it were one socket.

A `Channel` is one socket as its connection's transport. Nothing here knows what a frame is.
"""

import asyncio
import contextlib
import selectors
import socket
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Generic, Protocol, TypeVar

from kohort.node import log_events
from kohort.wire.varint import Buffer

_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE

_READ_BUFFER_BYTES: Final = 256 * 1024
"""Read from a socket at once."""

_SOCKETS_PER_ITERATION_MAX: Final = 64
"""Bounds how long a response waits for the other requests of its iteration."""

_ACCEPTED_PER_ITERATION_MAX: Final = 128

_BACKLOG: Final = 1024

_UNSENT_BYTES_HIGH: Final = 64 * 1024
_UNSENT_BYTES_LOW: Final = 16 * 1024
"""A connection stops writing above the first, and goes on below the second."""

_UNSENT_BYTES_MAX: Final = 256 * 1024 * 1024
"""Of all connections; bounds the memory for clients that do not read."""

_ACCEPT_RETRY_S: Final = 1.0

_REFUSAL_LOG_S: Final = 60.0
"""At most one line about refused connections in this time."""


class Peer(Protocol):
    """The connection that uses a socket."""

    def feed(self, data: memoryview, /) -> None:
        """Receive bytes. The buffer is reused afterwards."""

    def fail(self, error: Exception, /) -> None:
        """An internal error happened in `feed`."""

    def close(self, reason: str, /) -> None:
        """Its client does not read, and too many bytes are unsent."""

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...

    def lost(self) -> None: ...


C = TypeVar("C", bound=Peer)

Connect = Callable[["Channel[C]", str, int], C | None]
"""Makes the connection for an accepted socket, or returns None to refuse it."""


class SocketTransport(Generic[C]):
    """All client sockets and listening sockets of a node."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        connect: Connect[C],
        unsent_bytes_max: int = _UNSENT_BYTES_MAX,
    ) -> None:
        """Above `unsent_bytes_max` bytes of all clients, the slowest client is disconnected."""
        self._loop = loop
        self._connect = connect
        self._unsent_bytes_max = unsent_bytes_max
        self.unsent_bytes = 0
        """Bytes that the operating system did not accept, of all channels."""
        self._selector = selectors.DefaultSelector()
        self._listeners: list[socket.socket] = []
        self._refusal_logged_at: float | None = None
        self._buffer = memoryview(bytearray(_READ_BUFFER_BYTES))
        self.channels: set[Channel[C]] = set()
        self.unsent: list[Channel[C]] = []
        """Those with something written since the last `send`."""

    def fileno(self) -> int:
        """Readable when any of the sockets is ready."""
        return self._selector.fileno()

    # Listening

    def listen(self, host: str, port: int) -> int:
        """Listen on every address of the host name and return the port. Raises OSError."""
        # This may block for name resolution; no client is connected yet.
        found = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        try:
            for family, _, _, _, address in dict.fromkeys(found):
                listener = socket.create_server(address[:2], family=family, backlog=_BACKLOG)
                listener.settimeout(0)
                self._listeners.append(listener)
                self._selector.register(listener, _READ)
        except OSError:
            self.stop_listening()
            raise
        number: int = self._listeners[0].getsockname()[1]
        return number

    @property
    def bound_hosts(self) -> list[str]:
        """The addresses of the listening sockets."""
        return [listener.getsockname()[0] for listener in self._listeners]

    def stop_listening(self) -> None:
        for listener in self._listeners:
            if listener in self._selector.get_map():
                self._selector.unregister(listener)
            _end_socket(listener)
        self._listeners.clear()

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(_ACCEPTED_PER_ITERATION_MAX):
            try:
                accepted, _ = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                # Usually too many open files. Without a pause the listener would stay ready.
                self._report_refusal(error)
                self._selector.unregister(listener)
                self._loop.call_later(_ACCEPT_RETRY_S, self._listen_again, listener)
                return
            accepted.settimeout(0)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._open(accepted)

    def _open(self, accepted: socket.socket) -> None:
        try:
            host, port, *_ = accepted.getpeername()
        except OSError:  # the client has already disconnected
            accepted.close()
            return
        channel: Channel[C] = Channel(self, accepted)
        channel.peer = self._connect(channel, host, port)
        if channel.peer is None:
            channel.abort()

    def _report_refusal(self, error: OSError) -> None:
        now = self._loop.time()
        if self._refusal_logged_at is None or now - self._refusal_logged_at >= _REFUSAL_LOG_S:
            self._refusal_logged_at = now
            log_events.warning("cannot-accept", reason=error.strerror)

    def _listen_again(self, listener: socket.socket) -> None:
        if listener in self._listeners:
            self._selector.register(listener, _READ)

    # Reading and sending

    def read_ready(self) -> Iterable[list[C]]:
        """Read from all ready sockets, feed their connections, and yield these in batches.

        The caller iterates the event loop for each batch before it takes the next.
        """
        ready = self._selector.select(0)
        if len(ready) <= _SOCKETS_PER_ITERATION_MAX:
            return (self._read(ready),)
        return self._read_in_batches(ready)

    def _read_in_batches(self, ready: list[tuple[selectors.SelectorKey, int]]) -> Iterator[list[C]]:
        for first in range(0, len(ready), _SOCKETS_PER_ITERATION_MAX):
            yield self._read(ready[first : first + _SOCKETS_PER_ITERATION_MAX])

    def _read(self, ready: list[tuple[selectors.SelectorKey, int]]) -> list[C]:
        buffer = self._buffer
        fed: list[C] = []
        for key, events in ready:
            channel: Channel[C] | None = key.data
            if channel is None:
                self._accept(key.fileobj)  # type: ignore[arg-type]  # a listener
                continue
            if events & _WRITE:
                channel.send()
            if not events & _READ or (peer := channel.peer) is None:
                continue
            count = channel.receive(buffer)
            if not count:
                continue
            try:
                peer.feed(buffer[:count])
            except Exception as error:  # it affects only this connection
                peer.fail(error)
            else:
                fed.append(peer)
        return fed

    def send(self) -> None:
        """Send what was written since the last call."""
        for channel in self.unsent:
            channel.send()
        self.unsent.clear()
        if self.unsent_bytes > self._unsent_bytes_max:
            self._disconnect_slowest()

    def _disconnect_slowest(self) -> None:
        for channel in sorted(self.channels, key=Channel.count_unsent, reverse=True):
            if self.unsent_bytes <= self._unsent_bytes_max:
                return
            if channel.peer is not None:
                channel.peer.close(f"{channel.count_unsent()} bytes are unsent")

    # Called by channels

    def watch(self, channel: "Channel[C]", before: int, after: int) -> None:
        if not after:
            self._selector.unregister(channel.socket)
        elif before:
            self._selector.modify(channel.socket, after, channel)
        else:
            self._selector.register(channel.socket, after, channel)

    def forget(self, channel: "Channel[C]") -> None:
        """Close the socket after the current iteration, because its connection may be in use."""
        self._loop.call_soon(channel.close_socket)

    def close(self) -> None:
        """Disconnect every client that is still connected."""
        self.stop_listening()
        for channel in tuple(self.channels):
            channel.abort()
        self._selector.close()


class Channel(Generic[C]):
    """One socket, as its connection's transport."""

    __slots__ = (
        "_is_blocked",
        "_is_closing",
        "_is_gone",
        "_is_peer_paused",
        "_pieces",
        "_receive_into",
        "_send",
        "_transport",
        "_unsent_bytes",
        "_unsent_bytes_counted",
        "_watched",
        "peer",
        "socket",
    )

    def __init__(self, transport: SocketTransport[C], accepted: socket.socket) -> None:
        self._transport = transport
        self.socket = accepted
        self.peer: C | None = None
        self._receive_into = accepted.recv_into
        self._send = accepted.send
        self._pieces: list[Buffer] = []
        self._unsent_bytes = 0
        self._unsent_bytes_counted = 0
        self._watched = _READ
        self._is_blocked = False
        self._is_peer_paused = False
        self._is_closing = False
        self._is_gone = False
        transport.channels.add(self)
        transport.watch(self, 0, _READ)

    # Called by the socket transport

    def receive(self, buffer: memoryview) -> int:
        """Read into the buffer and return the number of bytes; 0 if there are none."""
        if self._is_closing:
            return 0
        try:
            count = self._receive_into(buffer)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError:
            self._lose()
            return 0
        if not count:
            self.close()
        return count

    def send(self) -> None:
        """Send as much as the operating system accepts now; the selector reports more room."""
        pieces = self._pieces
        if self._is_gone or not pieces:
            return
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        try:
            sent = self._send(data)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            self._lose()
            return
        self._unsent_bytes = len(data) - sent
        if self._unsent_bytes:
            self._pieces = [memoryview(data)[sent:]]
        else:
            pieces.clear()
        if self._unsent_bytes or self._is_blocked:
            self._pace()
        if self._is_closing and not self._unsent_bytes:
            self._lose()

    def close_socket(self) -> None:
        self._transport.channels.discard(self)
        if self.peer is not None:
            self.peer.lost()
        _end_socket(self.socket)

    # ConnectionTransport

    def write(self, data: Buffer) -> None:
        if self._is_closing:
            return
        if not self._pieces:
            self._transport.unsent.append(self)
        self._pieces.append(data)
        self._unsent_bytes += len(data)
        if self._is_blocked:
            self._pace()

    def pause_reading(self) -> None:
        self._watch(self._watched & ~_READ)

    def resume_reading(self) -> None:
        if not self._is_closing:
            self._watch(self._watched | _READ)

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        """Stop reading; send buffered data, then close."""
        if self._is_closing:
            return
        self._is_closing = True
        self._watch(self._watched & ~_READ)
        self.send()
        if not self._unsent_bytes:
            self._lose()

    def abort(self) -> None:
        """Send what the operating system accepts immediately, and close."""
        self.send()
        self._lose()

    def _pace(self) -> None:
        """Watch for writability while data is unsent, and pause the connection meanwhile."""
        self._count_unsent()
        self._is_blocked = self._unsent_bytes > 0
        watched = self._watched & ~_WRITE
        self._watch(watched | _WRITE if self._is_blocked else watched)
        if self.peer is None:
            return
        if not self._is_peer_paused and self._unsent_bytes > _UNSENT_BYTES_HIGH:
            self._is_peer_paused = True
            self.peer.pause_writing()
        elif self._is_peer_paused and self._unsent_bytes <= _UNSENT_BYTES_LOW:
            self._is_peer_paused = False
            self.peer.resume_writing()

    def _count_unsent(self) -> None:
        self._transport.unsent_bytes += self._unsent_bytes - self._unsent_bytes_counted
        self._unsent_bytes_counted = self._unsent_bytes

    def count_unsent(self) -> int:
        return self._unsent_bytes_counted

    def _watch(self, wanted: int) -> None:
        if wanted != self._watched and not self._is_gone:
            self._transport.watch(self, self._watched, wanted)
            self._watched = wanted

    def _lose(self) -> None:
        if self._is_gone:
            return
        self._watch(0)
        self._is_gone = self._is_closing = True
        self._pieces = []
        self._unsent_bytes = 0
        self._count_unsent()
        self._transport.forget(self)


def _end_socket(ended: socket.socket) -> None:
    """Close a socket. Closing alone has no effect while a forked child has a copy of it."""
    with contextlib.suppress(OSError):
        ended.shutdown(socket.SHUT_RDWR)
    ended.close()
