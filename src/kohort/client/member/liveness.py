"""How a member shows the coordinator that it lives, and notices that the coordinator does not."""

from typing import Final

from kohort.client.backoff import Backoff
from kohort.client.errors import Fenced
from kohort.client.member.coordinator_search import CoordinatorSearch
from kohort.client.member.events import Loss, RequestNumber
from kohort.client.member.membership import Membership, MemberState, Standing
from kohort.client.member.outbox import Outbox
from kohort.client.member.settings import MemberSettings
from kohort.client.refusals import NOT_THERE, named
from kohort.types import ErrorCode, Millis
from kohort.wire.api.k12_heartbeat import HeartbeatRequest, HeartbeatResponse

_OVER: Final = frozenset(
    {ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID}
)


class Liveness:
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
        self._number: RequestNumber | None = None
        self._attempts = 0

    def start(self, now: Millis) -> None:
        """A new generation: the coordinator counts from now."""
        self.forget()
        self._heartbeat_at = Millis(now + self._settings.heartbeat_interval_ms)
        self.extend(now)

    def extend(self, now: Millis) -> None:
        """The coordinator was heard of."""
        self._session_ends_at = Millis(now + self._settings.session_timeout_ms)

    def forget(self) -> None:
        self._outbox.forget(self._number)
        self._number = None

    def check(self, now: Millis) -> None:
        """A coordinator that has been silent for too long is none."""
        is_known = self._membership.is_joined and self._search.coordinator is not None
        if is_known and now >= self._session_ends_at:
            self._search.lose(now)

    def beat(self, now: Millis) -> None:
        coordinator = self._search.coordinator
        if not self._membership.is_joined or coordinator is None:
            return
        # One at a time: while the first has no answer, a second would have none either.
        if self._number is None and now >= self._heartbeat_at:
            standing = self._membership.standing
            body = HeartbeatRequest(
                group_id=self._settings.group_id,
                generation_id=standing.generation,
                member_id=standing.member_id,
                group_instance_id=self._settings.instance_id,
            )
            self._heartbeat_at = Millis(now + self._settings.heartbeat_interval_ms)
            self._number = self._outbox.send(
                body,
                coordinator,
                self._settings.request_timeout_ms,
                lambda answer, at: self._on_answer(standing, answer, at),
            )

    def due(self) -> Millis | None:
        if not self._membership.is_joined or self._search.coordinator is None:
            return None
        if self._number is not None:
            return self._session_ends_at
        return min(self._heartbeat_at, self._session_ends_at)

    def _on_answer(self, sent: Standing, answer: object, now: Millis) -> None:
        self._number = None
        if isinstance(answer, Loss):
            self._search.lose(now)
            self._try_again(now)
            return
        assert isinstance(answer, HeartbeatResponse)
        error = named(answer.error_code)
        if error is ErrorCode.NONE:
            self._on_heard(now)
        elif error is ErrorCode.REBALANCE_IN_PROGRESS:
            self._on_heard(now)
            # In the midst of a rebalance it is no news.
            if self._membership.state in (MemberState.STABLE, MemberState.ASSIGNING):
                self._membership.request_rejoin("group is already rebalancing", now)
        elif error in _OVER:
            self._on_over(sent, error, now)
        else:
            if error in NOT_THERE:
                self._search.lose(now)
            self._try_again(now)

    def _on_heard(self, now: Millis) -> None:
        self._attempts = 0
        self.extend(now)

    def _on_over(self, sent: Standing, error: ErrorCode, now: Millis) -> None:
        if sent != self._membership.standing:
            return
        reason = f"encountered {error.name} from HEARTBEAT response"
        if error is ErrorCode.FENCED_INSTANCE_ID:
            self._membership.fence(Fenced(self._settings.instance_id), reason, now)
        else:
            keeps_id = error is ErrorCode.ILLEGAL_GENERATION
            self._membership.reset(reason, now, keeps_id=keeps_id)

    def _try_again(self, now: Millis) -> None:
        self._heartbeat_at = self._backoff.after(now, self._attempts)
        self._attempts += 1
