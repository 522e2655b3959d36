"""What to fetch next and from whom, and what becomes of what comes. Pure.

There is one fetch on its way to each broker at most, and one parcel of each partition ahead of the
one the program reads from. Fetches stand for themselves: there are no sessions (KIP-227).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Final

from kohort.client.backoff import Backoff
from kohort.client.errors import BadRecord, BrokerRefused
from kohort.client.fetching.lookups import MOVED
from kohort.client.fetching.parcel import Opening, Parcel, Place
from kohort.client.fetching.positions import Positions
from kohort.client.fetching.subscription import PartitionState, Stage, Subscription
from kohort.client.member.effects import Broker
from kohort.client.member.events import Loss
from kohort.client.network.cluster import Cluster
from kohort.client.network.post import Post
from kohort.client.network.requests import Answer
from kohort.client.options import Options
from kohort.client.refusals import named
from kohort.client.topic_partition import TopicPartition
from kohort.types import ZERO_UUID, BrokerId, ErrorCode, Millis, Topic, Uuid, value
from kohort.wire.api.k01_fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

_OUTSIDE_SESSIONS: Final = -1

_BY_NAME: Final = 12
"""The last version in which topics go by name."""


@value
class Fetched:
    """One partition as it was asked for."""

    state: PartitionState
    era: int
    place: Place


class Fetcher:
    def __init__(
        self,
        *,
        options: Options,
        subscription: Subscription,
        cluster: Cluster,
        positions: Positions,
        post: Post,
        backoff: Backoff,
    ) -> None:
        self._options = options
        self._subscription = subscription
        self._cluster = cluster
        self._positions = positions
        self._post = post
        self._backoff = backoff
        self._opening = Opening(
            is_committed_only=options.is_committed_only,
            check_crcs=options.check_crcs,
            key_deserializer=options.key_deserializer,
            value_deserializer=options.value_deserializer,
        )
        self._busy: set[BrokerId] = set()
        self._quiet_until: dict[BrokerId, Millis] = {}
        """Brokers that had nothing new a moment ago, while the program has enough to read."""
        self._due: Millis | None = None

    def due(self) -> Millis | None:
        """When something can be fetched that cannot be fetched now."""
        return self._due

    def advance(self, now: Millis) -> None:
        self._due = None
        by_broker: dict[BrokerId, list[PartitionState]] = defaultdict(list)
        for state in self._subscription.states.values():
            if state.stage is Stage.READY and state.is_readable:
                broker = self._find_broker(state, now)
                if broker is not None:
                    by_broker[broker].append(state)
        for broker, states in by_broker.items():
            if broker not in self._busy:
                self._fetch(self._cluster.brokers[broker], states, now)

    def _find_broker(self, state: PartitionState, now: Millis) -> BrokerId | None:
        """Who is asked for it, if anybody."""
        if self._positions.needs_validation(state):
            self._subscription.await_validation(state)
            return None
        if state.replica in self._cluster.brokers and now < state.replica_until:
            return state.replica
        leader = self._cluster.find_leader(state.partition)
        if leader is None:
            self._cluster.doubt()
            return None
        return leader.node_id

    def _fetch(self, broker: Broker, states: list[PartitionState], now: Millis) -> None:
        open_states = [state for state in states if not state.is_full and not state.is_fetching]
        ready = [state for state in open_states if now >= state.retry_at]
        self._wake_for(state.retry_at for state in open_states if now < state.retry_at)
        if not ready or self._held_bytes(states) >= self._options.fetch_max_bytes:
            return
        wait_ms = self._options.fetch_max_wait_ms
        if any(state.is_full for state in states):
            # A broker that waits for these could not be asked for the others when their turn comes.
            quiet_until = self._quiet_until.get(broker.node_id, Millis(0))
            if now < quiet_until:
                self._wake_for((quiet_until,))
                return
            wait_ms = Millis(0)
        self._send(broker, ready, wait_ms)

    def _held_bytes(self, states: list[PartitionState]) -> int:
        return sum(parcel.size for state in states for parcel in state.parcels)

    def _wake_for(self, moments: Iterable[Millis]) -> None:
        for moment in moments:
            self._due = moment if self._due is None else min(self._due, moment)

    def _send(self, broker: Broker, states: list[PartitionState], wait_ms: Millis) -> None:
        fetched = {state.partition: _as_fetched(state) for state in states}
        for state in states:
            state.is_fetching = True
        by_topic: dict[Topic, list[FetchPartition]] = defaultdict(list)
        for each in fetched.values():
            by_topic[each.state.partition.topic].append(self._partition(each))
        topic_ids = {topic: self._cluster.topic_id(topic) for topic in by_topic}
        body = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=self._options.fetch_min_bytes,
            max_bytes=self._options.fetch_max_bytes,
            isolation_level=int(self._options.is_committed_only),
            session_epoch=_OUTSIDE_SESSIONS,
            topics=tuple(
                FetchTopic(topic=topic, topic_id=topic_ids[topic], partitions=tuple(partitions))
                for topic, partitions in by_topic.items()
            ),
            rack_id=self._options.client_rack or "",
        )
        self._post.send(
            body,
            broker,
            self._options.request_timeout_ms,
            self._then(broker.node_id, fetched, topic_ids),
            version_max=_BY_NAME if ZERO_UUID in topic_ids.values() else None,
        )
        self._busy.add(broker.node_id)

    def _partition(self, fetched: Fetched) -> FetchPartition:
        return FetchPartition(
            partition=fetched.state.partition.partition,
            current_leader_epoch=self._cluster.leader_epoch(fetched.state.partition),
            fetch_offset=fetched.place.offset,
            partition_max_bytes=self._options.max_partition_fetch_bytes,
        )

    # Answers

    def _then(
        self,
        broker_id: BrokerId,
        fetched: dict[TopicPartition, Fetched],
        topic_ids: dict[Topic, Uuid],
    ) -> Callable[[Answer, Millis], None]:
        names = {topic_id: topic for topic, topic_id in topic_ids.items()}

        def then(answer: Answer, now: Millis) -> None:
            self._busy.discard(broker_id)
            current = {
                partition: each
                for partition, each in fetched.items()
                if self._subscription.is_current(each.state, each.era)
            }
            for each in current.values():
                each.state.is_fetching = False
            if isinstance(answer, Loss) or answer.error_code != ErrorCode.NONE:
                self._cluster.doubt()
                for each in current.values():
                    each.state.replica = None
                    self._postpone(each.state, now)
                return
            self._take(answer, current, names, now)
            if all(each.state.fetch_from is each.place for each in current.values()):
                self._quiet_until[broker_id] = Millis(now + self._options.fetch_max_wait_ms)

        return then

    def _take(
        self,
        answer: FetchResponse,
        fetched: dict[TopicPartition, Fetched],
        names: dict[Uuid, Topic],
        now: Millis,
    ) -> None:
        brokers = [
            Broker(node_id=each.node_id, host=each.host, port=each.port)
            for each in answer.node_endpoints
        ]
        for topic in answer.responses:
            name = topic.topic or names.get(topic.topic_id)
            for told in topic.partitions:
                if name is None:
                    continue
                each = fetched.get(TopicPartition(name, told.partition_index))
                if each is not None:
                    self._take_partition(each, told, brokers, now)

    def _take_partition(
        self, fetched: Fetched, told: PartitionData, brokers: list[Broker], now: Millis
    ) -> None:
        state = fetched.state
        if told.error_code != ErrorCode.NONE:
            self._take_error(fetched, told, brokers, now)
        elif told.preferred_read_replica >= 0:
            state.replica = told.preferred_read_replica
            state.replica_until = Millis(now + self._options.metadata_max_age_ms)
        elif told.records:
            aborted = told.aborted_transactions or ()
            parcel = Parcel(state.partition, told.records, fetched.place, self._opening, aborted)
            state.parcels.append(parcel)
            state.fetch_from = parcel.end
            # Whoever has given something waits until the others were asked first (KIP-74).
            states = self._subscription.states
            states[state.partition] = states.pop(state.partition)

    def _take_error(
        self, fetched: Fetched, told: PartitionData, brokers: list[Broker], now: Millis
    ) -> None:
        state, code = fetched.state, told.error_code
        topic, number = state.partition
        is_from_follower, state.replica = state.replica is not None, None
        if code in MOVED or code == ErrorCode.UNKNOWN_SERVER_ERROR:
            leader = told.current_leader
            is_known = self._cluster.hear_of_leader(
                state.partition, leader.leader_id, leader.leader_epoch, brokers
            )
            if not is_known:
                self._cluster.doubt()
                self._postpone(state, now)
        elif code == ErrorCode.OFFSET_OUT_OF_RANGE:
            # A follower may lag behind; only the leader's word counts.
            if is_from_follower or state.parcels:
                self._postpone(state, now)  # what is buffered was there, and is read first
            else:
                self._positions.reset(state, f"offset {fetched.place.offset} is out of range")
        elif code == ErrorCode.CORRUPT_MESSAGE:
            reason = "the broker says that it is corrupt"
            fault = BadRecord(state.partition, fetched.place.offset, reason)
            self._subscription.complain(state, fault)
        else:
            fault_ = BrokerRefused(named(code), f"{topic}-{number} cannot be read")
            self._subscription.complain(state, fault_)

    def _postpone(self, state: PartitionState, now: Millis) -> None:
        state.retry_at = self._backoff.after(now, 0)


def _as_fetched(state: PartitionState) -> Fetched:
    assert state.fetch_from is not None
    return Fetched(state=state, era=state.era, place=state.fetch_from)
