"""A request, the results that a handler can return, and parked requests."""

from collections import Counter
from collections.abc import Callable, Generator, Hashable, Iterable
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter
from struct import Struct
from types import GeneratorType
from typing import Any, Final, Generic, Protocol, TypeVar

from kohort.node.response_errors import ERROR_FINDERS
from kohort.types import Millis
from kohort.wire.envelope import encode_response
from kohort.wire.errors import UnencodableMessage
from kohort.wire.header import RequestHeader

T = TypeVar("T")
H = TypeVar("H", bound=Hashable)


class _Ticketed(Protocol):
    @property
    def ticket(self) -> int: ...


P = TypeVar("P", bound=_Ticketed)

_get_ticket: Final = attrgetter("ticket")

_CORRELATION_ID: Final = Struct(">i")


# What a handler returns: a response message, or one of these


class PreparedResponse:
    """A response that is sent often, encoded once; only the correlation id is filled in."""

    __slots__ = ("error", "rest", "start")

    def __init__(self, response: object, version: int) -> None:
        payload = encode_response(response, version, 0)
        self.error = ERROR_FINDERS[type(response)](response)
        self.start = payload[:4]
        self.rest = payload[8:]


@dataclass(frozen=True, slots=True)
class EncodedResponse:
    """A whole response frame that the handler has encoded itself."""

    payload: bytes
    error: int = 0


@dataclass(frozen=True, slots=True)
class Disconnect:
    """No response is expected or possible: the connection is closed instead."""

    reason: str


@dataclass(frozen=True, slots=True)
class AfterSync:
    """A response that waits until everything written so far is synced."""

    response: object


WROTE_FILES: Final = "wrote files"
"""Yielded after a slice that created, changed or removed files, which may have taken long."""

SlicedWork = Generator[Any, Millis, object]
"""Work that may be long: a handler that can take long is a generator function.

It yields between slices of less than a millisecond, and receives the time then; other connections
are served in between. A slice that writes files may take longer; it yields WROTE_FILES, and is the
last one of its event-loop iteration. The work returns what other handlers return. Slices are
measured in items or records, never in time, so that a simulation is deterministic. The work is
abandoned when the client disconnects, unless the request has `must_finish`.
"""

SlicedPart = Generator[Any, Millis, T]
"""A part of such work, which returns something else."""

ITEMS_PER_SLICE: Final = 100
"""Topics, partitions or other items of a request that are handled between two yields."""

NAMED_PER_SLICE: Final = 1_000
"""Items of a request that are only looked at between two yields."""


def count_in_slices(items: Iterable[H]) -> SlicedPart[Counter[H]]:
    """How often each item occurs, in the order of their first occurrence."""
    counts: Counter[H] = Counter()
    left = iter(items)
    while some := list(islice(left, NAMED_PER_SLICE)):
        if counts:
            yield
        counts.update(some)
    return counts


RESPONSE_BYTES_MAX: Final = 100 * 1024 * 1024
"""A request with a larger response is refused: a small request can name a large group, or all
settings of a topic, many times. As large as the largest request by default. librdkafka accepts no
larger response either."""

NO_RESPONSE: Final = EncodedResponse(b"")
"""A producer with acks=0 gets none."""

PARKED: Final = object()
"""The request was given to a runtime or to the purgatory, which answers it later."""


class RequestTemplate(Protocol):
    """Made from earlier requests of a connection, to read similar ones faster."""

    header: RequestHeader

    def read(self, frame: bytes) -> Any | None:
        """Return the body of a similar frame, or None if the frame must be decoded."""


class Responder(Protocol):
    """The connection a request came from."""

    def answered(self, request: "Request", /) -> None: ...

    def close(self, reason: str, /) -> None:
        """One of its requests is malformed."""

    def continue_later(self, request: "Request", work: "SlicedWork", /) -> None:
        """The response to a parked request is long work."""

    def hold_back(self, request: "Request", /) -> None:
        """Handle no request behind this one before it is answered."""

    def fail(self, error: Exception, /) -> None:
        """An internal error happened while one of its requests was handled."""


