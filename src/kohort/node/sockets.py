"""A node's connections on a poll of their own: read from many, take up what they ask, answer all.

The system's way through a socket and ours through a request each push the other's code and data
out of the processor's nearest memory. So a turn reads from all sockets that have something, a
handful at a time, then has it taken up, and only then writes the answers: what is done many times
in a row is done at its best. The event loop watches the poll as it would watch one socket.

What a connection sees is what asyncio would give it: a transport, pieces of bytes, and word of when
to pause. Nothing here knows what a frame is.
"""

import asyncio
import selectors
import socket
from collections.abc import Callable
from typing import Any, Final, Protocol

from kohort.node import journal
from kohort.wire.varint import Buffer

_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE

_ROOM_BYTES: Final = 256 * 1024
"""What is read from a socket at once."""

_COPIED_BYTES_MAX: Final = 4096
"""A piece that is larger is taken up at once, from where it was read to, without being copied."""

_SOCKETS_IN_A_ROW: Final = 64
"""Read from before what they say is taken up: no answer waits for many others."""

_ACCEPTED_IN_A_ROW: Final = 128

_BACKLOG: Final = 1024

_UNSENT_BYTES_MAX: Final = 64 * 1024
_UNSENT_BYTES_FEW: Final = 16 * 1024
"""When a client that reads slowly is asked to wait, and when it may go on."""

_UNTIL_NEXT_TRY_S: Final = 1.0


class Guest(Protocol):
    """What is at our end of a socket."""

    def connection_made(self, transport: Any) -> None: ...

    def connection_lost(self, exc: Exception | None) -> None: ...

    def data_received(self, data: bytes | memoryview) -> None:
        """A view is of room that is written over afterwards."""

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...


class Sockets:
    """All of them, and who listens for more."""

    def __init__(self, loop: asyncio.AbstractEventLoop, welcome: Callable[[], Guest]) -> None:
        self._loop = loop
        self._welcome = welcome
        self._selector = selectors.DefaultSelector()
        loop.add_reader(self._selector.fileno(), self._turn)
        self._listeners: list[socket.socket] = []
        self._room = memoryview(bytearray(_ROOM_BYTES))
        self._late: list[Callable[[], None]] = []
        self._last: list[Callable[[], None]] = []
        self._is_turning = False
        # Of the channels.
        self.open: set[Channel] = set()
        self.unsent: list[Channel] = []
        """Those that have something to send since this turn began, or since the last one."""

    # Listening

    def listen(self, host: str, port: int) -> int:
        """Where the name is, in every family; returns the port. OSError where that cannot be."""
        # This may wait for a name to be looked up: nobody is served yet.
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

    def stop_listening(self) -> None:
        for listener in self._listeners:
            if listener in self._selector.get_map():
                self._selector.unregister(listener)
            listener.close()
        self._listeners.clear()

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(_ACCEPTED_IN_A_ROW):
            try:
                accepted, _ = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                # Mostly for want of room. It would be ready again at once, over and over; and what
                # others have said in this turn must not be lost over it.
                journal.warn("cannot-accept", reason=error.strerror)
                self._selector.unregister(listener)
                self._loop.call_later(_UNTIL_NEXT_TRY_S, self._listen_again, listener)
                return
            accepted.settimeout(0)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            Channel(self, accepted, self._welcome())

    def _listen_again(self, listener: socket.socket) -> None:
        if listener in self._listeners:
            self._selector.register(listener, _READ)

    # Turns

    def soon(self, then: Callable[[], None]) -> None:
        """To be called when all that came in this turn is taken up, before anything is sent."""
        if self._is_turning:
            self._late.append(then)
        else:
            self._loop.call_soon(then)

    def afterwards(self, then: Callable[[], None]) -> None:
        """To be called when all that was answered in this turn is sent, before more is read."""
        if self._is_turning:
            self._last.append(then)
        else:
            self._loop.call_soon(then)

    def _turn(self) -> None:
        ready = self._selector.select(0)
        for first in range(0, len(ready), _SOCKETS_IN_A_ROW):
            self._is_turning = True
            try:
                for channel, piece in self._receive(ready[first : first + _SOCKETS_IN_A_ROW]):
                    channel.tell(channel.guest.data_received, piece)
                self._do_all(self._late)
            finally:
                self._is_turning = False
            self._send()
            self._do_all(self._last)

    def _do_all(self, waiting: list[Callable[[], None]]) -> None:
        while waiting:
            some = waiting[:]
            waiting.clear()
            for then in some:
                try:
                    then()
                except Exception as error:  # it is told, and others have their turn
                    self.report(error)

    def _receive(
        self, ready: list[tuple[selectors.SelectorKey, int]]
    ) -> "list[tuple[Channel, bytes]]":
        room = self._room
        pieces: list[tuple[Channel, bytes]] = []
        for key, events in ready:
            channel: Channel | None = key.data
            if channel is None:
                self._accept(key.fileobj)  # type: ignore[arg-type]  # a listener
                continue
            if events & _WRITE:
                channel.send()
            if not events & _READ:
                continue
            count = channel.receive(room)
            if count > _COPIED_BYTES_MAX:
                channel.tell(channel.guest.data_received, room[:count])
            elif count:
                pieces.append((channel, bytes(room[:count])))
        return pieces

    def has_unsent(self, channel: "Channel") -> None:
        if not self.unsent and not self._is_turning:
            self._loop.call_soon(self._send)
        self.unsent.append(channel)

    def _send(self) -> None:
        while self.unsent:
            unsent, self.unsent = self.unsent, []
            for channel in unsent:
                channel.send()

    # What channels need

    def watch(self, channel: "Channel", before: int, after: int) -> None:
        if not after:
            self._selector.unregister(channel.socket)
        elif before:
            self._selector.modify(channel.socket, after, channel)
        else:
            self._selector.register(channel.socket, after, channel)

    def call_soon(self, then: Callable[..., None], *given: object) -> None:
        self._loop.call_soon(then, *given)

    def report(self, error: Exception) -> None:
        """As asyncio would, of an error that nobody has caught."""
        context = {"message": "an error over what came in", "exception": error}
        self._loop.call_exception_handler(context)

    def close(self) -> None:
        """After everybody was told to go: whoever is still here is cut off."""
        self.stop_listening()
        for channel in tuple(self.open):
            channel.abort()
        self._loop.remove_reader(self._selector.fileno())
        self._selector.close()


