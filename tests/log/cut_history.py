"""What a workload has written and what was acknowledged, at each position of a recording."""

from bisect import bisect_right
from dataclasses import dataclass, field

from kohort.types import Topic, Uuid
from tests.log.syscall_recorder import SyscallRecorder


class Timeline:
    """A number that only grows, and since when it has each value."""

    def __init__(self) -> None:
        self._positions: list[int] = []
        self._values: list[int] = []

    def put(self, position: int, value: int) -> None:
        self._positions.append(position)
        self._values.append(value)

    def at(self, position: int) -> int:
        index = bisect_right(self._positions, position)
        return self._values[index - 1] if index else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicState:
    topic_id: Uuid
    partition_count: int
    settings: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class PartitionHistory:
    is_compacted: bool
    records: dict[int, tuple[bytes | None, bytes | None]] = field(default_factory=dict)
    written_end: Timeline = field(default_factory=Timeline)
    acked_end: Timeline = field(default_factory=Timeline)
    start: Timeline = field(default_factory=Timeline)
    """The log start offset since a deletion has begun, which a crash may undo."""
    acked_start: Timeline = field(default_factory=Timeline)

    def last_of_keys(self, end: int) -> dict[bytes | None, int]:
        return {key: offset for offset, (key, _) in self.records.items() if offset < end}


@dataclass(slots=True)
class _StateChange:
    begun: int
    acked: int | None
    state: TopicState | None


class History:
    def __init__(self, recorder: SyscallRecorder) -> None:
        self._recorder = recorder
        self.topics: dict[Topic, list[_StateChange]] = {}
        self.producer_ids = Timeline()
        self._partitions: dict[tuple[Uuid, int], PartitionHistory] = {}
        self.batches: dict[tuple[Topic, int], dict[int, bytes]] = {}
        """The batches of idempotent producers by partition and next offset."""

    @property
    def now(self) -> int:
        """The position in the recording."""
        return self._recorder.position

    # Topics

    def begin(self, name: Topic, state: TopicState | None) -> None:
        self.topics.setdefault(name, []).append(_StateChange(self.now, None, state))

    def acknowledge(self, name: Topic) -> None:
        self.topics[name][-1].acked = self.now

    def possible_states(self, name: Topic, position: int) -> list[TopicState | None]:
        """The last acknowledged state, and those that have begun since."""
        possible: list[TopicState | None] = [None]
        for change in self.topics.get(name, ()):
            if change.acked is not None and change.acked <= position:
                possible = [change.state]
            elif change.begun <= position:
                possible.append(change.state)
        return possible

    # Partitions

    def add_partition(self, topic_id: Uuid, number: int, *, is_compacted: bool) -> None:
        self._partitions[topic_id, number] = PartitionHistory(is_compacted)

    def partition(self, topic: TopicState, number: int) -> PartitionHistory:
        return self._partitions[topic.topic_id, number]
