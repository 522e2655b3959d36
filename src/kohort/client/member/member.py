"""A consumer group member (Kafka's ConsumerCoordinator) as a pure state machine.

Callers pass events in and carry out the effects that it returns. It uses no clock, no random
source, no socket and no thread.
"""

from collections.abc import Callable
from typing import assert_never

from kohort.assignors import RebalanceProtocol
from kohort.client.errors import ConsumerError, IllegalStateError
from kohort.client.member.auto_commit import AutoCommit
from kohort.client.member.committed_offsets import CommittedOffsetFetcher
from kohort.client.member.effects import (
    AssignmentChange,
    BrokerAddress,
    CommitCompleted,
    CommittedFetched,
    MemberClosed,
    MemberEffect,
    MemberFailed,
)
from kohort.client.member.find_coordinator import CoordinatorSearch
from kohort.client.member.heartbeats import Heartbeats
from kohort.client.member.join import Joiner
from kohort.client.member.leave import Leaver
from kohort.client.member.member_events import (
    CallbackReturned,
    CallCancelled,
    CloseRequested,
    CommitRequested,
    CommittedRequested,
    DeadlineReached,
    MemberEvent,
    Polled,
    PositionsReported,
    RejoinRequested,
    RequestFailed,
    ResponseReceived,
    Subscribed,
    TopicsUpdated,
    Unsubscribed,
)
from kohort.client.member.member_settings import MemberSettings, check, choose_protocol
from kohort.client.member.membership import Membership, MemberState
from kohort.client.member.offset_commit import OffsetCommits
from kohort.client.member.outbox import Outbox
from kohort.client.member.poll_tracker import PollTracker
from kohort.client.member.rebalance import Rebalancer
from kohort.client.member.revocation import Revocation
from kohort.protocol.backoff import Backoff
from kohort.types import Generation, GroupId, MemberId, Millis, Topic, TopicPartition

__all__ = ["Member", "MemberSettings", "MemberState"]