class Request:
    """A request is answered exactly once, in this iteration or a later one."""

    __slots__ = (
        "body",
        "client_host",
        "connection",
        "context",
        "correlation_id",
        "disconnect_reason",
        "error",
        "fetch_number",
        "header",
        "is_answered",
        "memo",
        "must_finish",
        "payload",
        "received_at",
        "template",
        "undecoded",
    )

    def __init__(
        self,
        header: RequestHeader,
        body: Any,
        client_host: str,
        connection: Responder,
        received_at: float = 0.0,
    ) -> None:
        self.header = header
        self.body = body
        self.client_host = client_host
        self.connection = connection
        self.payload = b""
        self.disconnect_reason: str | None = None
        self.is_answered = False
        self.must_finish = False
        # The body of a large request, which is decoded in slices.
        self.undecoded: Generator[None, Any, Any] | None = None
        # The correlation id as bytes, where the header is an earlier request's.
        self.correlation_id: bytes | None = None
        # What the handler keeps for its response, and the number its fetch is parked under.
        self.context: Any = None
        self.fetch_number: int | None = None
        # What a handler leaves for the connection's later requests: `memo` is what it made of a
        # body, for when the same bytes come again; `template` reads more of its kind.
        self.memo: Any = None
        self.template: RequestTemplate | None = None
        # For the metrics: when it was received, and the first error in its response.
        self.received_at = received_at
        self.error = 0

    @property
    def version(self) -> int:
        return self.header.request_api_version

    @property
    def client_id(self) -> str:
        return self.header.client_id or ""

    def answer(self, response: object) -> None:
        """Encode the response; the connection sends it."""
        assert not self.is_answered, f"{self.header} is already answered"
        header, number = self.header, self.correlation_id
        if type(response) is PreparedResponse:
            number = number or _CORRELATION_ID.pack(header.correlation_id)
            self.error = response.error
            self.payload = response.start + number + response.rest
        elif type(response) is EncodedResponse:
            self.error = response.error
            self.payload = response.payload
        elif type(response) is Disconnect:
            self.payload = b""
            self.disconnect_reason = response.reason
        else:
            correlation_id = (
                header.correlation_id if number is None else _CORRELATION_ID.unpack(number)[0]
            )
            self.error = ERROR_FINDERS[type(response)](response)
            try:
                self.payload = encode_response(response, header.request_api_version, correlation_id)
            except UnencodableMessage as error:
                self.payload = b""
                self.disconnect_reason = str(error)
        self.is_answered = True
        self.connection.answered(self)


Respond = Callable[[Request, T], object]
"""Makes the response from the reply, or from the result of a fetch."""


class Parked(Generic[T]):
    """A request that waits for one reply, or for the result of a fetch."""

    __slots__ = ("_request", "_respond")

    def __init__(self, request: Request, respond: Respond[T]) -> None:
        self._request = request
        self._respond = respond

    def deliver(self, reply: T) -> None:
        request = self._request
        try:
            response = self._respond(request, reply)
            if type(response) is GeneratorType:
                request.connection.continue_later(request, response)
            else:
                request.answer(response)
        except Exception as error:  # it affects only this request
            self.fail(error)

    def fail(self, error: Exception) -> None:
        self._request.connection.fail(error)


class ParkedForMany(Generic[P]):
    """A request that waits for several replies, in the order of their tickets."""

    __slots__ = ("_count", "_replies", "_whole")

    def __init__(self, request: Request, respond: Respond[list[P]], count: int) -> None:
        self._whole = Parked(request, respond)
        self._replies: list[P] = []
        self._count = count

    def deliver(self, reply: P) -> None:
        self._replies.append(reply)
        if len(self._replies) == self._count:
            self._replies.sort(key=_get_ticket)
            self._whole.deliver(self._replies)


class HeldResponse:
    """A response that waits for a sync."""

    __slots__ = ("_request", "_response")

    def __init__(self, request: Request, response: object) -> None:
        self._request = request
        self._response = response

    def release(self) -> None:
        try:
            self._request.answer(self._response)
        except Exception as error:  # it affects only this request
            self._request.connection.fail(error)
