"""One connection to one broker as a state machine without I/O: requests in, bytes out, and back.

The session negotiates versions with ApiVersions, chooses a version for each request, numbers
requests and matches responses in order. A driver moves its bytes and passes it the time. Any byte
that is not the expected response ends the session: later responses could not be matched.
"""

import sys
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeAlias

from kohort.protocol.errors import (
    ConnectFailed,
    Disconnected,
    ProtocolError,
    RequestNotSent,
    UnencodableRequest,
    UnsupportedByBroker,
)
from kohort.protocol.frames import FrameParser
from kohort.protocol.versions import VERSIONS, VersionRange, find_version
from kohort.types import ErrorCode, Millis
from kohort.wire.api import find_api
from kohort.wire.api.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from kohort.wire.envelope import decode_response, encode_request
from kohort.wire.errors import MalformedMessage, UnencodableMessage
from kohort.wire.frame import FRAME_BYTES_MAX
from kohort.wire.header import API_VERSIONS_KEY
from kohort.wire.schema import schema_of

_API_VERSIONS_VERSION: Final = 3

IN_FLIGHT_MAX: Final = 100
"""Requests without a response on one connection; protects the broker's memory. As in Kafka's
consumer."""


class SessionState(Enum):
    CONNECTING = "connecting"
    NEGOTIATING_VERSIONS = "negotiating versions"
    READY = "ready"
    CLOSED = "closed"


_TRANSITIONS: Final[Mapping[SessionState, frozenset[SessionState]]] = {
    SessionState.CONNECTING: frozenset({SessionState.NEGOTIATING_VERSIONS, SessionState.CLOSED}),
    SessionState.NEGOTIATING_VERSIONS: frozenset({SessionState.READY, SessionState.CLOSED}),
    SessionState.READY: frozenset({SessionState.CLOSED}),
    SessionState.CLOSED: frozenset({SessionState.CLOSED}),
}
"""SASL authentication is one more state between NEGOTIATING_VERSIONS and READY."""


@dataclass(slots=True, eq=False, kw_only=True)
class PendingRequest:
    """A request from `Session.send` until its response."""

    body: object
    deadline: Millis
    version_max: int | None = None
    """Where newer versions cannot express the body."""
    context: Any = None
    """Belongs to the caller."""


Completed: TypeAlias = tuple[PendingRequest, Any]
"""A request with its response, or with the RequestNotSent that it failed with."""


@dataclass(slots=True, eq=False)
class _InFlight:
    correlation_id: int
    api_key: int
    version: int
    request: PendingRequest | None
    """None for requests of the session itself."""


