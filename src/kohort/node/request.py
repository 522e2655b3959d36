"""A request on its way to its answer: what was asked, by whom, and where the answer goes."""

from collections.abc import Callable
from struct import Struct
from typing import Any, Final, Protocol

from kohort.node.faults import FINDERS
from kohort.wire.envelope import encode_response
from kohort.wire.errors import UnencodableMessage
from kohort.wire.header import RequestHeader

_NUMBER: Final = Struct(">i")


class Known(Protocol):
    """What is known of a client's requests from earlier ones, so that the next is read quickly."""

    header: RequestHeader

    def read(self, frame: bytes) -> Any | None:
        """The body of a frame that begins as the header says, or None: it must be decoded."""


class Ready:
    """An answer that is given often, encoded once; only the question's number is still put in."""

    __slots__ = ("error", "rest", "start")

    def __init__(self, response: object, version: int) -> None:
        payload = encode_response(response, version, 0)
        self.error = FINDERS[type(response)](response)
        self.start = payload[:4]
        self.rest = payload[8:]


class Request:
    """Answered exactly once, at once or later. Answers of one connection leave in order."""

    __slots__ = (
        "_on_answer",
        "body",
        "client_host",
        "error",
        "hang_up_reason",
        "header",
        "is_answered",
        "known",
        "memo",
        "number",
        "on_abandoned",
        "payload",
        "taken_at",
    )

    def __init__(
        self,
        header: RequestHeader,
        body: Any,
        client_host: str,
        on_answer: "Callable[[Request], None]",
        taken_at: float = 0.0,
    ) -> None:
        self.header = header
        self.body = body
        self.client_host = client_host
        self.payload = b""
        self.hang_up_reason: str | None = None
        self.is_answered = False
        self.on_abandoned: Callable[[], None] | None = None
        self._on_answer = on_answer
        # The correlation id as it came, where the header is an earlier request's.
        self.number: bytes | None = None
        # What a handler may leave for the connection to keep. `memo` is what it made of a body, for
        # the case that the very same is asked again; `known` helps to read more of its kind.
        self.memo: Any = None
        self.known: Known | None = None
        # For the figures: when it was taken up, and the first error it was answered with.
        self.taken_at = taken_at
        self.error = 0

    def ask_again(self, number: bytes, taken_at: float) -> None:
        """The same client asks the same once more: only the number and the time are new."""
        assert self.is_answered, f"{self.header} is not answered yet"
        self.is_answered = False
        self.payload = b""
        self.error = 0
        self.number = number
        self.taken_at = taken_at

    @property
    def version(self) -> int:
        return self.header.request_api_version

    @property
    def client_id(self) -> str:
        return self.header.client_id or ""

    def answer(self, response: object) -> None:
        header, number = self.header, self.number
        correlation_id = header.correlation_id if number is None else _NUMBER.unpack(number)[0]
        self.error = FINDERS[type(response)](response)
        try:
            payload = encode_response(response, header.request_api_version, correlation_id)
        except UnencodableMessage as error:
            self.hang_up(str(error))
        else:
            self._finish(payload)

    def answer_ready(self, ready: Ready) -> None:
        number = self.number or _NUMBER.pack(self.header.correlation_id)
        self.error = ready.error
        self._finish(ready.start + number + ready.rest)

    def answer_encoded(self, payload: bytes) -> None:
        """For an answer whose bytes its handler has made itself."""
        self._finish(payload)

    def answer_nothing(self) -> None:
        """A producer that asked for no acknowledgement gets none."""
        self._finish(b"")

    def hang_up(self, reason: str) -> None:
        """Where no answer is expected or none is possible, the end of the connection is one."""
        self.hang_up_reason = reason
        self._finish(b"")

    def abandon(self) -> None:
        """Whoever asked is gone. What would only be done for them is dropped."""
        if self.on_abandoned is not None and not self.is_answered:
            self.on_abandoned()

    def _finish(self, payload: bytes) -> None:
        assert not self.is_answered, f"{self.header} is answered already"
        self.payload = payload
        self.is_answered = True
        self._on_answer(self)
