"""Builds fetch requests and handles their responses. No I/O.

At most one fetch is in flight per broker, and each partition buffers one fetch ahead of the one
that the application reads. Fetch sessions (KIP-227) are not used.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Final

from kohort.client.error_codes import error_code
from kohort.client.errors import BrokerResponseError, CorruptRecordError
from kohort.client.fetch.completed_fetch import CompletedFetch, FetchConfig, FetchPosition
from kohort.client.fetch.offset_fetcher import STALE_METADATA
from kohort.client.fetch.position_resolver import PositionResolver
from kohort.client.fetch.subscription_state import (
    FetchState,
    SubscriptionState,
    TopicPartitionState,
)
from kohort.client.member.effects import BrokerAddress
from kohort.client.member.member_events import RequestFailure
from kohort.client.network.metadata import ConsumerMetadata
from kohort.client.network.send_queue import Response, SendQueue
from kohort.client.options import Options
from kohort.protocol.backoff import Backoff
from kohort.types import ZERO_UUID, BrokerId, ErrorCode, Millis, Topic, TopicPartition, Uuid, value
from kohort.wire.api.k01_fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

_OUTSIDE_SESSIONS: Final = -1

_BY_NAME: Final = 12
"""The last version that identifies topics by name."""


@value
class RequestedPartition:
    """One partition of a fetch request."""

    state: TopicPartitionState
    position_version: int
    position: FetchPosition


class Fetcher:
    def __init__(
        self,
        *,
        options: Options,
        subscription: SubscriptionState,
        metadata: ConsumerMetadata,
        position_resolver: PositionResolver,
        send_queue: SendQueue,
        backoff: Backoff,
    ) -> None:
        self._options = options
        self._subscription = subscription
        self._metadata = metadata
        self._position_resolver = position_resolver
        self._send_queue = send_queue
        self._backoff = backoff
        self._config = FetchConfig(
            is_read_committed=options.is_read_committed,
            check_crcs=options.check_crcs,
            key_deserializer=options.key_deserializer,
            value_deserializer=options.value_deserializer,
        )
        self._in_flight: set[BrokerId] = set()
        self._idle_until: dict[BrokerId, Millis] = {}
        """When to poll a broker without new records again, if the application is not waiting."""
        self._due: Millis | None = None

    def due(self) -> Millis | None:
        """When the next fetch that must wait becomes possible."""
        return self._due

    def advance(self, now: Millis) -> None:
        self._due = None
        by_broker: dict[BrokerId, list[TopicPartitionState]] = defaultdict(list)
        for state in self._subscription.states.values():
            if state.fetch_state is FetchState.FETCHING and state.is_fetchable:
                broker = self._find_broker(state, now)
                if broker is not None:
                    by_broker[broker].append(state)
        for broker, states in by_broker.items():
            if broker not in self._in_flight:
                self._fetch(self._metadata.brokers[broker], states, now)

    def _find_broker(self, state: TopicPartitionState, now: Millis) -> BrokerId | None:
        """The broker to fetch from; None if it is unknown or the position must be validated."""
        if self._position_resolver.needs_validation(state):
            self._subscription.await_validation(state)
            return None
        if (
            state.preferred_replica in self._metadata.brokers
            and now < state.preferred_replica_until
        ):
            return state.preferred_replica
        leader = self._metadata.find_leader(state.partition)
        if leader is None:
            self._metadata.request_update()
            return None
        return leader.node_id

    def _fetch(self, broker: BrokerAddress, states: list[TopicPartitionState], now: Millis) -> None:
        open_states = [state for state in states if not state.is_full and not state.is_fetching]
        ready = [state for state in open_states if now >= state.retry_at]
        self._wake_for(state.retry_at for state in open_states if now < state.retry_at)
        if not ready or self._held_bytes(states) >= self._options.fetch_max_bytes:
            return
        wait_ms = self._options.fetch_max_wait_ms
        if any(state.is_full for state in states):
            # Do not let the broker wait: the full partitions could not be fetched meanwhile.
            idle_until = self._idle_until.get(broker.node_id, Millis(0))
            if now < idle_until:
                self._wake_for((idle_until,))
                return
            wait_ms = Millis(0)
        self._send(broker, ready, wait_ms)

    def _held_bytes(self, states: list[TopicPartitionState]) -> int:
        return sum(fetch.size for state in states for fetch in state.fetches)

    def _wake_for(self, times: Iterable[Millis]) -> None:
        for time in times:
            self._due = time if self._due is None else min(self._due, time)

    def _send(
        self, broker: BrokerAddress, states: list[TopicPartitionState], wait_ms: Millis
    ) -> None:
        fetched = {state.partition: _as_fetched(state) for state in states}
        for state in states:
            state.is_fetching = True
        by_topic: dict[Topic, list[FetchPartition]] = defaultdict(list)
        for each in fetched.values():
            by_topic[each.state.partition.topic].append(self._partition(each))
        topic_ids = {topic: self._metadata.topic_id(topic) for topic in by_topic}
        body = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=self._options.fetch_min_bytes,
            max_bytes=self._options.fetch_max_bytes,
            isolation_level=int(self._options.is_read_committed),
            session_epoch=_OUTSIDE_SESSIONS,
            topics=tuple(
                FetchTopic(topic=topic, topic_id=topic_ids[topic], partitions=tuple(partitions))
                for topic, partitions in by_topic.items()
            ),
            rack_id=self._options.client_rack or "",
        )
        self._send_queue.send(
            body,
            broker,
            self._options.request_timeout_ms,
            self._then(broker.node_id, fetched, topic_ids),
            version_max=_BY_NAME if ZERO_UUID in topic_ids.values() else None,
        )
        self._in_flight.add(broker.node_id)

    def _partition(self, fetched: RequestedPartition) -> FetchPartition:
        return FetchPartition(
            partition=fetched.state.partition.partition,
            current_leader_epoch=self._metadata.leader_epoch(fetched.state.partition),
            fetch_offset=fetched.position.offset,
            partition_max_bytes=self._options.max_partition_fetch_bytes,
        )

    # Responses

    def _then(
        self,
        broker_id: BrokerId,
        fetched: dict[TopicPartition, RequestedPartition],
        topic_ids: dict[Topic, Uuid],
    ) -> Callable[[Response, Millis], None]:
        names = {topic_id: topic for topic, topic_id in topic_ids.items()}

        def then(response: Response, now: Millis) -> None:
            self._in_flight.discard(broker_id)
            current = {
                partition: each
                for partition, each in fetched.items()
                if self._subscription.is_current(each.state, each.position_version)
            }
            for each in current.values():
                each.state.is_fetching = False
            if isinstance(response, RequestFailure) or response.error_code != ErrorCode.NONE:
                self._metadata.request_update()
                for each in current.values():
                    each.state.preferred_replica = None
                    self._postpone(each.state, now)
                return
            self._take(response, current, names, now)
            if all(each.state.fetch_position is each.position for each in current.values()):
                self._idle_until[broker_id] = Millis(now + self._options.fetch_max_wait_ms)

        return then

    def _take(
        self,
        response: FetchResponse,
        fetched: dict[TopicPartition, RequestedPartition],
        names: dict[Uuid, Topic],
        now: Millis,
    ) -> None:
        brokers = [
            BrokerAddress(node_id=each.node_id, host=each.host, port=each.port)
            for each in response.node_endpoints
        ]
        for topic in response.responses:
            name = topic.topic or names.get(topic.topic_id)
            for reported in topic.partitions:
                if name is None:
                    continue
                each = fetched.get(TopicPartition(name, reported.partition_index))
                if each is not None:
                    self._take_partition(each, reported, brokers, now)

    def _take_partition(
        self,
        fetched: RequestedPartition,
        reported: PartitionData,
        brokers: list[BrokerAddress],
        now: Millis,
    ) -> None:
        state = fetched.state
        if reported.error_code != ErrorCode.NONE:
            self._take_error(fetched, reported, brokers, now)
        elif reported.preferred_read_replica >= 0:
            state.preferred_replica = reported.preferred_read_replica
            state.preferred_replica_until = Millis(now + self._options.metadata_max_age_ms)
        elif reported.records:
            aborted = reported.aborted_transactions or ()
            fetch = CompletedFetch(
                state.partition,
                reported.records,
                fetched.position,
                self._config,
                aborted,
                high_watermark=reported.high_watermark,
            )
            state.fetches.append(fetch)
            state.fetch_position = fetch.end
            # Fairness: request this partition after all others next time (KIP-74).
            states = self._subscription.states
            states[state.partition] = states.pop(state.partition)

    def _take_error(
        self,
        fetched: RequestedPartition,
        reported: PartitionData,
        brokers: list[BrokerAddress],
        now: Millis,
    ) -> None:
        state, code = fetched.state, reported.error_code
        topic, number = state.partition
        is_from_follower, state.preferred_replica = state.preferred_replica is not None, None
        if code in STALE_METADATA or code == ErrorCode.UNKNOWN_SERVER_ERROR:
            leader = reported.current_leader
            is_known = self._metadata.update_leader(
                state.partition, leader.leader_id, leader.leader_epoch, brokers
            )
            if not is_known:
                self._metadata.request_update()
                self._postpone(state, now)
        elif code == ErrorCode.OFFSET_OUT_OF_RANGE:
            # A follower may lag behind; only the leader decides.
            if is_from_follower or state.fetches:
                self._postpone(state, now)  # buffered records are read first
            else:
                self._position_resolver.reset(
                    state, f"offset {fetched.position.offset} is out of range"
                )
        elif code == ErrorCode.CORRUPT_MESSAGE:
            if state.position is None or state.position.offset < fetched.position.offset:
                # Records before it are buffered. To fail drops them, and an application that seeks
                # past the corrupt batch would never read them.
                self._postpone(state, now)
                return
            reason = "the broker reports CORRUPT_MESSAGE"
            error = CorruptRecordError(state.partition, fetched.position.offset, reason)
            self._subscription.fail(state, error)
        else:
            error_ = BrokerResponseError(error_code(code), f"fetch of {topic}-{number} failed")
            self._subscription.fail(state, error_)

    def _postpone(self, state: TopicPartitionState, now: Millis) -> None:
        state.retry_at = self._backoff.after(now, 0)


def _as_fetched(state: TopicPartitionState) -> RequestedPartition:
    assert state.fetch_position is not None
    return RequestedPartition(
        state=state, position_version=state.position_version, position=state.fetch_position
    )
