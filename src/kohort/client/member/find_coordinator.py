"""FindCoordinator: which broker coordinates the group."""

from collections.abc import Callable

from kohort.client.error_codes import RETRIABLE, group_error
from kohort.client.errors import ConsumerError
from kohort.client.member.effects import BrokerAddress
from kohort.client.member.member_events import RequestFailure, RequestId
from kohort.client.member.member_settings import MemberSettings
from kohort.client.member.outbox import Outbox
from kohort.protocol.backoff import Backoff
from kohort.types import ErrorCode, Millis
from kohort.wire.api.k10_find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

_GROUP = 0
"""The coordinator key type of groups."""


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
        self.coordinator: BrokerAddress | None = None
        self._request_id: RequestId | None = None
        self._attempts = 0
        self._retry_at: Millis | None = None
        self._is_halted = False

    def mark_unknown(self, now: Millis) -> None:
        """The coordinator does not respond, or reports that it is not the coordinator."""
        self.coordinator = None
        self._lost(now)

    def mark_unknown_if(self, broker: BrokerAddress | None, now: Millis) -> None:
        """The same, unless another coordinator has been found meanwhile."""
        if self.coordinator is not None and self.coordinator == broker:
            self.mark_unknown(now)

    def resume(self) -> None:
        """Search again after a fatal error; called when the application makes a new call."""
        self._is_halted = False

    def advance(self, now: Millis) -> None:
        """Send the request unless the coordinator is known or the request must wait."""
        if self.coordinator is not None or self._request_id is not None or self._is_halted:
            return
        if self._retry_at is not None and now < self._retry_at:
            return
        self._retry_at = None
        body = FindCoordinatorRequest(key_type=_GROUP, coordinator_keys=(self._settings.group_id,))
        self._request_id = self._outbox.send(
            body, None, self._settings.request_timeout_ms, self._on_response
        )

    def due(self) -> Millis | None:
        is_waiting = self.coordinator is None and self._request_id is None and not self._is_halted
        return self._retry_at if is_waiting else None

    def _on_response(self, response: object, now: Millis) -> None:
        self._request_id = None
        if isinstance(response, RequestFailure):
            self._try_again(now)
            return
        assert isinstance(response, FindCoordinatorResponse)
        found = [each for each in response.coordinators if each.key == self._settings.group_id]
        if len(found) != 1:
            self._try_again(now)
            return
        self._on_coordinator(found[0], now)

    def _on_coordinator(self, found: Coordinator, now: Millis) -> None:
        if found.error_code == ErrorCode.NONE:
            self.coordinator = BrokerAddress(
                node_id=found.node_id, host=found.host, port=found.port
            )
            self._attempts = 0
            self._found(now)
        elif found.error_code in RETRIABLE:
            self._try_again(now)
        else:
            self._is_halted = True
            self._refused(
                group_error(self._settings.group_id, found.error_code, "FindCoordinator"),
                now,
            )

    def _try_again(self, now: Millis) -> None:
        self._retry_at = self._backoff.after(now, self._attempts)
        self._attempts += 1
