"""The subscription, and the state of each assigned partition. No I/O.

`position` is the offset after the last record that poll() returned. `processed` is the offset after
the last record that the application has processed; only this one is committed automatically.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum, StrEnum, auto
from itertools import count

from kohort.client.errors import ConsumerError, IllegalStateError
from kohort.client.fetch.completed_fetch import CompletedFetch, FetchPosition
from kohort.client.member.member_events import OffsetAndMetadata
from kohort.client.rebalances import ConsumerRebalanceListener
from kohort.types import BrokerId, Millis, Offset, Topic, TopicPartition

BUFFERED_FETCHES_MAX = 2
"""Per partition: the fetch that the application reads from, and one ahead."""


class FetchState(Enum):
    INITIALIZING = auto()
    """Waits for the group's committed offset."""
    AWAIT_RESET = auto()
    """Waits for the first or last offset."""
    AWAIT_VALIDATION = auto()
    """Waits for the new leader to validate the position (KIP-320)."""
    FETCHING = auto()
    """Has a valid position."""
    FAILED = auto()
    """Every poll raises the error until the application seeks."""


class TopicPartitionState:
    """One partition while it is assigned. Every seek or reset changes `position_version`."""

    __slots__ = (
        "committed",
        "fetch_position",
        "fetch_state",
        "fetches",
        "is_fetching",
        "is_paused",
        "is_pending_revocation",
        "is_request_pending",
        "leader_epoch",
        "partition",
        "position",
        "position_version",
        "preferred_replica",
        "preferred_replica_until",
        "processed",
        "reset_to",
        "retry_at",
    )

    def __init__(self, partition: TopicPartition, position_version: int) -> None:
        self.partition = partition
        self.position_version = position_version
        self.fetch_state = FetchState.INITIALIZING
        self.position: FetchPosition | None = None
        """The offset after the last record that poll() returned."""
        self.processed: FetchPosition | None = None
        """Lower than `position` while the application processes records."""
        self.committed: Offset | None = None
        """The last committed offset, as far as it is known."""
        self.fetch_position: FetchPosition | None = None
        """Start of the next fetch: ahead of `position` by the buffered records."""
        self.fetches: deque[CompletedFetch] = deque()
        self.reset_to: Millis | None = None
        """A timestamp, or -1 for the end and -2 for the beginning."""
        self.leader_epoch = -1
        """Of the leader that last validated the position."""
        self.retry_at = Millis(0)
        self.preferred_replica: BrokerId | None = None
        """The replica that the leader prefers for this client (KIP-392)."""
        self.preferred_replica_until = Millis(0)
        self.is_request_pending = False
        """Whether the request that the state waits for is in flight."""
        self.is_fetching = False
        self.is_paused = False
        self.is_pending_revocation = False

    @property
    def is_fetchable(self) -> bool:
        return not self.is_paused and not self.is_pending_revocation

    @property
    def is_full(self) -> bool:
        fetches = self.fetches
        return len(fetches) >= BUFFERED_FETCHES_MAX or (bool(fetches) and fetches[-1].is_bad)

    def seek(self, position: FetchPosition, position_version: int) -> None:
        """Set the position; all before it counts as processed. Drops buffered fetches."""
        self._clear(position_version, FetchState.FETCHING)
        self.position = self.processed = self.fetch_position = position

    def wait(self, stage: FetchState, position_version: int) -> None:
        self._clear(position_version, stage)

    def _clear(self, position_version: int, stage: FetchState) -> None:
        self.position_version = position_version
        self.fetch_state = stage
        self.fetches.clear()
        self.is_request_pending = self.is_fetching = False
        self.retry_at = Millis(0)
        self.leader_epoch = -1
        if stage is not FetchState.AWAIT_VALIDATION:
            self.position = self.processed = self.fetch_position = None


class SubscriptionType(StrEnum):
    """How partitions are assigned; values are for error messages."""

    NONE = "nothing"
    AUTO_TOPICS = "topics"
    AUTO_PATTERN = "pattern"
    USER_ASSIGNED = "partitions"