class Member:
    def __init__(self, settings: MemberSettings, roll: Callable[[], float]) -> None:
        """`roll` returns a random number in [0, 1), used to spread retries."""
        check(settings)
        self._settings = settings
        protocol = RebalanceProtocol.EAGER
        if settings.assignors:
            protocol = choose_protocol(settings.assignors)
        backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, roll)
        self._outbox = outbox = Outbox()
        self._membership = membership = Membership(outbox)
        self._search = search = CoordinatorSearch(
            settings,
            outbox,
            backoff,
            found=self._on_found,
            lost=self._on_lost,
            refused=self._on_search_refused,
        )
        self._heartbeats = Heartbeats(settings, outbox, backoff, membership, search)
        self._commits = OffsetCommits(settings, outbox, backoff, membership, search)
        self._committed_fetcher = CommittedOffsetFetcher(settings, outbox, backoff, search)
        self._auto_commit = AutoCommit(settings, outbox, membership, self._commits)
        self._poll_tracker = PollTracker(settings, outbox, membership)
        self._revocation = Revocation(settings, outbox, self._poll_tracker, self._commits)
        self._joiner = Joiner(
            settings,
            outbox,
            backoff,
            membership,
            search,
            protocol=protocol,
            heartbeats=self._heartbeats,
        )
        self._rebalancer = Rebalancer(
            membership,
            self._poll_tracker,
            search,
            self._joiner,
            self._revocation,
            protocol=protocol,
        )
        self._leaver = Leaver(
            settings,
            outbox,
            membership,
            search,
            poll_tracker=self._poll_tracker,
            revocation=self._revocation,
            commits=self._commits,
            on_gone=self._on_gone,
        )

    # State

    @property
    def group_id(self) -> GroupId:
        return self._settings.group_id

    @property
    def member_id(self) -> MemberId:
        return self._membership.generation.member_id

    @property
    def generation(self) -> Generation:
        return self._membership.generation.generation_id

    @property
    def state(self) -> MemberState:
        return self._membership.state

    @property
    def owned(self) -> frozenset[TopicPartition]:
        return self._membership.owned

    @property
    def coordinator(self) -> BrokerAddress | None:
        return self._search.coordinator

    def deadline(self) -> Millis | None:
        """When to send DeadlineReached, unless another event comes first."""
        deadlines = (
            self._search.due() if self._wants_coordinator else None,
            self._heartbeats.due(),
            self._poll_tracker.due(),
            self._membership.retry_at if self.state is MemberState.PREPARING else None,
            self._commits.due(),
            self._committed_fetcher.due(),
            self._auto_commit.due(),
        )
        return min((each for each in deadlines if each is not None), default=None)

    # Events

    def handle(self, event: MemberEvent, now: Millis) -> list[MemberEffect]:
        if self.state is MemberState.ENDED:
            self._handle_after_close(event)
        else:
            self._dispatch(event, now)
            self._advance(now)
            self._poll_tracker.leave_poll()
        return self._outbox.take()

    def _dispatch(self, event: MemberEvent, now: Millis) -> None:  # noqa: C901  # a flat table
        match event:
            case Subscribed():
                self._on_subscribed(event.topics)
            case Unsubscribed():
                self._leaver.unsubscribe(now)
            case Polled():
                self._on_polled(now)
            case PositionsReported():
                if not self._revocation.take_positions(event.positions):
                    self._auto_commit.take_positions(event.positions, now)
            case CallbackReturned():
                self._on_returned(now)
            case CommitRequested():
                self._search.resume()
                self._commits.request(event.call_id, event.positions, now)
            case CommittedRequested():
                self._search.resume()
                self._committed_fetcher.request(event.call_id, event.partitions, now)
            case CallCancelled():
                self._commits.cancel(event.call_id)
                self._committed_fetcher.cancel(event.call_id)
            case RejoinRequested():
                if self._membership.topics is not None:
                    reason = event.reason or "rebalance enforced by user"
                    self._membership.request_rejoin(reason, now)
            case CloseRequested():
                self._leaver.close(now)
            case ResponseReceived():
                self._outbox.on_response(event.request_id, event.body, now)
            case RequestFailed():
                self._outbox.on_response(event.request_id, event.failure, now)
            case TopicsUpdated():
                self._joiner.update_topics(event.partitions)
            case DeadlineReached():
                pass
            case _:
                assert_never(event)

    def _advance(self, now: Millis) -> None:
        """Take every step that is possible now."""
        if self._poll_tracker.is_overdue(now):
            self._leaver.leave_on_poll_timeout(now)
        self._poll_tracker.check_poll(now)
        self._heartbeats.check(now)
        self._commits.flush(now)
        self._committed_fetcher.flush(now)
        self._rebalancer.advance(now)
        self._leaver.advance(now)
        self._heartbeats.advance(now)
        self._auto_commit.advance(now)
        if self._wants_coordinator:
            self._search.advance(now)

    @property
    def _wants_coordinator(self) -> bool:
        membership = self._membership
        is_joining = membership.state is MemberState.PREPARING
        is_in = membership.is_joined and membership.state is not MemberState.LEAVING
        return is_joining or is_in or self._commits.is_waiting or self._committed_fetcher.is_waiting

    # The application

    def _on_subscribed(self, topics: frozenset[Topic]) -> None:
        if not self._settings.assignors:
            self._outbox.add(
                MemberFailed(
                    error=IllegalStateError(
                        "subscribe() needs at least one assignor in partition.assignment.strategy"
                    )
                )
            )
        elif self.state is MemberState.LEAVING:
            self._leaver.subscribe_after(topics)
        else:
            self._membership.topics = topics
            self._joiner.watch_own(topics)

    def _on_polled(self, now: Millis) -> None:
        membership = self._membership
        self._poll_tracker.enter_poll(now)
        self._search.resume()
        self._auto_commit.start(now)
        is_new = membership.topics is not None and membership.joined_topics is None
        if is_new and membership.rejoin is None:
            membership.request_rejoin("the consumer has subscribed", now)

    def _on_returned(self, now: Millis) -> None:
        call = self._poll_tracker.on_listener_returned(now)
        self._poll_tracker.enter_poll(now)
        if call is not None:
            self._rebalancer.on_listener_returned(call, now)
            if call.change is AssignmentChange.ASSIGNED:
                self._auto_commit.restart(now)

    def _on_gone(self) -> None:
        """The member has left the group, or is closed."""
        self._joiner.forget_leadership()
        if self.state is MemberState.ENDED:
            self._committed_fetcher.fail_all(IllegalStateError("the consumer is closed"))
            self._outbox.add(MemberClosed())
        else:
            self._joiner.watch_own(self._membership.topics or frozenset())

    def _handle_after_close(self, event: MemberEvent) -> None:
        """A closed member fails calls and ignores other events."""
        error = IllegalStateError("the consumer is closed")
        if isinstance(event, CommitRequested):
            self._outbox.add(CommitCompleted(call_id=event.call_id, error=error))
        elif isinstance(event, CommittedRequested):
            self._outbox.add(CommittedFetched(call_id=event.call_id, positions={}, error=error))

    # The coordinator

    def _on_found(self, now: Millis) -> None:
        self._heartbeats.extend(now)

    def _on_search_refused(self, error: ConsumerError, now: Millis) -> None:
        self._commits.fail_all(error)
        self._committed_fetcher.fail_all(error)
        if self.state is MemberState.PREPARING:
            self._membership.fail(error, now)
        elif self._membership.is_joined and self.state is not MemberState.LEAVING:
            self._outbox.add(MemberFailed(error=error))

    def _on_lost(self, now: Millis) -> None:
        self._heartbeats.cancel()
        if self._membership.in_flight is not None:
            self._joiner.on_coordinator_lost(now)
