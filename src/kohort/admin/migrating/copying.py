"""The loop that copies: read from A, remember, write to B, remember.

At any moment it may be killed. What was remembered last and what B has of ours together say where
to go on.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import Final

from kohort.admin.migrating.mapping import make_stretch
from kohort.admin.migrating.packing import (
    Load,
    TooLarge,
    checksum,
    end_of,
    open_batches,
    pack,
    seal_load,
)
from kohort.admin.migrating.reading import Reader
from kohort.admin.migrating.state import Intent, PartitionState, State
from kohort.admin.migrating.wish import MigrationStopped, Phase, Progress, Watch
from kohort.admin.migrating.writing import Overtaken, Writer, find_written, sequence_of
from kohort.client.fetching.parcel import FetchedBatches
from kohort.client.topic_partition import TopicPartition
from kohort.types import Offset, ProducerEpoch, ProducerId, Topic, value

_TURN_BYTES: Final = 8 * 1024 * 1024
"""So much is read before it is written: the state is kept once for all of it."""

_TURN_READS: Final = 32

_OVERTAKEN_MAX: Final = 5
"""Batches of an earlier run that come late are few."""


@value
class Producer:
    """Under which B knows us."""

    producer_id: ProducerId
    producer_epoch: ProducerEpoch


class Copying:
    def __init__(
        self,
        *,
        source: Reader,
        target: Reader,
        writer: Writer,
        state: State,
        producer: Producer,
        bytes_max: Mapping[Topic, int],
        watch: Watch,
    ) -> None:
        """`bytes_max` is how large a batch may be that B takes, by topic."""
        self._source = source
        self._target = target
        self._writer = writer
        self._state = state
        self._producer = producer
        self._bytes_max = bytes_max
        self._watch = watch
        self._records = self._bytes = self._done = 0

    def settle(self, partitions: Iterable[TopicPartition]) -> None:
        """Look what B has of what was about to be sent, and remember it."""
        intents = {each: self._state.intents(each) for each in partitions}
        places = {
            each: self._state.get_partition(each).target_next
            for each, intended in intents.items()
            if intended
        }
        written = find_written(self._target, self._producer.producer_id, places)
        for partition in places:
            arrived: list[tuple[Intent, Offset]] = []
            copied = self._state.get_partition(partition).copied
            while (there := written[partition].get(sequence_of(copied))) is not None:
                count, offset = there
                intent = intents[partition].get((copied, count))
                if intent is None:
                    name = f"{partition.topic}:{partition.partition}"
                    raise MigrationStopped(
                        f"B has {count} records at offset {offset} of {name} that came from "
                        "this migration, and its state does not know them"
                    )
                arrived.append((intent, offset))
                copied += count
            self._state.settle(arrived)

    def copy(self, goals: Mapping[TopicPartition, Offset]) -> None:
        """Until A has been copied up to there."""
        for attempt in range(_OVERTAKEN_MAX + 1):
            try:
                self._copy(goals)
            except Overtaken as late:
                if attempt == _OVERTAKEN_MAX:
                    raise MigrationStopped(f"B and this migration disagree: {late}") from None
                self.settle(goals)
            else:
                return

    def _copy(self, goals: Mapping[TopicPartition, Offset]) -> None:
        places = {each: self._state.get_partition(each).source_next for each in goals}
        left = sum(max(0, goals[each] - place) for each, place in places.items())
        total = self._done + left
        ahead = {each: self._state.get_partition(each) for each in goals}
        turn, read, size = list[tuple[Intent, Load]](), 0, 0
        for fetched in self._source.read(places, goals):
            turn += self._plan(fetched, ahead)
            place = end_of(fetched)
            goal = goals[fetched.partition]
            self._done += min(place, goal) - min(places[fetched.partition], goal)
            places[fetched.partition] = place
            read, size = read + 1, size + len(fetched.content)
            if read >= _TURN_READS or size >= _TURN_BYTES:
                self._send(turn)
                turn, read, size = [], 0, 0
            self._tell(total)
        self._send(turn)
        for partition, goal in goals.items():
            self._state.remember_read(partition, goal)
        self._done = total
        self._tell(total)

    def _plan(
        self, fetched: FetchedBatches, ahead: dict[TopicPartition, PartitionState]
    ) -> list[tuple[Intent, Load]]:
        """What is to be sent of it, and what will be so once it has arrived."""
        partition, planned = fetched.partition, list[tuple[Intent, Load]]()
        try:
            loads = list(pack(open_batches(fetched), self._bytes_max[partition.topic]))
        except TooLarge as error:
            topic, number = partition
            limit = self._bytes_max[topic]
            raise MigrationStopped(
                f"{topic}:{number}: {error}, and max.message.bytes is {limit} in B"
            ) from None
        for index, load in enumerate(loads):
            before = ahead[partition]
            is_last = index == len(loads) - 1
            stretch = make_stretch(load.offsets, Offset(-1))
            intent = Intent(
                partition=partition,
                copied=before.copied,
                source_next=end_of(fetched) if is_last else stretch.source_next,
                stretch=stretch,
                checksum=checksum(load.records, before.checksum),
            )
            ahead[partition] = PartitionState(
                source_next=intent.source_next,
                target_next=before.target_next,
                copied=before.copied + stretch.count,
                checksum=intent.checksum,
                verified=before.verified,
                verified_checksum=before.verified_checksum,
                verified_next=before.verified_next,
            )
            planned.append((intent, load))
            self._records += stretch.count
            self._bytes += len(load.body)
        return planned

    def _send(self, turn: list[tuple[Intent, Load]]) -> None:
        if not turn:
            return
        self._state.intend(intent for intent, _ in turn)
        queues: defaultdict[TopicPartition, deque[tuple[Intent, Load]]] = defaultdict(deque)
        for intent, load in turn:
            queues[intent.partition].append((intent, load))
        arrived: list[tuple[Intent, Offset]] = []
        try:
            while queues:
                # B takes one batch of a partition in one request.
                first = {partition: queue.popleft() for partition, queue in queues.items()}
                for partition in [each for each, queue in queues.items() if not queue]:
                    del queues[partition]
                targets = self._writer.write(
                    {partition: self._seal(*sent) for partition, sent in first.items()}
                )
                arrived += (
                    (intent, targets[partition]) for partition, (intent, _) in first.items()
                )
        finally:
            self._state.settle(arrived)

    def _seal(self, intent: Intent, load: Load) -> bytes:
        return seal_load(
            load,
            producer_id=self._producer.producer_id,
            producer_epoch=self._producer.producer_epoch,
            number=intent.copied,
        )

    def _tell(self, total: int) -> None:
        self._watch(
            Progress(
                phase=Phase.COPYING,
                done=self._done,
                total=total,
                records=self._records,
                data_bytes=self._bytes,
            )
        )
