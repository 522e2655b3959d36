"""Requests of the consumer, queued for the background thread."""

from collections.abc import Callable
from enum import Enum, auto
from typing import Any

from kohort.client.member.effects import BrokerAddress
from kohort.client.member.member_events import RequestFailure
from kohort.protocol.errors import ConnectFailed, ProtocolError, RequestTimedOut
from kohort.types import Millis, value
from kohort.wire.api.k01_fetch import FetchRequest
from kohort.wire.api.k11_join_group import JoinGroupRequest


class Lane(Enum):
    """Each lane is a separate connection to the broker.

    A broker responds in order, so slow requests get a connection of their own.
    """

    CALL = auto()
    JOIN = auto()
    FETCH = auto()


Response = Any
"""The response message of the request's type, or a RequestFailure."""


@value
class ClientRequest:
    broker: BrokerAddress | None
    """None for any broker."""
    lane: Lane
    body: object
    timeout_ms: Millis
    callback: Callable[[Response, Millis], None]
    """Called exactly once, with the response and the time."""
    version_max: int | None = None
    """Set if newer versions cannot encode the body."""


class SendQueue:
    """The consumer's state machines add requests; the background thread takes them."""

    def __init__(self) -> None:
        self._requests: list[ClientRequest] = []

    def send(
        self,
        body: object,
        to: BrokerAddress | None,
        timeout_ms: Millis,
        then: Callable[[Response, Millis], None],
        *,
        version_max: int | None = None,
    ) -> None:
        request = ClientRequest(
            broker=to,
            lane=lane_of(body),
            body=body,
            timeout_ms=timeout_ms,
            callback=then,
            version_max=version_max,
        )
        self._requests.append(request)

    @property
    def is_empty(self) -> bool:
        return not self._requests

    def take(self) -> list[ClientRequest]:
        requests, self._requests = self._requests, []
        return requests


def lane_of(body: object) -> Lane:
    if isinstance(body, JoinGroupRequest):
        return Lane.JOIN
    return Lane.FETCH if isinstance(body, FetchRequest) else Lane.CALL


def failure_of(error: ProtocolError) -> RequestFailure:
    match error:
        case ConnectFailed():
            return RequestFailure.UNREACHABLE
        case RequestTimedOut():
            return RequestFailure.TIMED_OUT
        case _:
            return RequestFailure.DISCONNECTED
