"""Tracks what the application does, as far as a member can know: in poll, in its listener, or busy.

Listeners run on the application's thread, so the member calls them only while it is in poll.
"""

from typing import Final

from kohort.client.member.effects import AssignmentChange, AwaitPoll, CallListener
from kohort.client.member.member_settings import MemberSettings
from kohort.client.member.membership import Membership, MemberState
from kohort.client.member.outbox import Outbox
from kohort.types import Millis, TopicPartition

_WATCHED: Final = frozenset(MemberState) - {
    MemberState.UNJOINED,
    MemberState.LEAVING,
    MemberState.ENDED,
}


class PollTracker:
    def __init__(self, settings: MemberSettings, outbox: Outbox, membership: Membership) -> None:
        self._settings = settings
        self._outbox = outbox
        self._membership = membership
        self._is_in_poll = False
        self._is_poll_awaited = False
        self._polled_at = Millis(0)
        self._waiting_since: Millis | None = None
        self.call: CallListener | None = None
        """The listener call that is requested or in progress."""
        self._called_at = Millis(0)

    def enter_poll(self, now: Millis) -> None:
        """The application is in poll until the current event is handled."""
        self._is_in_poll = True
        self._is_poll_awaited = False
        self._polled_at = now
        self._membership.on_poll(now)
        if self._waiting_since is not None:
            if self._membership.current_rebalance is not None:
                self._membership.current_rebalance.poll_wait_ms += now - self._waiting_since
            self._waiting_since = None

    def leave_poll(self) -> None:
        self._is_in_poll = False

    @property
    def is_busy(self) -> bool:
        """Neither in poll nor in its listener: its next poll may be far away."""
        return not self._is_in_poll and self.call is None

    def can_call_listener(self, now: Millis) -> bool:
        """Whether the listener can be called now. If not, request the next poll."""
        if self.call is not None:
            return False
        # Unsubscribe and close wait for the member, and call the listener themselves.
        if self._is_in_poll or self._membership.state is MemberState.LEAVING:
            return True
        if self._waiting_since is None:
            self._waiting_since = now
        self._await_poll()
        return False

    def stop_waiting(self) -> None:
        """The listener call that waited for a poll is not needed any more."""
        self._waiting_since = None

    def call_listener(
        self, change: AssignmentChange, partitions: frozenset[TopicPartition], now: Millis
    ) -> None:
        assert self.call is None, f"{self.call} is in progress"
        self.call = CallListener(change=change, partitions=partitions)
        self._called_at = now
        self._outbox.add(self.call)

    def on_listener_returned(self, now: Millis) -> CallListener | None:
        """The call that has returned."""
        call, self.call = self.call, None
        current = self._membership.current_rebalance
        if call is not None and current is not None:
            # The call may have started in the previous rebalance.
            current.listener_ms += now - max(self._called_at, current.started_at)
        return call

    def check_poll(self, now: Millis) -> None:
        """After half of max.poll.interval.ms, check whether the application waits in poll."""
        if self._membership.state in _WATCHED and now >= self._check_at:
            self._await_poll()

    def is_overdue(self, now: Millis) -> bool:
        """Whether max.poll.interval.ms has passed. Matters only to a member of a generation."""
        is_in = self._membership.is_joined and self._membership.state in _WATCHED
        return is_in and now >= self._polled_at + self._settings.max_poll_interval_ms

    def due(self) -> Millis | None:
        if self._membership.state not in _WATCHED:
            return None
        if not self._is_poll_awaited:
            return self._check_at
        if not self._membership.is_joined:
            return None
        return Millis(self._polled_at + self._settings.max_poll_interval_ms)

    @property
    def _check_at(self) -> Millis:
        return Millis(self._polled_at + self._settings.max_poll_interval_ms // 2)

    def _await_poll(self) -> None:
        if not self._is_poll_awaited:
            self._is_poll_awaited = True
            self._outbox.add(AwaitPoll())