class Channel:
    """One socket, as its connection's transport."""

    __slots__ = (
        "_is_blocked",
        "_is_closing",
        "_is_gone",
        "_is_guest_paused",
        "_pieces",
        "_receive_into",
        "_send",
        "_sockets",
        "_unsent_bytes",
        "_watched",
        "guest",
        "socket",
    )

    def __init__(self, sockets: Sockets, accepted: socket.socket, guest: Guest) -> None:
        self._sockets = sockets
        self.socket = accepted
        self.guest = guest
        self._receive_into = accepted.recv_into
        self._send = accepted.send
        self._pieces: list[Buffer] = []
        self._unsent_bytes = 0
        self._watched = _READ
        self._is_blocked = False
        self._is_guest_paused = False
        self._is_closing = False
        self._is_gone = False
        sockets.open.add(self)
        sockets.watch(self, 0, _READ)
        guest.connection_made(self)

    # What the poll asks

    def receive(self, room: memoryview) -> int:
        """How many bytes were read; none where there are none, and where nobody reads them."""
        if self._is_closing:
            return 0
        try:
            count = self._receive_into(room)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            self._lose(error)
            return 0
        if not count:
            self.close()
        return count

    def tell(self, hear: Callable[..., None], *given: object) -> None:
        """Have the guest hear something; its error takes from nobody else what they have said."""
        try:
            hear(*given)
        except Exception as error:  # whichever it is, it ends this connection alone
            self._sockets.report(error)
            self.abort()

    def send(self) -> None:
        """As much of what is unsent as the system takes; the rest when it says so."""
        pieces = self._pieces
        if self._is_gone or not pieces:
            return
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        try:
            sent = self._send(data)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as error:
            self._lose(error)
            return
        self._unsent_bytes = len(data) - sent
        if self._unsent_bytes:
            self._pieces = [memoryview(data)[sent:]]
        else:
            pieces.clear()
        if self._unsent_bytes or self._is_blocked:
            self._pace()
        if self._is_closing and not self._unsent_bytes:
            self._lose(None)

    # As a transport

    def get_extra_info(self, name: str) -> Any:
        assert name == "peername", f"nobody asks for {name}"
        try:
            return self.socket.getpeername()
        except OSError:
            return None  # it is gone already

    def write(self, data: Buffer) -> None:
        if self._is_closing:
            return
        if not self._pieces:
            self._sockets.has_unsent(self)
        self._pieces.append(data)
        self._unsent_bytes += len(data)
        if self._is_blocked:
            self._pace()
        elif self._unsent_bytes > _UNSENT_BYTES_MAX:
            # Much is not kept for the end of a turn: the guest must learn when it is too much.
            self.send()

    def pause_reading(self) -> None:
        self._watch(self._watched & ~_READ)

    def resume_reading(self) -> None:
        if not self._is_closing:
            self._watch(self._watched | _READ)

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        """Nothing more is read; what is written already is sent."""
        if self._is_closing:
            return
        self._is_closing = True
        self._watch(self._watched & ~_READ)
        if not self._unsent_bytes:
            self._lose(None)

    def abort(self) -> None:
        """What was written is sent as far as the system takes it at once, and that is all."""
        self.send()
        self._lose(None)

    def _pace(self) -> None:
        """The system wakes us when it takes more, and the guest waits while that is too much."""
        self._is_blocked = self._unsent_bytes > 0
        watched = self._watched & ~_WRITE
        self._watch(watched | _WRITE if self._is_blocked else watched)
        if not self._is_guest_paused and self._unsent_bytes > _UNSENT_BYTES_MAX:
            self._is_guest_paused = True
            self.tell(self.guest.pause_writing)
        elif self._is_guest_paused and self._unsent_bytes <= _UNSENT_BYTES_FEW:
            self._is_guest_paused = False
            self.tell(self.guest.resume_writing)

    def _watch(self, wanted: int) -> None:
        if wanted != self._watched and not self._is_gone:
            self._sockets.watch(self, self._watched, wanted)
            self._watched = wanted

    def _lose(self, error: Exception | None) -> None:
        if self._is_gone:
            return
        self._watch(0)
        self._is_gone = self._is_closing = True
        self._pieces = []
        self._unsent_bytes = 0
        self._sockets.call_soon(self._say_goodbye, error)

    def _say_goodbye(self, error: Exception | None) -> None:
        self._sockets.open.discard(self)
        self.guest.connection_lost(error)
        self.socket.close()
