"""Finds the fetch position of each assigned partition. No I/O.

The position is the group's committed offset, or the first or last offset (auto.offset.reset). After
a leader change, OffsetForLeaderEpoch detects log truncation (KIP-320).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from kohort.client import log_events
from kohort.client.error_codes import error_code
from kohort.client.errors import BrokerResponseError, ConsumerError, InvalidOffsetError
from kohort.client.fetch.completed_fetch import FetchPosition
from kohort.client.fetch.offset_fetcher import (
    BEGINNING,
    END,
    STALE_METADATA,
    OffsetFetcher,
    OffsetLookup,
)
from kohort.client.fetch.subscription_state import (
    FetchState,
    SubscriptionState,
    TopicPartitionState,
)
from kohort.client.member.effects import BrokerAddress
from kohort.client.member.member_events import OffsetAndMetadata, RequestFailure
from kohort.client.network.metadata import ConsumerMetadata
from kohort.client.network.send_queue import Response, SendQueue
from kohort.client.options import OffsetReset, Options
from kohort.protocol.backoff import Backoff
from kohort.types import BrokerId, ErrorCode, Millis, Offset, Topic, TopicPartition
from kohort.wire.api.k23_offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

_CONSUMER: Final = BrokerId(-1)

_RESETS: Final = {OffsetReset.EARLIEST: BEGINNING, OffsetReset.LATEST: END}

OnCommitted: TypeAlias = Callable[
    [Mapping[TopicPartition, OffsetAndMetadata], ConsumerError | None, Millis], None
]
FetchCommitted: TypeAlias = Callable[[frozenset[TopicPartition], OnCommitted, Millis], object]
"""Fetches from the coordinator; partitions without a committed offset are missing."""

_Pending: TypeAlias = list[tuple[TopicPartitionState, int]]
"""States with their position version at the request: a response to another one is outdated."""


class PositionResolver:
    def __init__(
        self,
        *,
        options: Options,
        subscription: SubscriptionState,
        metadata: ConsumerMetadata,
        offset_fetcher: OffsetFetcher,
        send_queue: SendQueue,
        backoff: Backoff,
        fetch_committed: FetchCommitted | None,
    ) -> None:
        self._options = options
        self._subscription = subscription
        self._metadata = metadata
        self._offset_fetcher = offset_fetcher
        self._send_queue = send_queue
        self._backoff = backoff
        self._fetch_committed = fetch_committed
        self._resets: list[tuple[OffsetLookup, _Pending]] = []

    def due(self) -> Millis | None:
        waiting = (
            state.retry_at
            for state in self._subscription.states.values()
            if state.fetch_state not in (FetchState.FETCHING, FetchState.FAILED)
            and not state.is_request_pending
        )
        return min(waiting, default=None)

    def advance(self, now: Millis) -> None:
        self._advance_committed(now)
        self._advance_resets(now)
        self._advance_validations(now)

    def reset(self, state: TopicPartitionState, why: str) -> None:
        """Apply auto.offset.reset, because there is no valid position."""
        topic, number = state.partition
        to = _RESETS.get(self._options.auto_offset_reset)
        if to is None:
            error = InvalidOffsetError(
                f"{topic}-{number}: {why}, and auto.offset.reset is none; call seek()"
            )
            self._subscription.fail(state, error)
        else:
            log_events.info("offset-reset", topic=topic, partition=number, reason=why)
            self._subscription.reset(state, to)

    def _ready(self, stage: FetchState, now: Millis) -> _Pending:
        ready = [
            (state, state.position_version)
            for state in self._subscription.in_state(stage)
            if not state.is_request_pending and now >= state.retry_at
        ]
        for state, _ in ready:
            state.is_request_pending = True
        return ready

    def _still(self, pending: _Pending) -> list[TopicPartitionState]:
        """The states that have not moved since the request; they wait for no response now."""
        states = [
            state
            for state, position_version in pending
            if self._subscription.is_current(state, position_version)
        ]
        for state in states:
            state.is_request_pending = False
        return states

    def _postpone(self, states: Iterable[TopicPartitionState], now: Millis) -> None:
        for state in states:
            state.retry_at = self._backoff.after(now, 0)

    # Committed offsets

    def _advance_committed(self, now: Millis) -> None:
        pending = self._ready(FetchState.INITIALIZING, now)
        if not pending:
            return
        if self._fetch_committed is None:
            for state in self._still(pending):
                self.reset(state, "no committed offset, because there is no group.id")
            return

        def then(
            found: Mapping[TopicPartition, OffsetAndMetadata],
            error: ConsumerError | None,
            now: Millis,
        ) -> None:
            states = self._still(pending)
            if error is None:
                for state in states:
                    self._take_committed(state, found.get(state.partition))
            elif error.is_retriable:
                self._postpone(states, now)
            else:
                for state in states:
                    self._subscription.fail(state, error)

        self._fetch_committed(frozenset(state.partition for state, _ in pending), then, now)

    def _take_committed(self, state: TopicPartitionState, found: OffsetAndMetadata | None) -> None:
        if found is None:
            self.reset(state, "the group has no committed offset")
            return
        position = FetchPosition(offset=found.offset, leader_epoch=found.leader_epoch)
        self._subscription.seek(state, position)
        state.committed = found.offset

    # Offset reset

    def _advance_resets(self, now: Millis) -> None:
        self._drop_outdated_resets()
        pending = self._ready(FetchState.AWAIT_RESET, now)
        if not pending:
            return

        def then(lookup: OffsetLookup, now: Millis) -> None:
            for state, position_version in pending:
                if self._subscription.is_current(state, position_version):
                    self._take_reset(state, lookup, now)

        lookup = self._offset_fetcher.begin(
            {state.partition: _timestamp(state) for state, _ in pending}, then
        )
        self._resets.append((lookup, pending))

    def _take_reset(self, state: TopicPartitionState, lookup: OffsetLookup, now: Millis) -> None:
        if lookup.error is not None:
            self._subscription.fail(state, lookup.error)
        elif state.partition in lookup.found:
            found = lookup.found[state.partition]
            if found is None:  # unexpected: every partition has both offsets
                state.is_request_pending = False
                self._postpone((state,), now)
            else:
                position = FetchPosition(offset=found.offset, leader_epoch=found.leader_epoch)
                self._subscription.seek(state, position)

    def _drop_outdated_resets(self) -> None:
        """Drop lookups of partitions that were revoked or have moved."""
        for lookup, pending in list(self._resets):
            for state, position_version in pending:
                if not self._subscription.is_current(state, position_version):
                    lookup.wanted.pop(state.partition, None)
            if not lookup.missing:
                self._offset_fetcher.cancel(lookup)
                self._resets.remove((lookup, pending))

    # Validation of positions with a new leader, KIP-320

    def needs_validation(self, state: TopicPartitionState) -> bool:
        """Whether the leader has changed since the position was last validated."""
        epoch = self._metadata.leader_epoch(state.partition)
        if epoch <= state.leader_epoch:
            return False
        position = state.fetch_position
        if position is None or position.leader_epoch in (-1, epoch):
            state.leader_epoch = epoch
            return False
        return True

    def _advance_validations(self, now: Millis) -> None:
        by_leader: dict[BrokerId, _Pending] = defaultdict(list)
        for state, position_version in self._ready(FetchState.AWAIT_VALIDATION, now):
            leader = self._metadata.find_leader(state.partition)
            if leader is None:
                self._metadata.request_update()
                self._postpone(self._still([(state, position_version)]), now)
            else:
                by_leader[leader.node_id].append((state, position_version))
        for broker_id, pending in by_leader.items():
            self._validate(self._metadata.brokers[broker_id], pending)

    def _validate(self, leader: BrokerAddress, pending: _Pending) -> None:
        by_topic: dict[Topic, list[OffsetForLeaderPartition]] = defaultdict(list)
        for state, _ in pending:
            assert state.position is not None
            by_topic[state.partition.topic].append(
                OffsetForLeaderPartition(
                    partition=state.partition.partition,
                    current_leader_epoch=self._metadata.leader_epoch(state.partition),
                    leader_epoch=state.position.leader_epoch,
                )
            )

        def then(response: Response, now: Millis) -> None:
            states = {state.partition: state for state in self._still(pending)}
            if isinstance(response, RequestFailure):
                self._metadata.request_update()
                self._postpone(states.values(), now)
                return
            assert isinstance(response, OffsetForLeaderEpochResponse)
            for topic in response.topics:
                for each in topic.partitions:
                    state = states.get(TopicPartition(topic.topic, each.partition))
                    if state is not None:
                        self._take_validation(state, each, now)

        body = OffsetForLeaderEpochRequest(
            replica_id=_CONSUMER,
            topics=tuple(
                OffsetForLeaderTopic(topic=topic, partitions=tuple(partitions))
                for topic, partitions in by_topic.items()
            ),
        )
        self._send_queue.send(body, leader, self._options.request_timeout_ms, then)

    def _take_validation(
        self, state: TopicPartitionState, reported: EpochEndOffset, now: Millis
    ) -> None:
        assert state.position is not None
        if reported.error_code in STALE_METADATA:
            self._metadata.request_update()
            self._postpone((state,), now)
        elif reported.error_code != ErrorCode.NONE:
            topic, number = state.partition
            what = f"OffsetForLeaderEpoch of {topic}-{number} failed"
            error = BrokerResponseError(error_code(reported.error_code), what)
            self._subscription.fail(state, error)
        elif reported.leader_epoch < 0 or reported.end_offset < 0:
            self.reset(state, "the leader does not know the epoch of the last record read")
        elif reported.end_offset < state.position.offset:
            self._take_truncation(state, reported)
        else:
            state.fetch_state = FetchState.FETCHING
            state.leader_epoch = self._metadata.leader_epoch(state.partition)

    def _take_truncation(self, state: TopicPartitionState, reported: EpochEndOffset) -> None:
        """The new leader's log was truncated: go back to where the logs agree."""
        assert state.position is not None
        if self._options.auto_offset_reset is OffsetReset.NONE:
            end, offset = reported.end_offset, state.position.offset
            why = f"the new leader's log ends at {end}, before {offset}"
            self.reset(state, why)
        else:
            position = FetchPosition(
                offset=Offset(reported.end_offset), leader_epoch=reported.leader_epoch
            )
            self._subscription.seek(state, position)


def _timestamp(state: TopicPartitionState) -> Millis:
    assert state.reset_to is not None
    return state.reset_to
