"""Requests that wait to be sent, so that whoever thinks of one need not know how it travels."""

from collections.abc import Callable

from kohort.client.member.effects import Broker
from kohort.client.network.requests import Answer, Request, lane_of
from kohort.types import Millis


class Post:
    def __init__(self) -> None:
        self._requests: list[Request] = []

    def send(
        self,
        body: object,
        to: Broker | None,
        timeout_ms: Millis,
        then: Callable[[Answer, Millis], None],
        *,
        version_max: int | None = None,
    ) -> None:
        request = Request(
            broker=to,
            lane=lane_of(body),
            body=body,
            timeout_ms=timeout_ms,
            then=then,
            version_max=version_max,
        )
        self._requests.append(request)

    @property
    def is_empty(self) -> bool:
        return not self._requests

    def take(self) -> list[Request]:
        requests, self._requests = self._requests, []
        return requests
