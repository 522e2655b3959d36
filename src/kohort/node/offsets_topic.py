"""`__consumer_offsets` as the coordinator's memory: where records are kept and read back."""

from collections.abc import Callable, Iterable, Iterator

from kohort.coordinator.partitioner import partition_of
from kohort.coordinator.recordcodec import (
    Skipped,
    decode_record,
    encode_offsets,
    encode_pair,
)
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
    iter_records,
    seal_moment,
    split,
)
from kohort.wire.control import MarkerType, find_marker


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


def read_back(chunk: bytes) -> Iterator[Record | Skipped]:
    """The records in a run of batches, written by us or by Apache Kafka."""
    for position, header in split(chunk):
        records = iter_records(chunk, position, check_crc=False)
        if header.is_control:
            for record in records:
                marker = find_marker(record)
                if marker is not None:
                    yield TransactionEnded(
                        producer_id=header.producer_id,
                        is_commit=marker.type is MarkerType.COMMIT,
                    )
            continue
        producer_id = header.producer_id if header.is_transactional else None
        epoch = header.producer_epoch if header.is_transactional else None
        for record in records:
            yield decode_record(record.key, record.value, producer_id, epoch)
