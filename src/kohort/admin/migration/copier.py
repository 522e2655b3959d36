"""The copy loop: read from the source, store intents, write to the target, store offsets.

It may be killed at any time. The next run finds its position from the state file and from the
batches of this producer in the target.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import Final

from kohort.admin.migration.cluster_reader import ClusterReader
from kohort.admin.migration.idempotent_writer import (
    IdempotentWriter,
    SequenceConflict,
    find_written,
    sequence_of,
)
from kohort.admin.migration.migration_state import BatchIntent, MigrationState, PartitionCheckpoint
from kohort.admin.migration.migration_types import (
    MigrationPhase,
    MigrationProgress,
    MigrationStopped,
    OnProgress,
)
from kohort.admin.migration.offset_map import map_range
from kohort.admin.migration.rebatch import (
    OutgoingBatch,
    RecordTooLarge,
    checksum,
    decode_batches,
    end_of,
    rebatch,
    seal_batch,
)
from kohort.client.fetch.completed_fetch import FetchedBatches
from kohort.types import Offset, ProducerEpoch, ProducerId, Topic, TopicPartition, value

_ROUND_BYTES: Final = 8 * 1024 * 1024
"""Read before each write, so that the state file is written once for all of it."""

_ROUND_READS: Final = 32

_CONFLICTS_MAX: Final = 5
"""Few batches of an earlier run can arrive conflict."""


@value
class ProducerIdAndEpoch:
    """The identity of the migration's producer in the target."""

    producer_id: ProducerId
    producer_epoch: ProducerEpoch


class Copier:
    def __init__(
        self,
        *,
        source: ClusterReader,
        target: ClusterReader,
        writer: IdempotentWriter,
        state: MigrationState,
        producer: ProducerIdAndEpoch,
        bytes_max: Mapping[Topic, int],
        on_progress: OnProgress,
    ) -> None:
        """`bytes_max`: the target's max.message.bytes by topic."""
        self._source = source
        self._target = target
        self._writer = writer
        self._state = state
        self._producer = producer
        self._bytes_max = bytes_max
        self._on_progress = on_progress
        self._records = self._bytes = self._done = 0

    def resolve_intents(self, partitions: Iterable[TopicPartition]) -> None:
        """Find out which intents the target has, and store their offsets."""
        intents = {each: self._state.find_intents(each) for each in partitions}
        positions = {
            each: self._state.get_partition(each).target_next
            for each, pending in intents.items()
            if pending
        }
        written = find_written(self._target, self._producer.producer_id, positions)
        for partition in positions:
            written_batches: list[tuple[BatchIntent, Offset]] = []
            copied = self._state.get_partition(partition).copied
            while (found := written[partition].get(sequence_of(copied))) is not None:
                count, offset = found
                intent = intents[partition].get((copied, count))
                if intent is None:
                    name = f"{partition.topic}:{partition.partition}"
                    raise MigrationStopped(
                        f"the target has {count} records at offset {offset} of {name} that "
                        "this migration wrote and that are not in its state file"
                    )
                written_batches.append((intent, offset))
                copied += count
            self._state.save_written(written_batches)

    def copy(self, ends: Mapping[TopicPartition, Offset]) -> None:
        """Copy the source up to these offsets."""
        for attempt in range(_CONFLICTS_MAX + 1):
            try:
                self._copy(ends)
            except SequenceConflict as conflict:
                if attempt == _CONFLICTS_MAX:
                    raise MigrationStopped(
                        f"the target rejected the sequence number again and again: {conflict}"
                    ) from None
                self.resolve_intents(ends)
            else:
                return

    def _copy(self, ends: Mapping[TopicPartition, Offset]) -> None:
        positions = {each: self._state.get_partition(each).source_next for each in ends}
        left = sum(max(0, ends[each] - position) for each, position in positions.items())
        total = self._done + left
        ahead = {each: self._state.get_partition(each) for each in ends}
        round_, read, size = list[tuple[BatchIntent, OutgoingBatch]](), 0, 0
        for fetched in self._source.read(positions, ends):
            round_ += self._plan(fetched, ahead)
            position = end_of(fetched)
            end = ends[fetched.partition]
            self._done += min(position, end) - min(positions[fetched.partition], end)
            positions[fetched.partition] = position
            read, size = read + 1, size + len(fetched.content)
            if read >= _ROUND_READS or size >= _ROUND_BYTES:
                self._send(round_)
                round_, read, size = [], 0, 0
            self._report(total)
        self._send(round_)
        for partition, end in ends.items():
            self._state.mark_read(partition, end)
        self._done = total
        self._report(total)

    def _plan(
        self, fetched: FetchedBatches, ahead: dict[TopicPartition, PartitionCheckpoint]
    ) -> list[tuple[BatchIntent, OutgoingBatch]]:
        """The batches to send, each with the checkpoint after it."""
        partition, planned = fetched.partition, list[tuple[BatchIntent, OutgoingBatch]]()
        try:
            batches = list(rebatch(decode_batches(fetched), self._bytes_max[partition.topic]))
        except RecordTooLarge as error:
            topic, number = partition
            limit = self._bytes_max[topic]
            raise MigrationStopped(
                f"{topic}:{number}: {error}, but max.message.bytes is {limit} in the target"
            ) from None
        for index, batch in enumerate(batches):
            before = ahead[partition]
            is_last = index == len(batches) - 1
            mapped = map_range(batch.offsets, Offset(-1))
            intent = BatchIntent(
                partition=partition,
                copied=before.copied,
                source_next=end_of(fetched) if is_last else mapped.source_next,
                mapped=mapped,
                checksum=checksum(batch.records, before.checksum),
            )
            ahead[partition] = PartitionCheckpoint(
                source_next=intent.source_next,
                target_next=before.target_next,
                copied=before.copied + mapped.count,
                checksum=intent.checksum,
                verified=before.verified,
                verified_checksum=before.verified_checksum,
                verified_next=before.verified_next,
            )
            planned.append((intent, batch))
            self._records += mapped.count
            self._bytes += len(batch.body)
        return planned

    def _send(self, round_: list[tuple[BatchIntent, OutgoingBatch]]) -> None:
        if not round_:
            return
        self._state.save_intents(intent for intent, _ in round_)
        queues: defaultdict[TopicPartition, deque[tuple[BatchIntent, OutgoingBatch]]] = defaultdict(
            deque
        )
        for intent, batch in round_:
            queues[intent.partition].append((intent, batch))
        written_batches: list[tuple[BatchIntent, Offset]] = []
        try:
            while queues:
                # A produce request has at most one batch per partition.
                first = {partition: queue.popleft() for partition, queue in queues.items()}
                for partition in [each for each, queue in queues.items() if not queue]:
                    del queues[partition]
                targets = self._writer.write(
                    {partition: self._seal(*sent) for partition, sent in first.items()}
                )
                written_batches += (
                    (intent, targets[partition]) for partition, (intent, _) in first.items()
                )
        finally:
            self._state.save_written(written_batches)

    def _seal(self, intent: BatchIntent, batch: OutgoingBatch) -> bytes:
        return seal_batch(
            batch,
            producer_id=self._producer.producer_id,
            producer_epoch=self._producer.producer_epoch,
            number=intent.copied,
        )

    def _report(self, total: int) -> None:
        self._on_progress(
            MigrationProgress(
                phase=MigrationPhase.COPYING,
                done=self._done,
                total=total,
                records=self._records,
                data_bytes=self._bytes,
            )
        )
