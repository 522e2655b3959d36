"""Builds record batches as brokers send them."""

from collections.abc import Sequence

from kohort.client.fetch.completed_fetch import CompletedFetch, FetchConfig, FetchPosition
from kohort.types import Millis, Offset, Partition, ProducerEpoch, ProducerId, Topic, TopicPartition
from kohort.wire.api.k01_fetch import AbortedTransaction
from kohort.wire.batch import NewBatch, NewRecord, encode
from kohort.wire.compression import Codec
from kohort.wire.control_batch import EndTransactionMarker, MarkerType, new_marker_batch

HERE = TopicPartition(Topic("orders"), Partition(3))


def batch(
    values: Sequence[bytes],
    base: int = 0,
    *,
    codec: Codec = Codec.NONE,
    producer: int | None = None,
    epoch: int = 7,
) -> bytes:
    """A batch of these values; transactional if it has a producer."""
    records = tuple(NewRecord(key=None, value=each, timestamp=Millis(1)) for each in values)
    return encode(
        NewBatch(
            records=records,
            base_offset=Offset(base),
            partition_leader_epoch=epoch,
            codec=codec,
            is_transactional=producer is not None,
            producer_id=ProducerId(-1 if producer is None else producer),
        )
    )


def marker(kind: MarkerType, base: int, producer: int) -> bytes:
    return encode(
        new_marker_batch(
            EndTransactionMarker(type=kind, coordinator_epoch=1),
            producer_id=ProducerId(producer),
            producer_epoch=ProducerEpoch(0),
            timestamp=Millis(1),
            base_offset=Offset(base),
        )
    )


def aborted(producer: int, first_offset: int) -> AbortedTransaction:
    return AbortedTransaction(producer_id=ProducerId(producer), first_offset=Offset(first_offset))


def fetch(
    content: bytes,
    offset: int = 0,
    opening: FetchConfig | None = None,
    aborted_transactions: Sequence[AbortedTransaction] = (),
) -> CompletedFetch:
    place = FetchPosition(offset=Offset(offset))
    return CompletedFetch(HERE, content, place, opening or FetchConfig(), aborted_transactions)


def take_all(opened: CompletedFetch, count: int = 500) -> list[tuple[int, bytes | None]]:
    """All offsets and values."""
    found: list[tuple[int, bytes | None]] = []
    while not opened.is_done:
        found += [(record.offset, record.value) for record in opened.take(count)]
    return found
