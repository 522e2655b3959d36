"""Appends the group coordinator's records to `__consumer_offsets`."""

from collections.abc import Callable, Iterable, Sequence

from kohort.coordinator.record_codec import encode_columns, encode_record
from kohort.coordinator.records import (
    OffsetCommitted,
    OffsetsCommitted,
    Record,
    TransactionEnded,
    expand_columns,
)
from kohort.events.internal_topics import CONSUMER_OFFSETS, partition_of
from kohort.log.appended_batch import TrustedBatch
from kohort.log.errors import LogError, RequestRejected, StorageError
from kohort.log.limits import LEADER_EPOCH
from kohort.log.partition import PartitionLog
from kohort.node.fetch_purgatory import FetchPurgatory
from kohort.types import ErrorCode, Millis, Offset, Partition, ProducerEpoch
from kohort.wire.batch import (
    NO_PARTITION_LEADER_EPOCH,
    NewBatch,
    NewRecord,
    assemble_simple_batch,
    encode,
    encode_simple_batch,
)


class GroupRecordWriter:
    """Appends the records of each outcome and partition as one batch: all of them or none."""

    def __init__(
        self,
        partitions: Callable[[], list[PartitionLog]],
        purgatory: FetchPurgatory,
        note_error: Callable[[LogError], None],
    ) -> None:
        self._partitions = partitions
        self._purgatory = purgatory
        self._note_error = note_error

    def append(
        self, outcomes: Sequence[tuple[list[Record], Millis]]
    ) -> list[list[Record] | ErrorCode]:
        now = outcomes[-1][1]
        partitions = self._partitions()
        if len(partitions) == 1 and not _is_transactional(outcomes[0][0]):
            return self._append_in_one_write(outcomes, partitions[0], now)
        return [self._append_one(records, partitions, at) for records, at in outcomes]

    def _append_in_one_write(
        self, outcomes: Sequence[tuple[list[Record], Millis]], log: PartitionLog, now: Millis
    ) -> list[list[Record] | ErrorCode]:
        next_offset = log.end_offset
        batches: list[TrustedBatch] = []
        for records, at in outcomes:
            batches.append(_make_batch(records, at, next_offset, LEADER_EPOCH))
            next_offset = Offset(next_offset + batches[-1].record_count)
        results: list[list[Record] | ErrorCode] = []
        size = 0
        errors = log.append_trusted_batches(batches, now)
        for error, (records, _), batch in zip(errors, outcomes, batches, strict=True):
            if error is None:
                size += len(batch.data)
                results.append(records)
            else:
                self._note_error(error)
                results.append(error.code)
        if size:
            self._purgatory.appended(CONSUMER_OFFSETS, Partition(0), size)
        return results

    def _append_one(
        self, records: list[Record], partitions: list[PartitionLog], now: Millis
    ) -> list[Record] | ErrorCode:
        """Appended in part if records of several partitions meet a full disk."""
        appended: list[Record] = []
        for index, batch in _by_partition(records, len(partitions)):
            encoded = _make_batch(batch, now).data
            try:
                partitions[index].append_trusted(encoded, now)
            except (RequestRejected, StorageError) as error:
                self._note_error(error)
                return appended or error.code
            appended += batch
            self._purgatory.appended(CONSUMER_OFFSETS, Partition(index), len(encoded))
        return appended


def _is_transactional(records: list[Record]) -> bool:
    first = records[0]
    return isinstance(first, OffsetCommitted) and first.producer_id is not None


def _by_partition(records: list[Record], count: int) -> Iterable[tuple[int, list[Record]]]:
    batches: dict[int, list[Record]] = {}
    for record in records:
        assert not isinstance(record, TransactionEnded), "transactions are not supported"
        batches.setdefault(partition_of(record.group_id, count), []).append(record)
    return batches.items()


def _make_batch(
    records: list[Record],
    now: Millis,
    base_offset: Offset = Offset(0),  # a number
    leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
) -> TrustedBatch:
    """The batch of an outcome. With its offset and epoch it is appended as it is."""
    first = records[0]
    if isinstance(first, OffsetsCommitted) and len(records) == 1:
        body, count = encode_columns(first), len(first.columns)
        return TrustedBatch(
            assemble_simple_batch(body, count, now, base_offset, leader_epoch), count, now
        )
    pairs = []
    producer = None
    for record in expand_columns(records):
        assert not isinstance(record, TransactionEnded), "transactions are not supported"
        pairs.append(encode_record(record))
        if isinstance(record, OffsetCommitted) and record.producer_id is not None:
            producer = record.producer_id, record.producer_epoch or ProducerEpoch(0)
    if producer is None:
        data = encode_simple_batch(pairs, now, base_offset, leader_epoch)
    else:
        data = encode(
            NewBatch(
                records=tuple(NewRecord(key=key, value=text, timestamp=now) for key, text in pairs),
                base_offset=base_offset,
                partition_leader_epoch=leader_epoch,
                is_transactional=True,
                producer_id=producer[0],
                producer_epoch=producer[1],
            )
        )
    return TrustedBatch(data, len(pairs), now)
