"""Collects the effects of one event, and the callbacks of requests that are in flight.

A response whose request was cancelled is dropped here.
"""

from collections.abc import Callable

from kohort.client.member.effects import BrokerAddress, MemberEffect, SendRequest
from kohort.client.member.member_events import RequestFailure, RequestId
from kohort.types import Millis

OnResponse = Callable[[object, Millis], None]
"""Takes the response, or the RequestFailure, and the time."""


class Outbox:
    def __init__(self) -> None:
        self._effects: list[MemberEffect] = []
        self._in_flight: dict[RequestId, OnResponse] = {}
        self._sent = 0

    def add(self, effect: MemberEffect) -> None:
        self._effects.append(effect)

    def send(
        self, body: object, to: BrokerAddress | None, timeout_ms: Millis, then: OnResponse
    ) -> RequestId:
        self._sent += 1
        request_id = RequestId(self._sent)
        self._in_flight[request_id] = then
        self.add(SendRequest(request_id=request_id, broker=to, body=body, timeout_ms=timeout_ms))
        return request_id

    def cancel(self, request_id: RequestId | None) -> None:
        """Ignore the response of this request."""
        if request_id is not None:
            self._in_flight.pop(request_id, None)

    def on_response(
        self, request_id: RequestId, response: object | RequestFailure, now: Millis
    ) -> None:
        then = self._in_flight.pop(request_id, None)
        if then is not None:
            then(response, now)

    def take(self) -> list[MemberEffect]:
        effects, self._effects = self._effects, []
        return effects
