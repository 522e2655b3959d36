"""What a member's process reads: positions, fetches, and how far its program has come.

One fetch is under way at a time. What comes back for a partition that was given up meanwhile, or
is read from elsewhere by now, is not handed out.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby

from kohort.client.member.events import Position
from kohort.client.topic_partition import TopicPartition
from kohort.sim.life import Life
from kohort.sim.plan import MemberPlan
from kohort.sim.stage import Stage
from kohort.types import BrokerId, ErrorCode, Millis, Offset, Topic, value
from kohort.wire.api.k01_fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from kohort.wire.api.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kohort.wire.batch import iter_records, split

_EARLIEST = Millis(-2)
_BYTES_MAX = 1 << 20
_PAUSE_MS = 250
"""After an error, before the next fetch."""


@value
class Piece:
    """A record, and where it was read."""

    partition: TopicPartition
    offset: int
    text: str


class Reader:
    def __init__(
        self, stage: Stage, life: Life, name: str, plan: MemberPlan, on_news: Callable[[], None]
    ) -> None:
        self._stage = stage
        self._life = life
        self._name = name
        self._plan = plan
        self._on_news = on_news
        self._fetching = stage.phone(life, plan.name, is_old=plan.is_old)
        self._asking = stage.phone(life, plan.name, is_old=plan.is_old)
        self._positions: dict[TopicPartition, int | None] = {}
        """Where to read on; None where that is not known yet."""
        self._from_beginning: dict[TopicPartition, None] = {}
        self._leaving: frozenset[TopicPartition] = frozenset()
        self._ready: deque[Piece] = deque()
        self._done: dict[TopicPartition, int] = {}
        self._saved: dict[TopicPartition, int] = {}
        self._is_pausing = False

    def end(self, *, is_vanishing: bool) -> None:
        for phone in (self._fetching, self._asking):
            phone.vanish() if is_vanishing else phone.hang_up()

    # What is held

    def add(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in sorted(partitions):
            self._positions[partition] = None
        # What was about to go when the group began anew, and is here still, stays.
        self._leaving = frozenset()

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self._positions.pop(partition, None)
            self._from_beginning.pop(partition, None)
            self._done.pop(partition, None)
            self._saved.pop(partition, None)
        self._leaving = frozenset()
        self._ready = deque(each for each in self._ready if each.partition in self._positions)

    def hold_back(self, partitions: frozenset[TopicPartition]) -> None:
        """About to go: nothing more of these is handed out."""
        self._leaving = partitions

    # Where to read

    def unplaced(self) -> frozenset[TopicPartition]:
        """What the group should be asked about."""
        return frozenset(
            at
            for at, position in self._positions.items()
            if position is None and at not in self._from_beginning
        )

    def place(self, asked: Iterable[TopicPartition], known: dict[TopicPartition, int]) -> None:
        """Where the group has come to; what it has not committed is read from its beginning."""
        for partition in sorted(asked):
            if self._positions.get(partition, 0) is not None:
                continue
            if partition in known:
                self._positions[partition] = self._saved[partition] = known[partition]
            else:
                self._from_beginning[partition] = None

    def _find_beginnings(self) -> None:
        if not self._from_beginning or not self._asking.is_idle or self._is_pausing:
            return
        body = ListOffsetsRequest(
            replica_id=BrokerId(-1),
            topics=tuple(
                ListOffsetsTopic(
                    name=topic,
                    partitions=tuple(
                        ListOffsetsPartition(partition_index=each.partition, timestamp=_EARLIEST)
                        for each in group
                    ),
                )
                for topic, group in groupby(sorted(self._from_beginning), _topic_of)
            ),
        )
        self._asking.ask(body, self._plan.request_ms, self._on_beginnings, lambda _: self._pause())

    def _on_beginnings(self, answer: ListOffsetsResponse) -> None:
        for topic in answer.topics:
            for part in topic.partitions:
                partition = TopicPartition(topic.name, part.partition_index)
                if not part.error_code and partition in self._from_beginning:
                    del self._from_beginning[partition]
                    self._positions[partition] = part.offset
        self._on_news()

    # Fetching

    def fetch(self) -> None:
        """Whatever can be read and is not there yet."""
        self._find_beginnings()
        if not self._fetching.is_idle or self._is_pausing:
            return
        there = {each.partition for each in self._ready}
        asked = {
            at: position
            for at, position in self._positions.items()
            if position is not None and at not in there and at not in self._leaving
        }
        if not asked:
            return
        body = FetchRequest(
            max_wait_ms=Millis(self._plan.fetch_wait_ms),
            min_bytes=1,
            topics=tuple(
                FetchTopic(
                    topic=topic,
                    partitions=tuple(
                        FetchPartition(
                            partition=each.partition,
                            fetch_offset=Offset(asked[each]),
                            partition_max_bytes=_BYTES_MAX,
                        )
                        for each in group
                    ),
                )
                for topic, group in groupby(sorted(asked), _topic_of)
            ),
        )
        asked_at = self._stage.timeline.now
        self._fetching.ask(
            body,
            self._plan.fetch_wait_ms + self._plan.request_ms,
            lambda answer: self._on_fetched(answer, asked, asked_at),
            lambda _: self._pause(),
        )

    def _on_fetched(
        self, answer: FetchResponse, wanted: dict[TopicPartition, int], asked_at: int
    ) -> None:
        for topic in answer.responses:
            for part in topic.partitions:
                partition = TopicPartition(topic.topic, part.partition_index)
                self._take_in(partition, part, wanted[partition], asked_at)
        self._on_news()

    def _take_in(
        self, partition: TopicPartition, part: PartitionData, asked: int, asked_at: int
    ) -> None:
        if part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._stage.court.records.out_of_range(partition, asked)
            if self._positions.get(partition) == asked:
                self._stage.trace.tell(self._name, "resets", _show(partition), f"from={asked}")
                self._positions[partition] = None
                self._done.pop(partition, None)
                self._from_beginning[partition] = None
            return
        if part.error_code:
            self._pause()
            return
        records = read_pieces(partition, part.records or b"")
        self._stage.court.records.fetched(
            partition, asked, [(each.offset, each.text) for each in records], asked_at
        )
        if self._positions.get(partition) != asked or not records:
            return
        self._ready += [each for each in records if each.offset >= asked]
        self._positions[partition] = records[-1].offset + 1

    def _pause(self) -> None:
        if not self._is_pausing:
            self._is_pausing = True
            self._life.later(_PAUSE_MS, self._go_on)

    def _go_on(self) -> None:
        self._is_pausing = False
        self._on_news()

    # The program

    def take(self) -> list[Piece]:
        """The next records to work on."""
        taken: list[Piece] = []
        kept: deque[Piece] = deque()
        for piece in self._ready:
            if piece.partition in self._leaving or len(taken) == self._plan.batch_max:
                kept.append(piece)
            else:
                taken.append(piece)
        self._ready = kept
        return taken

    def finish(self, pieces: list[Piece]) -> None:
        """The program has done with these."""
        for piece in pieces:
            if piece.partition in self._positions:
                self._done[piece.partition] = piece.offset + 1

    def unsaved(
        self, among: frozenset[TopicPartition] | None = None
    ) -> dict[TopicPartition, Position]:
        """What was done with and is not known to be committed."""
        return {
            at: Position(offset=Offset(offset))
            for at, offset in sorted(self._done.items())
            if offset != self._saved.get(at) and (among is None or at in among)
        }

    def saved(self, positions: Mapping[TopicPartition, Position]) -> None:
        for at, position in positions.items():
            if at in self._positions:
                self._saved[at] = position.offset


def _topic_of(partition: TopicPartition) -> Topic:
    return partition.topic


def read_pieces(partition: TopicPartition, data: bytes) -> list[Piece]:
    """All records in what was fetched; the last batch may be cut short."""
    return [
        Piece(
            partition=partition,
            offset=record.offset,
            text=(record.value or b"").decode(),
        )
        for position, _ in split(data, truncated_ok=True)
        for record in iter_records(data, position)
    ]


def _show(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"