class Session:
    def __init__(
        self,
        client_id: str,
        *,
        ready_by: Millis,
        response_bytes_max: int = FRAME_BYTES_MAX,
        versions: Mapping[int, VersionRange] = VERSIONS,
    ) -> None:
        self._client_id = client_id
        self._ready_by = ready_by
        self._versions = versions
        self._broker_versions: dict[int, VersionRange] = {}
        self._parser = FrameParser(response_bytes_max)
        self._waiting: deque[PendingRequest] = deque()
        self._in_flight: deque[_InFlight] = deque()
        self._correlation_id = 0
        self.state = SessionState.CONNECTING
        self.outgoing = bytearray()
        """Bytes for the broker; the driver removes what it has sent."""

    @property
    def is_ready(self) -> bool:
        return self.state is SessionState.READY

    def connected(self) -> None:
        """The transport is connected."""
        self._move(SessionState.NEGOTIATING_VERSIONS)
        self._request_versions(_API_VERSIONS_VERSION)

    def failure(self, reason: str) -> ProtocolError:
        """The error of a session that ends now for this reason."""
        match self.state:
            case SessionState.READY | SessionState.CLOSED:
                return Disconnected(reason)
            case SessionState.NEGOTIATING_VERSIONS:
                return ConnectFailed(f"version negotiation failed: {reason}")
            case SessionState.CONNECTING:
                return ConnectFailed(reason)

    def close(self) -> list[PendingRequest]:
        """The requests that get no response."""
        self._move(SessionState.CLOSED)
        unanswered = self.pending()
        self._in_flight.clear()
        self._waiting.clear()
        return unanswered

    def _move(self, state: SessionState) -> None:
        assert state in _TRANSITIONS[self.state], f"{self.state} -> {state}"
        self.state = state

    # Deadlines

    def pending(self) -> list[PendingRequest]:
        sent = [each.request for each in self._in_flight if each.request is not None]
        return [*sent, *self._waiting]

    def next_deadline(self) -> Millis | None:
        """When `expired` must be called, at the latest."""
        deadlines = [request.deadline for request in self.pending()]
        if not self.is_ready:
            deadlines.append(self._ready_by)
        return min(deadlines, default=None)

    def expired(self, now: Millis) -> list[PendingRequest]:
        """The requests whose deadline has passed; Unreachable if the session should be ready."""
        if not self.is_ready and now >= self._ready_by:
            raise self.failure("timed out")
        return [request for request in self.pending() if now >= request.deadline]

    # Sending

    def send(self, request: PendingRequest) -> None:
        """Send it when the session is ready; RequestNotSent concerns this request alone."""
        if self.is_ready and not self._waiting and len(self._in_flight) < IN_FLIGHT_MAX:
            self._write(request)
        else:
            self._waiting.append(request)

    def _write(self, request: PendingRequest) -> None:
        api_key = _key_of(request.body)
        ours, theirs = self._versions[api_key], self._broker_versions.get(api_key)
        chosen = find_version(ours, theirs, request.version_max)
        if chosen is None:
            raise _unsupported(api_key, ours, theirs)
        self._encode(request.body, api_key, chosen, request)

    def _encode(
        self, body: object, api_key: int, chosen: int, request: PendingRequest | None
    ) -> None:
        number = self._correlation_id + 1
        try:
            self.outgoing += encode_request(body, chosen, number, self._client_id)
        except UnencodableMessage as error:
            raise UnencodableRequest(str(error)) from None
        self._correlation_id = number
        self._in_flight.append(_InFlight(number, api_key, chosen, request))

    def _write_waiting(self) -> Iterator[Completed]:
        while self._waiting and len(self._in_flight) < IN_FLIGHT_MAX:
            request = self._waiting.popleft()
            try:
                self._write(request)
            except RequestNotSent as error:
                yield request, error

    # Receiving

    def receive_space(self) -> memoryview:
        """Where a driver puts received bytes. Release it before `received`."""
        return self._parser.space()

    def received(self, count: int) -> Iterator[Completed]:
        """What the bytes complete; 0 bytes mean that the broker closed the connection.

        Raises Unreachable or Disconnected where the session cannot go on.
        """
        if not count:
            raise self.failure("the broker closed the connection")
        try:
            for frame in self._parser.received(count):
                yield from self._take(frame)
        except MalformedMessage as error:
            raise self.failure(f"malformed response: {error}") from None

    def _take(self, frame: bytes) -> Iterator[Completed]:
        if not self._in_flight:
            raise self.failure("a response came without a request")
        sent = self._in_flight[0]
        number, response = decode_response(frame, sent.api_key, sent.version)
        if number != sent.correlation_id:
            expected = sent.correlation_id
            raise self.failure(f"response has correlation id {number}, expected {expected}")
        self._in_flight.popleft()
        if sent.request is not None:
            yield sent.request, response
        else:
            self._take_versions(response)
        if self.is_ready:
            yield from self._write_waiting()

    # Version negotiation

    def _request_versions(self, chosen: int) -> None:
        body = ApiVersionsRequest(
            client_software_name="kohort",
            # The package itself is not imported here: its public names include the node.
            client_software_version=sys.modules["kohort"].__version__,
        )
        self._encode(body, API_VERSIONS_KEY, chosen, None)

    def _take_versions(self, response: ApiVersionsResponse) -> None:
        """A broker that does not know our version answers with those it knows (KIP-511)."""
        supported = {
            each.api_key: (each.min_version, each.max_version) for each in response.api_keys
        }
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION and not self._broker_versions:
            _, newest = supported.get(API_VERSIONS_KEY, (0, 0))
            self._broker_versions[API_VERSIONS_KEY] = (0, newest)
            self._request_versions(min(newest, _API_VERSIONS_VERSION))
            return
        if response.error_code != ErrorCode.NONE:
            raise self.failure(f"ApiVersions returned error {response.error_code}")
        self._broker_versions = supported
        self._move(SessionState.READY)


def _unsupported(
    api_key: int, ours: VersionRange, theirs: VersionRange | None
) -> UnsupportedByBroker:
    api = find_api(api_key)
    assert api is not None
    has = "not at all" if theirs is None else f"in versions {theirs[0]} to {theirs[1]}"
    return UnsupportedByBroker(
        f"{api.name} is needed in versions {ours[0]} to {ours[1]}; the broker supports it {has}"
    )


def _key_of(body: object) -> int:
    api_key = schema_of(type(body)).api_key
    assert api_key is not None, f"{type(body).__name__} is not a request"
    return api_key
