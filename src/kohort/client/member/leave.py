"""Leaving the group: commit, call the listener, send LeaveGroup.

LeaveGroup lets the group rebalance before the session times out. Static members do not send it, so
that they can come back to their assignment.
"""

from collections.abc import Callable
from typing import Final

from kohort.client.member.effects import AssignmentChange
from kohort.client.member.find_coordinator import CoordinatorSearch
from kohort.client.member.member_settings import MemberSettings
from kohort.client.member.membership import NO_MEMBER, Membership, MemberState
from kohort.client.member.offset_commit import OffsetCommits
from kohort.client.member.outbox import OnResponse, Outbox
from kohort.client.member.poll_tracker import PollTracker
from kohort.client.member.revocation import Revocation
from kohort.client.rebalances import ConsumerRebalanceResult
from kohort.types import Millis, Topic
from kohort.wire.api.k13_leave_group import LeaveGroupRequest, MemberIdentity

_UNSUBSCRIBED: Final = "the consumer unsubscribed from all topics"
_CLOSED: Final = "the consumer is being closed"
_POLL_EXPIRED: Final = "consumer poll timeout has expired."


class Leaver:
    def __init__(
        self,
        settings: MemberSettings,
        outbox: Outbox,
        membership: Membership,
        search: CoordinatorSearch,
        *,
        poll_tracker: PollTracker,
        revocation: Revocation,
        commits: OffsetCommits,
        on_gone: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._outbox = outbox
        self._membership = membership
        self._search = search
        self._poll_tracker = poll_tracker
        self._revocation = revocation
        self._commits = commits
        self._on_gone = on_gone
        self._is_closing = False
        self._must_commit = False
        """Whether a commit is still due before closing."""
        self._is_lost = False
        """Whether another member may own its partitions already."""
        self._is_leave_sent = False
        self._topics_after: frozenset[Topic] | None = None
        """Topics of a subscribe() call that came while the member was leaving."""

    def leave_on_poll_timeout(self, now: Millis) -> None:
        """max.poll.interval.ms has passed: give the partitions to other members."""
        self._send_leave(_POLL_EXPIRED, _ignore)
        self._membership.end_rebalance(ConsumerRebalanceResult.LEFT, now)
        self._membership.reset("consumer pro-actively leaving the group", now)
        self._membership.has_polled = False

    def unsubscribe(self, now: Millis) -> None:
        self._topics_after = None
        if self._membership.topics is not None and not self._is_under_way:
            self._start(now)

    def subscribe_after(self, topics: frozenset[Topic]) -> None:
        self._topics_after = topics

    def close(self, now: Millis) -> None:
        if self._is_closing:
            return
        self._is_closing = True
        self._must_commit = self._settings.enable_auto_commit
        if not self._is_under_way:
            self._start(now)

    @property
    def _is_under_way(self) -> bool:
        return self._membership.state is MemberState.LEAVING

    def _start(self, now: Millis) -> None:
        membership = self._membership
        self._is_lost = membership.is_rebalancing
        self._is_leave_sent = False
        membership.cancel_requests()
        membership.end_rebalance(ConsumerRebalanceResult.LEFT, now)
        membership.state = MemberState.LEAVING

    def advance(self, now: Millis) -> None:
        """Take every step that needs no response and no listener."""
        membership = self._membership
        if not self._is_under_way or self._is_leave_sent:
            return
        if self._is_closing and not self._has_committed(now):
            return
        if membership.owned:
            is_lost = self._is_lost or not membership.generation.is_valid
            change = AssignmentChange.LOST if is_lost else AssignmentChange.REVOKED
            self._revocation.call_listener(change, membership.owned, now)
        elif self._poll_tracker.call is None:
            self._leave_group()

    def _has_committed(self, now: Millis) -> bool:
        membership = self._membership
        can_commit = membership.topics is None or membership.generation.is_valid
        if self._must_commit and can_commit and not self._revocation.commit(membership.owned, now):
            return False
        self._must_commit = False
        return self._commits.is_idle

    def _leave_group(self) -> None:
        self._is_leave_sent = True
        if not self._is_closing:
            self._send_leave(_UNSUBSCRIBED, _ignore)
            self._membership.forget(self._topics_after)
            self._topics_after = None
            self._on_gone()
            return
        is_awaited = self._settings.leave_on_close and self._send_leave(_CLOSED, self._on_left)
        self._membership.forget(self._membership.topics)
        self._membership.state = MemberState.LEAVING
        if not is_awaited:
            self._end()

    def _send_leave(self, reason: str, then: OnResponse) -> bool:
        """Whether it was sent. Static members and members without an id do not send it."""
        member_id, coordinator = self._membership.generation.member_id, self._search.coordinator
        is_static = self._settings.instance_id is not None
        if is_static or member_id == NO_MEMBER or coordinator is None:
            return False
        identity = MemberIdentity(member_id=member_id, reason=reason)
        body = LeaveGroupRequest(group_id=self._settings.group_id, members=(identity,))
        self._outbox.send(body, coordinator, self._settings.request_timeout_ms, then)
        return True

    def _on_left(self, _answer: object, _now: Millis) -> None:
        """The member is out of the group, even if the response is an error."""
        self._end()

    def _end(self) -> None:
        self._membership.state = MemberState.ENDED
        self._on_gone()


def _ignore(_answer: object, _now: Millis) -> None:
    """The response to LeaveGroup does not matter."""
