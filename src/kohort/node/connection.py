"""One client's connection: frames in, responses out in the order of their requests.

A connection never handles a request while another part of the node is at work: it handles requests
when the event loop gives it bytes or resumes it, and sends responses when the event loop flushes
it. A response that is ready earlier waits for the flush.

A malformed frame, or an internal error in one request, closes this connection and no other. A
client that reads slowly, or has too many requests in flight, is not read from until it catches up:
its further requests wait as frames, which are small, not as responses.
"""

from collections import deque
from typing import Final, Protocol

from kohort.node import log_events
from kohort.node.metrics import Metrics
from kohort.node.repeated_requests import RepeatedRequests
from kohort.node.request import Request, SlicedWork
from kohort.node.request_memory import RequestMemory
from kohort.wire.envelope import decode_large_request, decode_request, decode_request_header
from kohort.wire.errors import MalformedMessage, UnsupportedVersion
from kohort.wire.frame import FrameReader

_IDLE: Final = "idle"

_FETCH: Final = 1

_UNSENT_BYTES_MAX: Final = 64 * 1024
"""Bytes of responses that wait for the next flush; no more are made before it."""

_LARGE_REQUEST_BYTES: Final = 64 * 1024
"""A larger request is decoded in slices, and the number of its array items is limited."""

_RESERVED_BYTES_MIN: Final = 256 * 1024
"""A larger request is received only after its memory is reserved. The socket is read in pieces of
this size, so smaller ones need no reservation."""

_REQUESTS_PER_ITERATION_MAX: Final = 200
"""Bounds how long other connections wait for one with a long pipeline."""


class ConnectionTransport(Protocol):
    """A socket. It buffers writes, and reports when the buffer is full."""

    def write(self, data: bytes, /) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def is_closing(self) -> bool: ...

    def close(self) -> None:
        """Send buffered data, then close."""

    def abort(self) -> None:
        """Close now; send only what the operating system accepts immediately."""


class ConnectionLoop(Protocol):
    """The part of the event loop that a connection uses."""

    request_max_bytes: int
    request_memory: RequestMemory
    inflight_max: int
    iteration_started_at: float

    @property
    def metrics(self) -> Metrics: ...

    def handle(self, request: Request, /) -> bool:
        """Answer it, or park it. Return whether it is long work, which has only begun."""

    def continue_later(self, request: Request, work: SlicedWork, /) -> None:
        """In this iteration, and the next ones."""

    def find_items_max(self, api_key: int, /) -> int:
        """The maximum number of array items in a large request."""

    def refuse_version(self, frame: bytes, /) -> bytes | None:
        """The response to a request of an unsupported version, if there is one."""

    def count_large_response(self, size: int, /) -> None: ...

    def flush_later(self, connection: "Connection", /) -> None:
        """In this iteration's send stage."""

    def resume_later(self, connection: "Connection", /) -> None:
        """In the next iteration."""

    def abandon(self, request: Request, /) -> None:
        """The client has disconnected."""

    def disconnected(self, connection: "Connection", /) -> None: ...

    def report_internal_error(self, error: Exception, peer: str, /) -> None: ...


