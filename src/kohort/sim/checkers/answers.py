"""Every question is answered once, in its turn, for as long as its connection lives."""

from collections import deque

from kohort.sim.checkers.violation import Violation
from kohort.sim.network import Link

_RULE = "answers"


class Answers:
    def __init__(self) -> None:
        self._waiting: dict[Link, deque[tuple[int, int]]] = {}

    def asked(self, link: Link, correlation_id: int, now_ms: int) -> None:
        self._waiting.setdefault(link, deque()).append((correlation_id, now_ms))

    def answered(self, link: Link, correlation_id: int) -> None:
        waiting = self._waiting.get(link)
        if not waiting:
            raise Violation(_RULE, f"{link.name} was told {correlation_id}, and had asked nothing")
        expected, _ = waiting.popleft()
        if expected != correlation_id:
            what = f"{link.name} was told {correlation_id}, when it was {expected}'s turn"
            raise Violation(_RULE, what)

    def hung_up(self, link: Link) -> None:
        self._waiting.pop(link, None)

    def check_end(self, now_ms: int, patience_ms: int) -> None:
        for link, waiting in self._waiting.items():
            if waiting and link.is_healthy and now_ms - waiting[0][1] > patience_ms:
                what = f"{link.name} has waited for {waiting[0][0]} since {waiting[0][1]} ms"
                raise Violation(_RULE, what)
