"""One client's connection: frames in, answers out in the order they were asked for.

A malformed frame closes this connection with one line in the journal, and touches nobody else. A
client that reads slowly, or asks faster than it is answered, is not listened to until it catches
up: what it has asked already waits as frames, which are small, and not as answers.

Clients repeat themselves. What a connection has read and answered once is kept for when the same
comes again, byte for byte or but for some numbers; anything else goes the general way.
"""

import asyncio
from collections import deque
from time import monotonic
from typing import Any, Final, Protocol

from kohort.node import journal
from kohort.node.metrics import Figures
from kohort.node.request import Known, Request
from kohort.wire.envelope import decode_request, decode_request_header
from kohort.wire.errors import MalformedMessage, UnsupportedVersion
from kohort.wire.frame import FrameReader

_FETCH: Final = 1

_UNSENT_BYTES_MAX: Final = 64 * 1024
"""Answers that are kept to be written in one; more are not made before these are on their way."""

_REQUESTS_IN_A_ROW_MAX: Final = 200
"""Of one connection, before others have their turn; protects them from waiting for its pipeline."""

_KEPT_BYTES_MAX: Final = 4096
"""Of a frame that is kept for when it comes again; protects memory from long names."""


class Transport(Protocol):
    """A socket, as asyncio would give it to us."""

    def get_extra_info(self, name: str, /) -> Any: ...

    def write(self, data: bytes, /) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def is_closing(self) -> bool: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...


class Hub(Protocol):
    """What a connection needs of the node."""

    request_max_bytes: int
    inflight_max: int

    @property
    def figures(self) -> Figures: ...

    def handle(self, request: Request) -> None: ...

    def handle_unsupported(self, frame: bytes) -> bytes | None: ...

    def joined(self, connection: "Connection") -> bool: ...

    def left(self, connection: "Connection") -> None: ...


