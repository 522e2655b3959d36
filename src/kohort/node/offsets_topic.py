"""`__consumer_offsets` as the coordinator's memory: where records are kept."""

from collections.abc import Callable, Iterable, Sequence

from kohort.coordinator.partitioner import partition_of
from kohort.coordinator.recordcodec import (
    encode_columns,
    encode_offsets,
    encode_pair,
)
from kohort.coordinator.records import (
    OffsetCommitted,
    OffsetsCommitted,
    Record,
    TransactionEnded,
    one_by_one,
)
from kohort.log.errors import Refused, StorageError
from kohort.log.limits import LEADER_EPOCH
from kohort.log.partition import Made, PartitionLog
from kohort.node.fetches import OnAppend
from kohort.node.runtime import Decided, Keeper, NotKept
from kohort.node.syncer import Syncer
from kohort.node.topics import OFFSETS
from kohort.types import ErrorCode, Millis, Offset, Partition, ProducerEpoch
from kohort.wire.batch import (
    NewBatch,
    NewRecord,
    assign_offset,
    encode,
    encode_moment,
    peek,
    seal_moment,
)


class OffsetsTopic(Keeper):
    """Keeps each outcome's records of one partition as one batch: all of them or none."""

    def __init__(
        self,
        partitions: Callable[[Millis], list[PartitionLog]],
        syncer: Syncer | None,
        on_append: OnAppend,
        on_kept: Callable[[list[Record]], None],
    ) -> None:
        self._partitions = partitions
        self._syncer = syncer
        self._on_append = on_append
        self._on_kept = on_kept
        self._appended: list[tuple[Partition, int]] = []
        """Bytes per partition that waiting fetches have not been told of."""
        self._kept = 0
        self._durable = 0

    # As the runtime's keeper

    def keep(self, records: list[Record], now: Millis) -> list[Record]:
        """Returns what was kept: all, unless records of several partitions met a full disk."""
        kept: list[Record] = []
        partitions = self._partitions(now)
        is_whole = len(partitions) == 1
        batches = ((0, records),) if is_whole else _by_partition(records, len(partitions))
        for index, batch in batches:
            encoded = _encode_batch(batch, now)
            try:
                partitions[index].append_own(encoded, now)
            except (Refused, StorageError) as error:
                if not kept:
                    raise NotKept(error.code) from error
                return kept
            kept += batch
            self._appended.append((Partition(index), len(encoded)))
            self._on_kept(batch)
        self._kept += 1
        return kept

    def keep_each(self, decided: Sequence[Decided]) -> list[ErrorCode | None]:
        """Each as one batch, all in one write where they go to one partition."""
        now = decided[-1].at
        partitions = self._partitions(now)
        if len(partitions) != 1:
            return super().keep_each(decided)
        next_offset = partitions[0].end_offset
        batches: list[Made] = []
        for outcome, at in decided:
            batches.append(_make_batch(outcome.records, at, next_offset))
            next_offset = Offset(next_offset + batches[-1].record_count)
        faults = partitions[0].append_made(batches, now)
        kept_bytes = 0
        for fault, (outcome, _), batch in zip(faults, decided, batches, strict=True):
            if fault is None:
                kept_bytes += len(batch.data)
                self._on_kept(outcome.records)
        if kept_bytes:
            self._kept += 1
            self._appended.append((Partition(0), kept_bytes))
        return [None if fault is None else fault.code for fault in faults]

    def complete_fetches(self) -> None:
        appended, self._appended = self._appended, []
        for partition, size in appended:
            self._on_append(OFFSETS, partition, size)

    def when_durable(self, then: Callable[[], None]) -> None:
        if self._syncer is None:
            then()
            return
        mark = self._kept

        def synced() -> None:
            self._durable = max(self._durable, mark)
            then()

        self._syncer.after(synced)

    @property
    def is_durable(self) -> bool:
        return self._syncer is None or self._durable == self._kept


def _by_partition(records: list[Record], count: int) -> Iterable[tuple[int, list[Record]]]:
    batches: dict[int, list[Record]] = {}
    for record in records:
        assert not isinstance(record, TransactionEnded), "no transactions end here yet"
        batches.setdefault(partition_of(record.group_id, count), []).append(record)
    return batches.items()


def _make_batch(records: list[Record], now: Millis, base_offset: Offset) -> Made:
    """The batch for its place in the log: nothing of it need be changed when it gets there."""
    plain = _encode_plain(records, now)
    if plain is not None:
        body, count = plain
        return Made(seal_moment(body, count, now, base_offset, LEADER_EPOCH), count, now)
    batch = bytearray(_encode_batch(records, now))
    assign_offset(batch, base_offset=base_offset, partition_leader_epoch=LEADER_EPOCH)
    return Made(bytes(batch), peek(batch).record_count, now)


def _encode_plain(records: list[Record], now: Millis) -> tuple[bytes, int] | None:
    """Records of one commit, as nearly all are, and how many they become; None for others."""
    first = records[0]
    if isinstance(first, OffsetsCommitted) and len(records) == 1:
        return encode_columns(first), len(first.columns)
    body = encode_offsets(records, now)
    return None if body is None else (body, len(records))


def _encode_batch(records: list[Record], now: Millis) -> bytes:
    plain = _encode_plain(records, now)
    if plain is not None:
        return seal_moment(*plain, now)
    pairs = []
    producer = None
    for record in one_by_one(records):
        assert not isinstance(record, TransactionEnded), "no transactions end here yet"
        pairs.append(encode_pair(record))
        if isinstance(record, OffsetCommitted) and record.producer_id is not None:
            producer = record.producer_id, record.producer_epoch or ProducerEpoch(0)
    if producer is None:
        return encode_moment(pairs, now)
    return encode(
        NewBatch(
            records=tuple(NewRecord(key=key, value=text, timestamp=now) for key, text in pairs),
            is_transactional=True,
            producer_id=producer[0],
            producer_epoch=producer[1],
        )
    )
