"""The consumer without I/O: group member, metadata, positions and fetches.

It uses no socket, no thread and no clock. Calls, responses and the time come in; requests leave
through the send queue; listener calls and errors are kept until the application polls. Callers hold
the consumer's only lock.
"""

from collections import deque
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, Final, TypeAlias, assert_never

from kohort.client import log_events
from kohort.client.errors import ConsumerError, UnsupportedVersionError
from kohort.client.fetch.fetcher import Fetcher
from kohort.client.fetch.offset_fetcher import OffsetFetcher
from kohort.client.fetch.position_resolver import OnCommitted, PositionResolver
from kohort.client.fetch.subscription_state import SubscriptionState, SubscriptionType
from kohort.client.member.effects import (
    AssignmentChange,
    AutoCommitCompleted,
    AwaitPoll,
    CallListener,
    CommitCompleted,
    CommittedFetched,
    MemberClosed,
    MemberEffect,
    MemberFailed,
    RebalanceCompleted,
    RequestPositions,
    SendRequest,
    WatchTopics,
)
from kohort.client.member.member import Member, MemberState
from kohort.client.member.member_events import (
    CallCancelled,
    CallId,
    CloseRequested,
    CommitRequested,
    CommittedRequested,
    DeadlineReached,
    MemberEvent,
    OffsetAndMetadata,
    Polled,
    PositionsReported,
    RequestFailed,
    RequestFailure,
    ResponseReceived,
    Subscribed,
    TopicsUpdated,
)
from kohort.client.network.metadata import ConsumerMetadata
from kohort.client.network.send_queue import Response, SendQueue
from kohort.client.options import Options, member_settings
from kohort.client.rebalances import Rebalance
from kohort.protocol.backoff import Backoff
from kohort.types import (
    Generation,
    GroupId,
    InstanceId,
    MemberId,
    Millis,
    Topic,
    TopicPartition,
    value,
)

OnCommit: TypeAlias = Callable[[ConsumerError | None], None]

REBALANCES_MAX: Final = 1_000
"""Bounds memory: about 17 minutes of a group that rebalances every second."""


@value
class ConsumerGroupMetadata:
    """The state of a consumer in its group (Kafka: ConsumerGroupMetadata)."""

    group_id: GroupId
    generation_id: Generation
    """-1 if the consumer is not in a generation."""
    member_id: MemberId
    """Empty until the coordinator has assigned one."""
    group_instance_id: InstanceId | None
    state: MemberState

    @property
    def is_stable(self) -> bool:
        """Whether the member has its assignment and knows of no rebalance in progress."""
        return self.state is MemberState.STABLE