class Connection:
    def __init__(self, hub: Hub) -> None:
        # The node's, shared by all.
        self._hub = hub
        self._figures = hub.figures
        # This connection's.
        self._reader = FrameReader(hub.request_max_bytes)
        self._frames: deque[bytes] = deque()
        self._waiting: deque[Request] = deque()
        self._unsent_bytes = 0
        self._fetch: Request | None = None
        # What it said before: a whole piece that was one frame, and what it takes to read others.
        self._kept_start = self._kept_rest = b""
        self._kept: Request | None = None
        self._known: Known | None = None
        self._transport: Transport | None = None
        self.peer = ""
        self.host = ""
        self._is_busy = False
        self._is_clogged = False
        self._is_paused = False
        self._has_been_active = True
        self._taken_at = 0.0

    # What its socket tells

    def connection_made(self, transport: Transport) -> None:
        self._transport = transport
        host, port, *_ = transport.get_extra_info("peername") or ("?", 0)
        self.peer = f"{host}:{port}"
        # Kafka's way of writing an address without a name; tools show it as it is.
        self.host = f"/{host}"
        if not self._hub.joined(self):
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # why is all the same
        self._transport = None
        self._frames.clear()
        for request in self._waiting:
            request.abandon()
        self._waiting.clear()
        self._hub.left(self)

    def data_received(self, data: bytes | memoryview) -> None:
        self._has_been_active = True
        self._figures.bytes_in += len(data)
        kept = self._kept
        if (
            kept is not None
            and data[12:] == self._kept_rest
            and data[:8] == self._kept_start
            and not self._waiting
            and not self._frames
            and not self._is_clogged
            and self._reader.skip(len(data))
        ):
            self._take_again(kept, bytes(data[8:12]))
            return
        try:
            self._frames.extend(self._reader.feed(data))
        except MalformedMessage as error:
            self.close(str(error))
            return
        self._go_on()

    def pause_writing(self) -> None:
        self._is_clogged = True
        self._pace()

    def resume_writing(self) -> None:
        self._is_clogged = False
        self._go_on()

    # What the node calls

    def close(self, reason: str) -> None:
        if self._transport is None:
            return
        journal.warn("connection-closed", peer=self.peer, reason=reason)
        self._transport.abort()
        self._transport = None

    def finish(self) -> None:
        """Write out what is answered, then close."""
        self._flush()
        if self._transport is not None:
            self._transport.close()

    def close_if_idle(self) -> None:
        """Called every so often: a connection that has said nothing since is closed."""
        if not self._waiting and not self._has_been_active:
            self.close("idle")
        self._has_been_active = False

    def _go_on(self) -> None:
        """Take up what was asked, as far as there is room for the answers."""
        self._is_busy = True
        self._taken_at = monotonic()
        left = _REQUESTS_IN_A_ROW_MAX
        try:
            while self._frames and self._transport is not None:
                if not self._has_room():
                    self._flush()
                    if not self._has_room():
                        break
                if not left:
                    asyncio.get_running_loop().call_soon(self._go_on)
                    break
                left -= 1
                self._take(self._frames.popleft())
        except (MalformedMessage, UnsupportedVersion) as error:
            self.close(str(error))
        finally:
            self._is_busy = False
        if self._waiting and self._waiting[0].is_answered:
            self._flush()
        if self._frames or self._is_paused or len(self._waiting) >= self._hub.inflight_max:
            self._pace()

    def _has_room(self) -> bool:
        """Many requests may be under way, as they share a sync; but nothing comes after a fetch.

        Its answer may be large, so that it must be gone before anything else is taken up. Kafka
        does so with every request.
        """
        return (
            not self._is_clogged
            and self._fetch is None
            and self._unsent_bytes < _UNSENT_BYTES_MAX
            and len(self._waiting) < self._hub.inflight_max
        )

    def _take(self, frame: bytes) -> None:
        known = self._known
        body = None if known is None else known.read(frame)
        if known is None or body is None:
            request = self._read(frame)
            if request is None:
                return
        else:
            request = Request(known.header, body, self.host, self._answered, self._taken_at)
            request.number = frame[4:8]
        request.known = known
        self._waiting.append(request)
        if request.header.request_api_key == _FETCH:
            self._fetch = request
        self._hub.handle(request)
        if len(frame) <= _KEPT_BYTES_MAX:
            self._known = request.known
            if request.memo is not None and request.is_answered:
                self._kept = request
                self._kept_start = len(frame).to_bytes(4) + frame[:4]
                self._kept_rest = frame[8:]

    def _read(self, frame: bytes) -> Request | None:
        """None where it is in a version that is not spoken, and answered already."""
        try:
            header, body = decode_request(frame)
        except UnsupportedVersion:
            refusal = self._hub.handle_unsupported(frame)
            if refusal is None:
                raise
            # It waits for its turn like any other answer.
            header = decode_request_header(frame)
            request = Request(header, None, self.host, self._answered, self._taken_at)
            self._waiting.append(request)
            request.answer_encoded(refusal)
            return None
        return Request(header, body, self.host, self._answered, self._taken_at)

    def _take_again(self, request: Request, number: bytes) -> None:
        """The very same as last time, and nothing else under way: straight to its answer."""
        taken_at = monotonic()
        request.ask_again(number, taken_at)
        self._is_busy = True
        try:
            self._hub.handle(request)
        finally:
            self._is_busy = False
        transport = self._transport
        is_plain = request.is_answered and not request.error and not request.hang_up_reason
        if transport is None or not is_plain:
            self._waiting.append(request)
            self._flush()
            return
        payload, figures = request.payload, self._figures
        figures.requests[request.header.request_api_key].add_soon(monotonic() - taken_at)
        figures.bytes_out += len(payload)
        self._unsent_bytes -= len(payload)
        transport.write(payload)

    def _answered(self, request: Request) -> None:
        self._unsent_bytes += len(request.payload)
        if request is self._fetch:
            self._fetch = None
        if not self._is_busy and self._waiting and self._waiting[0] is request:
            self._flush()
            if self._frames or self._is_paused:
                self._go_on()

    def _flush(self) -> None:
        """Write every answer whose turn it is, all in one."""
        ready: list[bytes] = []
        hang_up_reason = None
        now = 0.0
        histograms = self._figures.requests
        while self._waiting and self._waiting[0].is_answered and hang_up_reason is None:
            request = self._waiting.popleft()
            ready.append(request.payload)
            now = now or monotonic()
            histograms[request.header.request_api_key].add_soon(now - request.taken_at)
            if request.error:
                self._figures.erred(request)
            self._unsent_bytes -= len(request.payload)
            hang_up_reason = request.hang_up_reason
        if self._transport is None:
            return
        if ready:
            payload = b"".join(ready) if len(ready) > 1 else ready[0]
            self._transport.write(payload)
            self._figures.bytes_out += len(payload)
        if hang_up_reason is not None:
            self.close(hang_up_reason)

    def _pace(self) -> None:
        """Read on as long as nothing that was read has to wait; then a hang-up is noticed too."""
        if self._transport is None or self._transport.is_closing():
            return
        is_too_much = (
            bool(self._frames) or self._is_clogged or len(self._waiting) >= self._hub.inflight_max
        )
        if is_too_much and not self._is_paused:
            self._transport.pause_reading()
        elif self._is_paused and not is_too_much:
            self._transport.resume_reading()
        self._is_paused = is_too_much