class Connection:
    def __init__(
        self, loop: ConnectionLoop, transport: ConnectionTransport, host: str, port: int
    ) -> None:
        self._loop = loop
        self._metrics = loop.metrics
        self._inflight_max = loop.inflight_max
        self._transport: ConnectionTransport | None = transport
        self.host = host
        self.peer = f"{host}:{port}"
        self._client_host = f"/{host}"
        """Kafka's notation of an address without a host name; tools print it."""
        self._reader = FrameReader(loop.request_max_bytes)
        self._frames: deque[bytes] = deque()
        self._in_flight: deque[Request] = deque()
        self._unsent_bytes = 0
        self._gate: Request | None = None
        """No request behind this one is handled before it is answered."""
        self._reserved_bytes = 0
        self._repeated = RepeatedRequests()
        self._is_flush_requested = False
        self._is_write_paused = False
        self._is_read_paused = False
        self._is_memory_awaited = False
        self._was_active = True

    # Called by the transport

    def feed(self, data: bytes | memoryview) -> None:
        """Split received bytes into frames, which wait for the next iteration."""
        self._was_active = True
        self._metrics.bytes_in += len(data)
        try:
            self._frames.extend(self._reader.feed(data))
        except MalformedMessage as error:
            self.close(str(error))
            return
        awaited = self._reader.awaited
        if awaited > _RESERVED_BYTES_MIN and awaited != self._reserved_bytes:
            self._reserve_memory(awaited)

    def pause_writing(self) -> None:
        self._is_write_paused = True
        self._update_read_pause()

    def resume_writing(self) -> None:
        self._is_write_paused = False
        self._continue()

    def lost(self) -> None:
        self._transport = None
        self._frames.clear()
        for request in self._in_flight:
            self._loop.abandon(request)
        self._in_flight.clear()
        self._loop.request_memory.release(self)
        self._loop.disconnected(self)

    # Called by the event loop

    def handle_requests(self) -> None:
        """Handle waiting frames while the limits for responses allow it."""
        frames = self._frames
        left = _REQUESTS_PER_ITERATION_MAX
        try:
            while frames and left and self._may_handle_request():
                left -= 1
                self._handle(frames.popleft())
        except (MalformedMessage, UnsupportedVersion) as error:
            self.close(str(error))
        if frames or self._is_read_paused or len(self._in_flight) >= self._inflight_max:
            self._continue()

    def flush(self, now: float) -> None:
        """Write the responses that are next in order, in one call."""
        self._is_flush_requested = False
        in_flight, metrics = self._in_flight, self._metrics
        ready: list[bytes] = []
        disconnect_reason = None
        while in_flight and in_flight[0].is_answered and disconnect_reason is None:
            request = in_flight.popleft()
            ready.append(request.payload)
            metrics.requests[request.header.request_api_key].add_small(now - request.received_at)
            if request.error:
                metrics.count_error(request)
            disconnect_reason = request.disconnect_reason
        payload = ready[0] if len(ready) == 1 else b"".join(ready)
        self._unsent_bytes -= len(payload)
        if self._transport is None:
            return
        if payload:
            metrics.bytes_out += len(payload)
            self._transport.write(payload)
        if disconnect_reason is not None:
            self.close(disconnect_reason)
        elif self._frames or self._is_read_paused:
            self._continue()
        if self._reserved_bytes and not in_flight and not self._frames:
            self._release_memory()

    def close(self, reason: str) -> None:
        if self._transport is None:
            return
        if reason == _IDLE:
            # Clients keep connections that they do not use, so this is nothing unusual.
            log_events.info("connection-closed", peer=self.peer, reason=reason)
        else:
            log_events.warning("connection-closed", peer=self.peer, reason=reason)
        self._frames.clear()
        transport, self._transport = self._transport, None
        transport.abort()

    def fail(self, error: Exception) -> None:
        """Log and count an internal error in one of the requests, and close."""
        self._loop.report_internal_error(error, self.peer)
        self.close("internal error")

    def finish(self) -> None:
        """Send buffered data, then close."""
        if self._transport is not None:
            self._transport.close()

    def close_if_idle(self) -> None:
        """Called at a fixed interval; closes if nothing was received since the last call."""
        if not self._in_flight and not self._was_active:
            self.close(_IDLE)
        self._was_active = False

    # Requests

    def _may_handle_request(self) -> bool:
        """Many requests may be in flight, because they share a sync, but none behind a fetch or
        behind long work.

        Their responses may be large, so they are sent before the next request is handled. Kafka
        does so with every request.
        """
        return (
            self._gate is None
            and self._unsent_bytes < _UNSENT_BYTES_MAX
            and len(self._in_flight) < self._inflight_max
            and not self._is_write_paused
            and self._transport is not None
        )

    def _handle(self, frame: bytes) -> None:
        in_flight, repeated = self._in_flight, self._repeated
        request = None
        if not in_flight:
            request = repeated.find(frame, self._loop.iteration_started_at)
        is_new = request is None
        if request is None:
            request = self._read(frame)
        in_flight.append(request)
        if request.is_answered:
            self.answered(request)
            return
        if request.header.request_api_key == _FETCH:
            self._gate = request
        if self._loop.handle(request):
            self._gate = request
        if is_new:
            repeated.learn(request, frame)

    def _read(self, frame: bytes) -> Request:
        repeated, host = self._repeated, self._client_host
        received_at = self._loop.iteration_started_at
        request = repeated.read(frame, host, self, received_at)
        if request is None:
            try:
                if len(frame) > _LARGE_REQUEST_BYTES:
                    return self._begin_large(frame)
                header, body = decode_request(frame)
            except UnsupportedVersion:
                refused = self._refuse_version(frame)
                if refused is None:
                    raise
                return refused
            request = Request(header, body, host, self, received_at)
        request.template = repeated.template
        return request

    def _begin_large(self, frame: bytes) -> Request:
        header, body = decode_large_request(frame, self._loop.find_items_max)
        received_at = self._loop.iteration_started_at
        request = Request(header, None, self._client_host, self, received_at)
        request.undecoded = body
        return request

    def _refuse_version(self, frame: bytes) -> Request | None:
        """Return a request that is already answered, or None if no client could read a response."""
        refusal = self._loop.refuse_version(frame)
        if refusal is None:
            return None
        header = decode_request_header(frame)
        request = Request(header, None, self._client_host, self, self._loop.iteration_started_at)
        request.payload, request.is_answered = refusal, True
        return request

    def continue_later(self, request: Request, work: SlicedWork) -> None:
        if self._transport is not None:
            self._loop.continue_later(request, work)

    def hold_back(self, request: Request) -> None:
        self._gate = request

    def answered(self, request: Request) -> None:
        size = len(request.payload)
        self._unsent_bytes += size
        if size > _UNSENT_BYTES_MAX:
            self._loop.count_large_response(size)
        if request is self._gate:
            self._gate = None
        if not self._is_flush_requested and self._in_flight and self._in_flight[0].is_answered:
            self._is_flush_requested = True
            self._loop.flush_later(self)

    # Flow control

    def _continue(self) -> None:
        if self._frames and self._may_handle_request():
            self._loop.resume_later(self)
        self._update_read_pause()

    def _update_read_pause(self) -> None:
        """Read while no received frame has to wait. Reading is how a disconnect is detected."""
        if self._transport is None or self._transport.is_closing():
            return
        must_pause = (
            bool(self._frames)
            or self._is_write_paused
            or self._is_memory_awaited
            or len(self._in_flight) >= self._inflight_max
        )
        if must_pause and not self._is_read_paused:
            self._transport.pause_reading()
        elif self._is_read_paused and not must_pause:
            self._transport.resume_reading()
        self._is_read_paused = must_pause

    def _reserve_memory(self, size: int) -> None:
        self._reserved_bytes = size
        self._is_memory_awaited = not self._loop.request_memory.reserve(self, size)
        if self._is_memory_awaited:
            self._update_read_pause()

    def memory_reserved(self) -> None:
        self._is_memory_awaited = False
        self._continue()

    def _release_memory(self) -> None:
        """Everything is answered. The reservation stays if another large request has begun."""
        if self._reader.awaited <= _RESERVED_BYTES_MIN:
            self._reserved_bytes = 0
            self._loop.request_memory.release(self)
