"""Where the program is, as far as a member can tell: in poll, at work, or hearing of a change.

Its listener is called on its own thread, so nothing is asked of it but while it is in poll.
"""

from typing import Final

from kohort.client.member.effects import AwaitPoll, Call, Change
from kohort.client.member.membership import Membership, MemberState
from kohort.client.member.outbox import Outbox
from kohort.client.member.settings import MemberSettings
from kohort.client.topic_partition import TopicPartition
from kohort.types import Millis

_WATCHED: Final = frozenset(MemberState) - {
    MemberState.UNJOINED,
    MemberState.LEAVING,
    MemberState.ENDED,
}


class Program:
    def __init__(self, settings: MemberSettings, outbox: Outbox, membership: Membership) -> None:
        self._settings = settings
        self._outbox = outbox
        self._membership = membership
        self._is_present = False
        self._is_awaited = False
        self._polled_at = Millis(0)
        self._waiting_since: Millis | None = None
        self.call: Call | None = None
        """What the listener is hearing, or about to hear."""
        self._called_at = Millis(0)

    def arrive(self, now: Millis) -> None:
        """It is in poll, and stays there until the event at hand is handled."""
        self._is_present = True
        self._is_awaited = False
        self._polled_at = now
        self._membership.want(now)
        if self._waiting_since is not None:
            if self._membership.draft is not None:
                self._membership.draft.waited_ms += now - self._waiting_since
            self._waiting_since = None

    def depart(self) -> None:
        self._is_present = False

    @property
    def is_away(self) -> bool:
        """Neither in poll nor hearing of a change: it may be long until it can be told anything."""
        return not self._is_present and self.call is None

    def is_ready(self, now: Millis) -> bool:
        """Whether its listener can be called; if not, it is asked to tell when it can."""
        if self.call is not None:
            return False
        # Unsubscribe and close wait for the member, and call the listener themselves.
        if self._is_present or self._membership.state is MemberState.LEAVING:
            return True
        if self._waiting_since is None:
            self._waiting_since = now
        self._ask()
        return False

    def stop_waiting(self) -> None:
        """What it was awaited for is to be done in another way, or not at all."""
        self._waiting_since = None

    def tell(self, change: Change, partitions: frozenset[TopicPartition], now: Millis) -> None:
        assert self.call is None, f"{self.call} is under way"
        self.call = Call(change=change, partitions=partitions)
        self._called_at = now
        self._outbox.say(self.call)

    def hear_back(self, now: Millis) -> Call | None:
        """The listener has returned, from this."""
        call, self.call = self.call, None
        draft = self._membership.draft
        if call is not None and draft is not None:
            # It may have been called for the rebalance before.
            draft.callback_ms += now - max(self._called_at, draft.began_at)
        return call

    def look(self, now: Millis) -> None:
        """In time before the program would be taken for stuck, ask whether it is only waiting."""
        if self._membership.state in _WATCHED and now >= self._ask_at:
            self._ask()

    def is_overdue(self, now: Millis) -> bool:
        """It has been away for too long. Only a member of a generation has something to lose."""
        is_in = self._membership.is_joined and self._membership.state in _WATCHED
        return is_in and now >= self._polled_at + self._settings.max_poll_interval_ms

    def due(self) -> Millis | None:
        if self._membership.state not in _WATCHED:
            return None
        if not self._is_awaited:
            return self._ask_at
        if not self._membership.is_joined:
            return None
        return Millis(self._polled_at + self._settings.max_poll_interval_ms)

    @property
    def _ask_at(self) -> Millis:
        return Millis(self._polled_at + self._settings.max_poll_interval_ms // 2)

    def _ask(self) -> None:
        if not self._is_awaited:
            self._is_awaited = True
            self._outbox.say(AwaitPoll())