class SubscriptionState:
    def __init__(self) -> None:
        self.type = SubscriptionType.NONE
        self.topics: frozenset[Topic] = frozenset()
        """Subscribed by name, or matched by the pattern."""
        self.pattern: re.Pattern[str] | None = None
        self.listener = ConsumerRebalanceListener()
        self.states: dict[TopicPartition, TopicPartitionState] = {}
        self._versions = count(1)
        self._errors: dict[TopicPartition, ConsumerError] = {}
        self._delivered: dict[TopicPartition, TopicPartitionState] = {}
        """Partitions with delivered records that are not processed yet."""

    # Subscription

    def set_type(self, chosen: SubscriptionType) -> None:
        """As in Kafka, topics, a pattern and assigned partitions cannot be combined."""
        if self.type not in (chosen, SubscriptionType.NONE):
            raise IllegalStateError(
                f"this consumer is already subscribed to {self.type}; call unsubscribe() first"
            )
        self.type = chosen

    def clear(self) -> None:
        self.type = SubscriptionType.NONE
        self.topics = frozenset()
        self.pattern = None
        self.listener = ConsumerRebalanceListener()
        self.states.clear()
        self._errors.clear()
        self._delivered.clear()

    def match(self, topics: Mapping[Topic, bool], *, exclude_internal: bool) -> frozenset[Topic]:
        """The topics that match the pattern; the mapping says which are internal."""
        pattern = self.pattern
        assert pattern is not None
        return frozenset(
            topic
            for topic, is_internal in topics.items()
            if pattern.match(topic) and not (is_internal and exclude_internal)
        )

    # Assigned partitions

    def add(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in sorted(partitions):
            if partition not in self.states:
                self.states[partition] = TopicPartitionState(partition, next(self._versions))

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self.states.pop(partition, None)
            self._errors.pop(partition, None)
            self._delivered.pop(partition, None)

    def get(self, partition: TopicPartition) -> TopicPartitionState:
        state = self.states.get(partition)
        if state is None:
            topic, number = partition
            raise IllegalStateError(f"partition {topic}-{number} is not assigned to this consumer")
        return state

    def is_current(self, state: TopicPartitionState, position_version: int) -> bool:
        """Whether the partition is still assigned and has not moved since that version."""
        return (
            state.position_version == position_version and self.states.get(state.partition) is state
        )

    @property
    def error(self) -> ConsumerError | None:
        """The error of a failed partition."""
        return next(iter(self._errors.values()), None)

    # Positions

    def seek(self, state: TopicPartitionState, position: FetchPosition) -> None:
        self._clear(state)
        state.seek(position, next(self._versions))

    def reset(self, state: TopicPartitionState, to: Millis) -> None:
        self._clear(state)
        state.wait(FetchState.AWAIT_RESET, next(self._versions))
        state.reset_to = to

    def await_committed(self, state: TopicPartitionState) -> None:
        self._clear(state)
        state.wait(FetchState.INITIALIZING, next(self._versions))

    def await_validation(self, state: TopicPartitionState) -> None:
        """Drop buffered fetches: the new leader's log may differ."""
        state.wait(FetchState.AWAIT_VALIDATION, next(self._versions))
        state.fetch_position = state.position

    def fail(self, state: TopicPartitionState, fault: ConsumerError) -> None:
        self._clear(state)
        state.wait(FetchState.FAILED, next(self._versions))
        self._errors[state.partition] = fault

    def rewind(self, state: TopicPartitionState, position: FetchPosition) -> None:
        """Fetch again from a position before the delivered one."""
        processed = state.processed
        state.seek(position, next(self._versions))
        state.processed = processed
        self._delivered[state.partition] = state

    def _clear(self, state: TopicPartitionState) -> None:
        self._errors.pop(state.partition, None)
        self._delivered.pop(state.partition, None)

    def mark_delivered(self, state: TopicPartitionState, position: FetchPosition) -> None:
        """The application has been given all records before this position."""
        state.position = position
        self._delivered[state.partition] = state

    def mark_all_processed(self) -> None:
        """The application has processed all records it was given."""
        for state in self._delivered.values():
            state.processed = state.position
        self._delivered.clear()

    # Committed offsets

    def consumed_positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The positions that commit() commits."""
        return {
            state.partition: _position(state.position)
            for state in self.states.values()
            if state.position is not None
        }

    def processed_positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Processed positions that are not committed yet."""
        return {
            state.partition: _position(state.processed)
            for state in self.states.values()
            if state.processed is not None and state.processed.offset != state.committed
        }

    def mark_processed(self, positions: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """The application commits these, so all before them is processed."""
        for partition, position in positions.items():
            state = self.states.get(partition)
            if state is None or state.position is None or state.processed is None:
                continue
            if state.processed.offset < position.offset <= state.position.offset:
                state.processed = FetchPosition(
                    offset=position.offset, leader_epoch=position.leader_epoch
                )

    def mark_committed(self, positions: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        for partition, position in positions.items():
            state = self.states.get(partition)
            if state is not None:
                state.committed = position.offset

    def in_state(self, stage: FetchState) -> Iterator[TopicPartitionState]:
        return (state for state in self.states.values() if state.fetch_state is stage)


def _position(position: FetchPosition) -> OffsetAndMetadata:
    return OffsetAndMetadata(offset=position.offset, leader_epoch=position.leader_epoch)