class ConsumerCore:
    def __init__(self, options: Options, roll: Callable[[], float]) -> None:
        self._options = options
        backoff = Backoff(options.retry_backoff_ms, options.retry_backoff_max_ms, roll)
        self.send_queue = send_queue = SendQueue()
        self.rebalances: deque[Rebalance] = deque(maxlen=REBALANCES_MAX)
        self.subscription = subscription = SubscriptionState()
        self.metadata = metadata = ConsumerMetadata(options, backoff)
        self.offset_fetcher = offset_fetcher = OffsetFetcher(options, metadata, send_queue, backoff)
        self.position_resolver = position_resolver = PositionResolver(
            options=options,
            subscription=subscription,
            metadata=metadata,
            offset_fetcher=offset_fetcher,
            send_queue=send_queue,
            backoff=backoff,
            fetch_committed=None if options.group_id is None else self.fetch_committed,
        )
        self.fetcher = Fetcher(
            options=options,
            subscription=subscription,
            metadata=metadata,
            position_resolver=position_resolver,
            send_queue=send_queue,
            backoff=backoff,
        )
        self.member: Member | None = None
        if options.group_id is not None:
            self.member = Member(member_settings(options), roll)
        self.call: CallListener | None = None
        """The listener call that the application's thread must make next."""
        self.is_ended = False
        """Whether the member is closed."""
        self.is_in_poll = False
        """Whether the application waits in poll, with all its records processed."""
        self.requested_topics: frozenset[Topic] = frozenset()
        """Topics of a metadata call, in addition to those that are read."""
        self.is_requesting_all_topics = False
        self.unsupported: UnsupportedVersionError | None = None
        """Set if a request cannot be sent because the broker is too old."""
        self.change_count = 0
        """Counts changes that the application may wait for."""
        self._member_error: ConsumerError | None = None
        self._events: deque[MemberEvent] = deque()
        self._is_handling = False
        self._now = Millis(0)
        self._calls: dict[CallId, Callable[[Any], None]] = {}
        self._numbers = count(1)
        self._watched: frozenset[Topic] = frozenset()
        """The member's topics; for a leader, those of all members."""
        self._is_matched = False
        """Whether the member has got the topics that match the pattern, even if there are none."""
        self._reported: dict[Topic, int] | None = None
        """The partition counts that the member got last."""

    # Time

    def advance(self, now: Millis) -> None:
        """Send every request that is due or has become possible."""
        self.change_count += 1
        if self.member is not None:
            due = self.member.deadline()
            if due is not None and now >= due:
                self.handle_event(DeadlineReached(), now)
        # In this order: each may create work for those below it.
        self.fetcher.advance(now)
        self.position_resolver.advance(now)
        self.offset_fetcher.advance(now)
        self._watch()
        due = self.metadata.due()
        if due is not None and now >= due:
            self.send_queue.send(
                self.metadata.new_request(),
                None,
                self._options.request_timeout_ms,
                self._on_metadata,
            )

    def deadline(self) -> Millis | None:
        deadlines = (
            None if self.member is None else self.member.deadline(),
            self.metadata.due(),
            self.offset_fetcher.due(),
            self.position_resolver.due(),
            self.fetcher.due(),
        )
        return min((each for each in deadlines if each is not None), default=None)

    # Calls of the application

    def on_poll(self, now: Millis) -> None:
        """The application is in poll: all records it was given are processed."""
        self.subscription.mark_all_processed()
        if self.member is not None:
            self.handle_event(Polled(), now)

    def take_error(self) -> ConsumerError | None:
        """The error to raise now. Errors of partitions are raised again until they are resolved."""
        failure = self.unsupported or self._member_error or self.metadata.error
        self.unsupported = self._member_error = self.metadata.error = None
        return failure or self.subscription.error

    def on_listener_call(self, call: CallListener) -> None:
        """The listener is about to be called."""
        self.call = None
        if call.change is AssignmentChange.ASSIGNED:
            self.subscription.add(call.partitions)
            # Partitions whose revocation was superseded by this rebalance stay.
            for state in self.subscription.states.values():
                state.is_pending_revocation = False

    def commit(
        self, positions: Mapping[TopicPartition, OffsetAndMetadata], then: OnCommit, now: Millis
    ) -> CallId:
        call_id = CallId(next(self._numbers))
        self.subscription.mark_processed(positions)

        def on_result(effect: CommitCompleted) -> None:
            if effect.error is None:
                self.subscription.mark_committed(positions)
            then(effect.error)

        self._calls[call_id] = on_result
        self.handle_event(CommitRequested(call_id=call_id, positions=positions), now)
        return call_id

    def fetch_committed(
        self, partitions: frozenset[TopicPartition], then: OnCommitted, now: Millis
    ) -> CallId:
        call_id = CallId(next(self._numbers))

        def on_result(effect: CommittedFetched) -> None:
            then(effect.positions, effect.error, self._now)

        self._calls[call_id] = on_result
        self.handle_event(CommittedRequested(call_id=call_id, partitions=partitions), now)
        return call_id

    def cancel_call(self, call_id: CallId, now: Millis) -> None:
        self._calls.pop(call_id, None)
        self.handle_event(CallCancelled(call_id=call_id), now)

    def subscribe(self, topics: frozenset[Topic], now: Millis) -> None:
        self.subscription.topics = topics
        self.handle_event(Subscribed(topics=topics), now)

    def subscribe_to_matches(self, now: Millis) -> None:
        """Subscribe as soon as metadata of all topics is known."""
        self._is_matched = False
        if self.metadata.is_all_covered:
            self._match(now)

    @property
    def can_commit(self) -> bool:
        """False between two generations, when the coordinator rejects commits."""
        return self.member is None or self.member.state not in (
            MemberState.JOINING,
            MemberState.SYNCING,
        )

    def close(self, now: Millis) -> None:
        if self.member is None:
            self.is_ended = True
        else:
            self.handle_event(CloseRequested(), now)

    # The member

    def handle_event(self, event: MemberEvent, now: Millis) -> None:
        """Handle an event. Its effects are applied before the next event is handled."""
        assert self.member is not None
        self._now = now
        self.change_count += 1
        self._events.append(event)
        if self._is_handling:
            return
        self._is_handling = True
        try:
            while self._events:
                for effect in self.member.handle(self._events.popleft(), now):
                    self._apply(effect)
        finally:
            self._is_handling = False

    def _apply(self, effect: MemberEffect) -> None:  # noqa: C901  # a flat table
        match effect:
            case SendRequest():
                self._send(effect)
            case CallListener():
                self._prepare_call(effect)
            case AwaitPoll():
                if self.is_in_poll:
                    self._events.append(Polled())
            case RequestPositions():
                self._mark_pending_revocation(effect.revoking)
                self._events.append(
                    PositionsReported(positions=self.subscription.processed_positions())
                )
            case WatchTopics():
                self._watched = effect.topics
                self._reported = None
                self._watch()
                self._report_topics()
            case CommitCompleted() | CommittedFetched():
                on_result = self._calls.pop(effect.call_id, None)
                if on_result is not None:
                    on_result(effect)
            case AutoCommitCompleted():
                self._on_auto_committed(effect)
            case RebalanceCompleted():
                self._record_rebalance(effect.rebalance)
            case MemberFailed():
                self._member_error = effect.error
            case MemberClosed():
                self.is_ended = True
            case _:
                assert_never(effect)

    def _send(self, effect: SendRequest) -> None:
        def then(response: Response, now: Millis) -> None:
            if isinstance(response, RequestFailure):
                self.handle_event(
                    RequestFailed(request_id=effect.request_id, failure=response), now
                )
            else:
                self.handle_event(
                    ResponseReceived(request_id=effect.request_id, body=response), now
                )

        self.send_queue.send(effect.body, effect.broker, effect.timeout_ms, then)

    def _prepare_call(self, call: CallListener) -> None:
        self.call = call
        if call.change is not AssignmentChange.ASSIGNED:
            self._mark_pending_revocation(call.partitions)

    def _mark_pending_revocation(self, partitions: frozenset[TopicPartition]) -> None:
        for partition in partitions:
            state = self.subscription.states.get(partition)
            if state is not None:
                state.is_pending_revocation = True

    def _on_auto_committed(self, effect: AutoCommitCompleted) -> None:
        if effect.error is None:
            self.subscription.mark_committed(effect.positions)
        elif not effect.error.is_retriable:
            log_events.warn(
                "commit-failed",
                group=self._options.group_id,
                partitions=len(effect.positions),
                reason=effect.error,
            )

    def _record_rebalance(self, rebalance: Rebalance) -> None:
        self.rebalances.append(rebalance)
        log_events.info(
            "rebalanced",
            group=self._options.group_id,
            member=rebalance.member_id,
            generation=rebalance.generation,
            reason=rebalance.reason,
            result=rebalance.result,
            assigned=len(rebalance.assigned),
            added=len(rebalance.added),
            revoked=len(rebalance.revoked),
        )

    # Metadata

    def _watch(self) -> None:
        """Update the set of topics whose metadata is kept."""
        subscription = self.subscription
        topics = self._watched | self.offset_fetcher.topics() | self.requested_topics
        if subscription.type is SubscriptionType.USER_ASSIGNED:
            topics |= {partition.topic for partition in subscription.states}
        else:
            topics |= subscription.topics
        is_all = subscription.type is SubscriptionType.AUTO_PATTERN or self.is_requesting_all_topics
        self.metadata.watch(topics, is_all=is_all)

    def _on_metadata(self, response: Response, now: Millis) -> None:
        if isinstance(response, RequestFailure):
            self.metadata.on_request_failed(now)
            return
        self.metadata.update(response, now)
        self.offset_fetcher.retry_now()
        if self.subscription.type is SubscriptionType.AUTO_PATTERN:
            self._match(now)
        self._report_topics()
        if self.member is not None:
            self.handle_event(DeadlineReached(), now)

    def _match(self, now: Millis) -> None:
        internal = {name: known.is_internal for name, known in self.metadata.topics.items()}
        exclude = self._options.exclude_internal_topics
        topics = self.subscription.match(internal, exclude_internal=exclude)
        if topics != self.subscription.topics or not self._is_matched:
            self._is_matched = True
            self.subscribe(topics, now)
            if self.is_in_poll:
                self.handle_event(Polled(), now)

    def _report_topics(self) -> None:
        """Report partition counts to the member once they are known, and after each change."""
        if self.member is None or not self.metadata.covers(self._watched):
            return
        seen = self.metadata.partition_counts(self._watched)
        if seen != self._reported:
            self._reported = seen
            self._events.append(TopicsUpdated(partitions=seen))
