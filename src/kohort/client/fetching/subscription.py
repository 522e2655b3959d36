"""What a program wants to read, and how far it is in each partition. Pure.

Topics and patterns are for the group to share out; an assignment is the program's own. Where the
program stands is its `place`; what it has done with is `done`, and only that is ever committed
without being asked for.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum, auto
from itertools import count

from kohort.client.errors import ConsumerError, WrongUse
from kohort.client.fetching.parcel import Parcel, Place
from kohort.client.listener import ConsumerRebalanceListener
from kohort.client.member.events import Position
from kohort.client.topic_partition import TopicPartition
from kohort.types import BrokerId, Millis, Offset, Topic

BUFFERED_PARCELS_MAX = 2
"""Of one partition: the one the program reads from, and one ahead."""


class Stage(Enum):
    """What a partition waits for."""

    COMMITTED = auto()
    """To hear what the group has committed."""
    RESET = auto()
    """To hear where it begins or ends."""
    VALIDATION = auto()
    """To hear whether a new leader still has what was read from the old one (KIP-320)."""
    READY = auto()
    """For nothing: it can be fetched from."""
    FAULTY = auto()
    """For the program, which is told why at every poll."""


class PartitionState:
    """One partition from its assignment to its revocation. `era` changes with every jump."""

    __slots__ = (
        "done",
        "era",
        "fetch_from",
        "is_asked",
        "is_fetching",
        "is_leaving",
        "is_paused",
        "kept",
        "leader_epoch",
        "parcels",
        "partition",
        "place",
        "replica",
        "replica_until",
        "reset_to",
        "retry_at",
        "stage",
    )

    def __init__(self, partition: TopicPartition, era: int) -> None:
        self.partition = partition
        self.era = era
        self.stage = Stage.COMMITTED
        self.place: Place | None = None
        """Of the program: the record after the last one it was given."""
        self.done: Place | None = None
        """Behind `place` while the program works on what it was given."""
        self.kept: Offset | None = None
        """What the coordinator has, as far as we know."""
        self.fetch_from: Place | None = None
        """Where the next fetch begins: ahead of `place` by what is buffered."""
        self.parcels: deque[Parcel] = deque()
        self.reset_to: Millis | None = None
        """A moment, or -1 for the end and -2 for the beginning."""
        self.leader_epoch = -1
        """Of the leader that the place was last checked with."""
        self.retry_at = Millis(0)
        self.replica: BrokerId | None = None
        """Where to read instead of the leader, if it said so, and until when (KIP-392)."""
        self.replica_until = Millis(0)
        self.is_asked = False
        """Whether an answer is on its way to what the stage waits for."""
        self.is_fetching = False
        self.is_paused = False
        self.is_leaving = False

    @property
    def is_readable(self) -> bool:
        return not self.is_paused and not self.is_leaving

    @property
    def is_full(self) -> bool:
        parcels = self.parcels
        return len(parcels) >= BUFFERED_PARCELS_MAX or (bool(parcels) and parcels[-1].is_bad)

    def stand(self, place: Place, era: int) -> None:
        """Go there: the program has done with all before it, and what is buffered is of no use."""
        self._leave(era, Stage.READY)
        self.place = self.done = self.fetch_from = place

    def wait(self, stage: Stage, era: int) -> None:
        self._leave(era, stage)

    def _leave(self, era: int, stage: Stage) -> None:
        self.era = era
        self.stage = stage
        self.parcels.clear()
        self.is_asked = self.is_fetching = False
        self.retry_at = Millis(0)
        self.leader_epoch = -1
        if stage is not Stage.VALIDATION:
            self.place = self.done = self.fetch_from = None


class Wish(Enum):
    """How the program has said what it wants."""

    NOTHING = auto()
    TOPICS = auto()
    PATTERN = auto()
    PARTITIONS = auto()


class Subscription:
    def __init__(self) -> None:
        self.wish = Wish.NOTHING
        self.topics: frozenset[Topic] = frozenset()
        """Named by the program, or found by its pattern."""
        self.pattern: re.Pattern[str] | None = None
        self.listener = ConsumerRebalanceListener()
        self.states: dict[TopicPartition, PartitionState] = {}
        self._eras = count(1)
        self._faults: dict[TopicPartition, ConsumerError] = {}
        self._given: dict[TopicPartition, PartitionState] = {}
        """What the last polls have given records of, since the program last said it was done."""

    # What is wanted

    def choose(self, wish: Wish) -> None:
        """One way at a time, as in Kafka: mixing them is more often a mistake than a wish."""
        if self.wish not in (wish, Wish.NOTHING):
            raise WrongUse(
                f"this consumer already wants {self.wish.name.lower()}; "
                "call unsubscribe() before choosing another way"
            )
        self.wish = wish

    def clear(self) -> None:
        self.wish = Wish.NOTHING
        self.topics = frozenset()
        self.pattern = None
        self.listener = ConsumerRebalanceListener()
        self.states.clear()
        self._faults.clear()
        self._given.clear()

    def match(self, topics: Mapping[Topic, bool], *, exclude_internal: bool) -> frozenset[Topic]:
        """Those that the pattern matches; the mapping says which are internal."""
        pattern = self.pattern
        assert pattern is not None
        return frozenset(
            topic
            for topic, is_internal in topics.items()
            if pattern.match(topic) and not (is_internal and exclude_internal)
        )

    # What is held

    def add(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in sorted(partitions):
            if partition not in self.states:
                self.states[partition] = PartitionState(partition, next(self._eras))

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self.states.pop(partition, None)
            self._faults.pop(partition, None)
            self._given.pop(partition, None)

    def get(self, partition: TopicPartition) -> PartitionState:
        state = self.states.get(partition)
        if state is None:
            topic, number = partition
            raise WrongUse(f"partition {topic}-{number} is not assigned to this consumer")
        return state

    def is_current(self, state: PartitionState, era: int) -> bool:
        """Whether it is still held, and has not been sent elsewhere meanwhile."""
        return state.era == era and self.states.get(state.partition) is state

    @property
    def fault(self) -> ConsumerError | None:
        """What keeps a partition from being read, as long as the program does nothing about it."""
        return next(iter(self._faults.values()), None)

    # Moving

    def stand(self, state: PartitionState, place: Place) -> None:
        self._leave(state)
        state.stand(place, next(self._eras))

    def reset(self, state: PartitionState, to: Millis) -> None:
        self._leave(state)
        state.wait(Stage.RESET, next(self._eras))
        state.reset_to = to

    def await_committed(self, state: PartitionState) -> None:
        self._leave(state)
        state.wait(Stage.COMMITTED, next(self._eras))

    def await_validation(self, state: PartitionState) -> None:
        """Fetched parcels go: what comes after them may be another history."""
        state.wait(Stage.VALIDATION, next(self._eras))
        state.fetch_from = state.place

    def complain(self, state: PartitionState, fault: ConsumerError) -> None:
        self._leave(state)
        state.wait(Stage.FAULTY, next(self._eras))
        self._faults[state.partition] = fault

    def rewind(self, state: PartitionState, place: Place) -> None:
        """The program was given less than was taken out for it: the rest is fetched again."""
        done = state.done
        state.stand(place, next(self._eras))
        state.done = done
        self._given[state.partition] = state

    def _leave(self, state: PartitionState) -> None:
        self._faults.pop(state.partition, None)
        self._given.pop(state.partition, None)

    def give(self, state: PartitionState, place: Place) -> None:
        """The program has been given everything before this place."""
        state.place = place
        self._given[state.partition] = state

    def finish(self) -> None:
        """The program has done with all it was given."""
        for state in self._given.values():
            state.done = state.place
        self._given.clear()

    # Committing

    def places(self) -> dict[TopicPartition, Position]:
        """Where the program stands: what it means by commit()."""
        return {
            state.partition: _position(state.place)
            for state in self.states.values()
            if state.place is not None
        }

    def done_with(self) -> dict[TopicPartition, Position]:
        """What can be committed without asking, and is not yet."""
        return {
            state.partition: _position(state.done)
            for state in self.states.values()
            if state.done is not None and state.done.offset != state.kept
        }

    def finish_at(self, positions: Mapping[TopicPartition, Position]) -> None:
        """The program commits these itself: it has done with what comes before them."""
        for partition, position in positions.items():
            state = self.states.get(partition)
            if state is None or state.place is None or state.done is None:
                continue
            if state.done.offset < position.offset <= state.place.offset:
                state.done = Place(offset=position.offset, leader_epoch=position.leader_epoch)

    def keep(self, positions: Mapping[TopicPartition, Position]) -> None:
        """The coordinator has these."""
        for partition, position in positions.items():
            state = self.states.get(partition)
            if state is not None:
                state.kept = position.offset

    def in_stage(self, stage: Stage) -> Iterator[PartitionState]:
        return (state for state in self.states.values() if state.stage is stage)


def _position(place: Place) -> Position:
    return Position(offset=place.offset, leader_epoch=place.leader_epoch)
