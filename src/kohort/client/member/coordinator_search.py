"""Which broker coordinates the group: known, asked for, or to be asked for again in a while."""

from collections.abc import Callable

from kohort.client.backoff import Backoff
from kohort.client.errors import ConsumerError
from kohort.client.member.effects import Broker
from kohort.client.member.events import Loss, RequestNumber
from kohort.client.member.outbox import Outbox
from kohort.client.member.settings import MemberSettings
from kohort.client.refusals import RETRIABLE, refusal
from kohort.types import ErrorCode, Millis
from kohort.wire.api.k10_find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

_GROUP = 0
"""The type of key we ask about."""


class CoordinatorSearch:
    def __init__(
        self,
        settings: MemberSettings,
        outbox: Outbox,
        backoff: Backoff,
        *,
        found: Callable[[Millis], None],
        lost: Callable[[Millis], None],
        refused: Callable[[ConsumerError, Millis], None],
    ) -> None:
        self._settings = settings
        self._outbox = outbox
        self._backoff = backoff
        self._found = found
        self._lost = lost
        self._refused = refused
        self.coordinator: Broker | None = None
        self._number: RequestNumber | None = None
        self._attempts = 0
        self._retry_at: Millis | None = None
        self._is_halted = False

    def lose(self, now: Millis) -> None:
        """The coordinator does not answer, or says that it is none."""
        self.coordinator = None
        self._lost(now)

    def lose_if(self, broker: Broker | None, now: Millis) -> None:
        """This one does not answer; but meanwhile another may have been found."""
        if self.coordinator is not None and self.coordinator == broker:
            self.lose(now)

    def resume(self) -> None:
        """After a refusal nothing is asked until the program asks for something again."""
        self._is_halted = False

    def look(self, now: Millis) -> None:
        """Ask, unless it is known, being asked, or too early."""
        if self.coordinator is not None or self._number is not None or self._is_halted:
            return
        if self._retry_at is not None and now < self._retry_at:
            return
        self._retry_at = None
        body = FindCoordinatorRequest(key_type=_GROUP, coordinator_keys=(self._settings.group_id,))
        self._number = self._outbox.send(
            body, None, self._settings.request_timeout_ms, self._on_answer
        )

    def due(self) -> Millis | None:
        is_waiting = self.coordinator is None and self._number is None and not self._is_halted
        return self._retry_at if is_waiting else None

    def _on_answer(self, answer: object, now: Millis) -> None:
        self._number = None
        if isinstance(answer, Loss):
            self._try_again(now)
            return
        assert isinstance(answer, FindCoordinatorResponse)
        named = [each for each in answer.coordinators if each.key == self._settings.group_id]
        if len(named) != 1:
            self._try_again(now)
            return
        self._on_named(named[0], now)

    def _on_named(self, named: Coordinator, now: Millis) -> None:
        if named.error_code == ErrorCode.NONE:
            self.coordinator = Broker(node_id=named.node_id, host=named.host, port=named.port)
            self._attempts = 0
            self._found(now)
        elif named.error_code in RETRIABLE:
            self._try_again(now)
        else:
            self._is_halted = True
            self._refused(
                refusal(self._settings.group_id, named.error_code, "looking for the coordinator"),
                now,
            )

    def _try_again(self, now: Millis) -> None:
        self._retry_at = self._backoff.after(now, self._attempts)
        self._attempts += 1
