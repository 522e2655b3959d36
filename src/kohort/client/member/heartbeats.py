"""Heartbeats, and the session timeout, after which an unresponsive coordinator is unknown."""

from typing import Final

from kohort.client.error_codes import COORDINATOR_MOVED, error_code
from kohort.client.errors import FencedInstanceIdError
from kohort.client.member.find_coordinator import CoordinatorSearch
from kohort.client.member.member_events import RequestFailure, RequestId
from kohort.client.member.member_settings import MemberSettings
from kohort.client.member.membership import MemberGeneration, Membership, MemberState
from kohort.client.member.outbox import Outbox
from kohort.protocol.backoff import Backoff
from kohort.types import ErrorCode, Millis
from kohort.wire.api.k12_heartbeat import HeartbeatRequest, HeartbeatResponse

_GENERATION_ENDED: Final = frozenset(
    {ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID}
)


class Heartbeats:
    def __init__(
        self,
        settings: MemberSettings,
        outbox: Outbox,
        backoff: Backoff,
        membership: Membership,
        search: CoordinatorSearch,
    ) -> None:
        self._settings = settings
        self._outbox = outbox
        self._backoff = backoff
        self._membership = membership
        self._search = search
        self._heartbeat_at = Millis(0)
        self._session_ends_at = Millis(0)
        self._request_id: RequestId | None = None
        self._attempts = 0

    def start(self, now: Millis) -> None:
        """A new generation: the session starts now."""
        self.cancel()
        self._heartbeat_at = Millis(now + self._settings.heartbeat_interval_ms)
        self.extend(now)

    def extend(self, now: Millis) -> None:
        """The coordinator has responded."""
        self._session_ends_at = Millis(now + self._settings.session_timeout_ms)

    def cancel(self) -> None:
        self._outbox.cancel(self._request_id)
        self._request_id = None

    def check(self, now: Millis) -> None:
        """Mark the coordinator unknown if it has not responded for a whole session timeout."""
        is_known = self._membership.is_joined and self._search.coordinator is not None
        if is_known and now >= self._session_ends_at:
            self._search.mark_unknown(now)

    def advance(self, now: Millis) -> None:
        coordinator = self._search.coordinator
        if not self._membership.is_joined or coordinator is None:
            return
        # One in flight at a time: a second one would wait behind the first.
        if self._request_id is None and now >= self._heartbeat_at:
            generation = self._membership.generation
            body = HeartbeatRequest(
                group_id=self._settings.group_id,
                generation_id=generation.generation_id,
                member_id=generation.member_id,
                group_instance_id=self._settings.instance_id,
            )
            self._heartbeat_at = Millis(now + self._settings.heartbeat_interval_ms)
            self._request_id = self._outbox.send(
                body,
                coordinator,
                self._settings.request_timeout_ms,
                lambda response, at: self._on_response(generation, response, at),
            )

    def due(self) -> Millis | None:
        if not self._membership.is_joined or self._search.coordinator is None:
            return None
        if self._request_id is not None:
            return self._session_ends_at
        return min(self._heartbeat_at, self._session_ends_at)

    def _on_response(self, sent: MemberGeneration, response: object, now: Millis) -> None:
        self._request_id = None
        if isinstance(response, RequestFailure):
            self._search.mark_unknown(now)
            self._try_again(now)
            return
        assert isinstance(response, HeartbeatResponse)
        error = error_code(response.error_code)
        if error is ErrorCode.NONE:
            self._on_success(now)
        elif error is ErrorCode.REBALANCE_IN_PROGRESS:
            self._on_success(now)
            # In other states the member is rejoining already.
            if self._membership.state in (MemberState.STABLE, MemberState.ASSIGNING):
                self._membership.request_rejoin("group is already rebalancing", now)
        elif error in _GENERATION_ENDED:
            self._on_generation_ended(sent, error, now)
        else:
            if error in COORDINATOR_MOVED:
                self._search.mark_unknown(now)
            self._try_again(now)

    def _on_success(self, now: Millis) -> None:
        self._attempts = 0
        self.extend(now)

    def _on_generation_ended(self, sent: MemberGeneration, error: ErrorCode, now: Millis) -> None:
        if sent != self._membership.generation:
            return
        reason = f"encountered {error.name} from HEARTBEAT response"
        if error is ErrorCode.FENCED_INSTANCE_ID:
            self._membership.fence(FencedInstanceIdError(self._settings.instance_id), reason, now)
        else:
            keeps_id = error is ErrorCode.ILLEGAL_GENERATION
            self._membership.reset(reason, now, keeps_id=keeps_id)

    def _try_again(self, now: Millis) -> None:
        self._heartbeat_at = self._backoff.after(now, self._attempts)
        self._attempts += 1
