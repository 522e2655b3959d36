"""Reads along where bytes enter and leave the node, and understands what is about groups.

It stands outside: all it knows is what any listener on the wire could know, and in which order.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from kohort.sim.network import Link
from kohort.wire.envelope import decode_request, decode_response, peek_request
from kohort.wire.frame import FrameReader

OFFSET_COMMIT, OFFSET_FETCH, JOIN_GROUP, HEARTBEAT, SYNC_GROUP = 8, 9, 11, 12, 14

_UNDERSTOOD: Final = frozenset({OFFSET_COMMIT, OFFSET_FETCH, JOIN_GROUP, HEARTBEAT, SYNC_GROUP})


class Exchange:
    """A question as it arrived at the node, and later its answer."""

    __slots__ = ("api_key", "link", "moment", "order", "question", "version")

    def __init__(self, link: Link, order: int, api_key: int, version: int, question: Any) -> None:
        self.link = link
        self.order = order
        """The how-manieth question of all."""
        self.api_key = api_key
        self.version = version
        self.question = question
        self.moment: Any = None
        """What was true of its group when it arrived, for the checker that wants to know."""


class _Wire:
    def __init__(self) -> None:
        self.questions = FrameReader()
        self.answers = FrameReader()
        self.waiting: deque[Exchange] = deque()


class WireTap:
    def __init__(
        self,
        on_question: Callable[[Exchange], None],
        on_answer: Callable[[Exchange, Any], None],
    ) -> None:
        self._on_question = on_question
        self._on_answer = on_answer
        self._wires: dict[Link, _Wire] = {}
        self._arrived = 0

    def received(self, link: Link, data: bytes) -> None:
        wire = self._wires.get(link)
        if wire is None:
            wire = self._wires[link] = _Wire()
        for frame in wire.questions.feed(data):
            self._arrived += 1
            api_key, version = peek_request(frame)
            question = decode_request(frame)[1] if api_key in _UNDERSTOOD else None
            exchange = Exchange(link, self._arrived, api_key, version, question)
            wire.waiting.append(exchange)
            if question is not None:
                self._on_question(exchange)

    def sent(self, link: Link, data: bytes) -> None:
        wire = self._wires[link]
        for frame in wire.answers.feed(data):
            if not wire.waiting:
                # Whoever asked will say that it did not.
                return
            exchange = wire.waiting.popleft()
            if exchange.question is not None:
                answer = decode_response(frame, exchange.api_key, exchange.version)[1]
                self._on_answer(exchange, answer)
