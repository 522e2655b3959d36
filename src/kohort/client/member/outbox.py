"""What a member has said while it handled one event, and who waits for which answer.

An answer that nobody waits for any more, because it is late or was given up, is dropped here.
"""

from collections.abc import Callable

from kohort.client.member.effects import Broker, Effect, Send
from kohort.client.member.events import Loss, RequestNumber
from kohort.types import Millis

OnAnswer = Callable[[object, Millis], None]
"""Takes the response, or a Loss where there is none, and the time."""


class Outbox:
    def __init__(self) -> None:
        self._effects: list[Effect] = []
        self._waiting: dict[RequestNumber, OnAnswer] = {}
        self._sent = 0

    def say(self, effect: Effect) -> None:
        self._effects.append(effect)

    def send(
        self, body: object, to: Broker | None, timeout_ms: Millis, then: OnAnswer
    ) -> RequestNumber:
        self._sent += 1
        number = RequestNumber(self._sent)
        self._waiting[number] = then
        self.say(Send(number=number, broker=to, body=body, timeout_ms=timeout_ms))
        return number

    def forget(self, number: RequestNumber | None) -> None:
        """Whatever is answered under this number is of no interest any more."""
        if number is not None:
            self._waiting.pop(number, None)

    def answer(self, number: RequestNumber, answer: object | Loss, now: Millis) -> None:
        then = self._waiting.pop(number, None)
        if then is not None:
            then(answer, now)

    def take(self) -> list[Effect]:
        effects, self._effects = self._effects, []
        return effects
