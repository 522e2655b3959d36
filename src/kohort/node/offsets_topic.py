"""`__consumer_offsets` as the coordinator's memory: where records are kept."""

from collections.abc import Callable, Iterable

from kohort.coordinator.partitioner import partition_of
from kohort.coordinator.recordcodec import encode_offsets, encode_pair
from kohort.coordinator.records import OffsetCommitted, Record, TransactionEnded
from kohort.log.errors import Refused, StorageError
from kohort.log.partition import PartitionLog
from kohort.node.fetches import OnAppend
from kohort.node.runtime import NotKept
from kohort.node.syncer import Syncer
from kohort.node.topics import OFFSETS
from kohort.types import Millis, Partition, ProducerEpoch
from kohort.wire.batch import (
    NewBatch,
    NewRecord,
    encode,
    encode_moment,
    seal_moment,
)


class OffsetsTopic:
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
            self._on_append(OFFSETS, Partition(index), len(encoded))
            self._on_kept(batch)
        self._kept += 1
        return kept

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


def _encode_batch(records: list[Record], now: Millis) -> bytes:
    body = encode_offsets(records, now)
    if body is not None:
        return seal_moment(body, len(records), now)
    pairs = []
    producer = None
    for record in records:
        assert not isinstance(record, TransactionEnded)
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
