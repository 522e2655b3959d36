"""The way out: commit, tell the listener, say goodbye, one after the other.

LeaveGroup spares the others the wait for the session to end. Static members just go, so that they
can come back to their place.
"""

from collections.abc import Callable
from typing import Final

from kohort.client.member.committing import Commits
from kohort.client.member.coordinator_search import CoordinatorSearch
from kohort.client.member.effects import Change
from kohort.client.member.handover import Handover
from kohort.client.member.membership import NO_MEMBER, Membership, MemberState
from kohort.client.member.outbox import OnAnswer, Outbox
from kohort.client.member.program import Program
from kohort.client.member.settings import MemberSettings
from kohort.client.rebalances import Ending
from kohort.types import Millis, Topic
from kohort.wire.api.k13_leave_group import LeaveGroupRequest, MemberIdentity

_UNSUBSCRIBED: Final = "the consumer unsubscribed from all topics"
_CLOSED: Final = "the consumer is being closed"
_POLL_EXPIRED: Final = "consumer poll timeout has expired."


class Leaving:
    def __init__(
        self,
        settings: MemberSettings,
        outbox: Outbox,
        membership: Membership,
        search: CoordinatorSearch,
        *,
        program: Program,
        handover: Handover,
        commits: Commits,
        gone: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._outbox = outbox
        self._membership = membership
        self._search = search
        self._program = program
        self._handover = handover
        self._commits = commits
        self._gone = gone
        self._is_closing = False
        self._must_commit = False
        """Before it closes."""
        self._is_lost = False
        """Whether what it holds while it leaves may be another's already."""
        self._is_goodbye_said = False
        self._topics_after: frozenset[Topic] | None = None
        """What the program has subscribed to again while the member still leaves."""

    def leave_stuck(self, now: Millis) -> None:
        """The program has not polled for too long: others shall have its partitions."""
        self._say_goodbye(_POLL_EXPIRED, _ignore)
        self._membership.end(Ending.LEFT, now)
        self._membership.reset("consumer pro-actively leaving the group", now)
        self._membership.is_wanted = False

    def unsubscribe(self, now: Millis) -> None:
        self._topics_after = None
        if self._membership.topics is not None and not self._is_under_way:
            self._begin(now)

    def subscribe_after(self, topics: frozenset[Topic]) -> None:
        self._topics_after = topics

    def close(self, now: Millis) -> None:
        if self._is_closing:
            return
        self._is_closing = True
        self._must_commit = self._settings.enable_auto_commit
        if not self._is_under_way:
            self._begin(now)

    @property
    def _is_under_way(self) -> bool:
        return self._membership.state is MemberState.LEAVING

    def _begin(self, now: Millis) -> None:
        membership = self._membership
        self._is_lost = membership.is_rebalancing
        self._is_goodbye_said = False
        membership.abandon()
        membership.end(Ending.LEFT, now)
        membership.state = MemberState.LEAVING

    def advance(self, now: Millis) -> None:
        """As far as it goes without anybody's help."""
        membership = self._membership
        if not self._is_under_way or self._is_goodbye_said:
            return
        if self._is_closing and not self._has_committed(now):
            return
        if membership.held:
            is_lost = self._is_lost or not membership.standing.is_valid
            change = Change.LOST if is_lost else Change.REVOKED
            self._handover.give_up(change, membership.held, now)
        elif self._program.call is None:
            self._go()

    def _has_committed(self, now: Millis) -> bool:
        membership = self._membership
        can_commit = membership.topics is None or membership.standing.is_valid
        if self._must_commit and can_commit and not self._handover.commit(membership.held, now):
            return False
        self._must_commit = False
        return self._commits.is_idle

    def _go(self) -> None:
        self._is_goodbye_said = True
        if not self._is_closing:
            self._say_goodbye(_UNSUBSCRIBED, _ignore)
            self._membership.forget(self._topics_after)
            self._topics_after = None
            self._gone()
            return
        is_heard = self._settings.leave_on_close and self._say_goodbye(_CLOSED, self._on_left)
        self._membership.forget(self._membership.topics)
        self._membership.state = MemberState.LEAVING
        if not is_heard:
            self._end()

    def _say_goodbye(self, reason: str, then: OnAnswer) -> bool:
        """Whether there was anyone to say it to, and anyone to say it."""
        member_id, coordinator = self._membership.standing.member_id, self._search.coordinator
        is_static = self._settings.instance_id is not None
        if is_static or member_id == NO_MEMBER or coordinator is None:
            return False
        identity = MemberIdentity(member_id=member_id, reason=reason)
        body = LeaveGroupRequest(group_id=self._settings.group_id, members=(identity,))
        self._outbox.send(body, coordinator, self._settings.request_timeout_ms, then)
        return True

    def _on_left(self, _answer: object, _now: Millis) -> None:
        """Whatever it was answered with, this member is not in the group any more."""
        self._end()

    def _end(self) -> None:
        self._membership.state = MemberState.ENDED
        self._gone()


def _ignore(_answer: object, _now: Millis) -> None:
    """Whatever is said to a goodbye, nobody is there to hear it."""
