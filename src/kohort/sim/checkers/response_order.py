"""Every request gets exactly one response, in order, while its connection is open."""

from collections import deque

from kohort.sim.checkers import Violation
from kohort.sim.network import Link

_RULE = "responses"


class ResponseOrder:
    def __init__(self) -> None:
        self._waiting: dict[Link, deque[tuple[int, int]]] = {}

    def request_sent(self, link: Link, correlation_id: int, now_ms: int) -> None:
        self._waiting.setdefault(link, deque()).append((correlation_id, now_ms))

    def response_received(self, link: Link, correlation_id: int) -> None:
        waiting = self._waiting.get(link)
        if not waiting:
            raise Violation(
                _RULE, f"{link.name} got response {correlation_id} without a request in flight"
            )
        expected, _ = waiting.popleft()
        if expected != correlation_id:
            what = f"{link.name} got response {correlation_id} instead of {expected}"
            raise Violation(_RULE, what)

    def connection_closed(self, link: Link) -> None:
        self._waiting.pop(link, None)

    def check_end(self, now_ms: int, timeout_ms: int) -> None:
        for link, waiting in self._waiting.items():
            if waiting and link.is_healthy and now_ms - waiting[0][1] > timeout_ms:
                what = f"{link.name} has waited for {waiting[0][0]} since {waiting[0][1]} ms"
                raise Violation(_RULE, what)
