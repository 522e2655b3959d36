"""Producer state of one partition: duplicate detection for idempotent producers, and open
transactions.

Sequence numbers are checked as in Kafka: each batch follows the last one, a new epoch starts at
zero, and an unknown producer may start at any number (KIP-360). All of the state can be rebuilt
from the batch headers in the log.
"""

from collections import deque
from typing import Final

from kohort.log.errors import RequestRejected
from kohort.log.index import AbortedTxn
from kohort.log.limits import Limits
from kohort.types import ErrorCode, Millis, Offset, ProducerEpoch, ProducerId, value
from kohort.wire.batch import (
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    BatchHeader,
    iter_records,
)
from kohort.wire.control_batch import EndTransactionMarker, MarkerType, find_marker
from kohort.wire.varint import Buffer

BATCHES_RETAINED: Final = 5
"""Batches per producer for duplicate detection: the limit of idempotent producers for
max.in.flight.requests.per.connection."""

SEQUENCES: Final = 2**31
"""The number of sequence numbers. After the last one follows 0."""

NO_COORDINATOR_EPOCH: Final = -1


@value
class BatchMetadata:
    """What is needed to recognise a duplicate of a batch and to answer the produce request."""

    last_sequence: int
    last_offset: Offset
    offset_delta: int
    timestamp: Millis

    @property
    def first_sequence(self) -> int:
        if self.last_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.last_sequence - self.offset_delta) % SEQUENCES

    @property
    def first_offset(self) -> Offset:
        return Offset(self.last_offset - self.offset_delta)


class ProducerStateEntry:
    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_append_ms",
        "last_timestamp",
        "transaction_start",
    )

    def __init__(self) -> None:
        self.epoch = NO_PRODUCER_EPOCH
        self.coordinator_epoch = NO_COORDINATOR_EPOCH
        self.last_timestamp = NO_TIMESTAMP
        """The max timestamp of its last batch."""
        self.last_append_ms = NO_TIMESTAMP
        """When that batch was appended; the batch's own timestamp if this is unknown."""
        self.transaction_start: Offset | None = None
        self.batches: deque[BatchMetadata] = deque(maxlen=BATCHES_RETAINED)

    def begin_epoch(self, epoch: ProducerEpoch) -> None:
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()

    def update_timestamp(self, timestamp: Millis, now: Millis) -> None:
        # DEVIATION: the idle time of a producer starts when its last batch was appended. Kafka uses
        # the batch's own timestamp, and so expires an active producer that writes old records.
        # A snapshot only has the batch's timestamp, so after a clean restart this is as in Kafka.
        self.last_timestamp = timestamp
        self.last_append_ms = max(timestamp, now)

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


@value
class LastRecord:
    """The batch of a producer that compaction must keep: the last data batch, or without one, the
    last transaction marker."""

    last_offset: Offset | None
    epoch: ProducerEpoch


class ProducerStateManager:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._producers: dict[ProducerId, ProducerStateEntry] = {}
        self._open_transactions: dict[ProducerId, Offset] = {}

    def __len__(self) -> int:
        return len(self._producers)

    def items(self) -> list[tuple[ProducerId, ProducerStateEntry]]:
        return list(self._producers.items())

    # Validation

    def find_duplicate(self, header: BatchHeader) -> BatchMetadata | None:
        producer = self._producers.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            return None
        first, last = header.base_sequence, last_sequence(header)
        for batch in producer.batches:
            if batch.last_sequence == last and batch.first_sequence == first:
                return batch
        return None

    def check(self, header: BatchHeader) -> None:
        """Raises RequestRejected for a wrong epoch, sequence number or transaction state."""
        producer = self._producers.get(header.producer_id)
        if producer is None:
            return
        name = f"producer {header.producer_id}"
        epoch, sequence = header.producer_epoch, header.base_sequence
        if epoch < producer.epoch:
            reason = f"{name} has epoch {producer.epoch}, the batch has epoch {epoch}"
            raise RequestRejected(ErrorCode.INVALID_PRODUCER_EPOCH, reason)
        expected = 0 if epoch > producer.epoch else (producer.last_sequence + 1) % SEQUENCES
        if sequence != expected:
            reason = f"{name}, epoch {epoch}: expected sequence {expected}, got {sequence}"
            raise RequestRejected(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, reason)
        if producer.transaction_start is not None and not header.is_transactional:
            reason = f"{name} has had an open transaction since offset {producer.transaction_start}"
            raise RequestRejected(ErrorCode.INVALID_TXN_STATE, reason)

    # Updates after an append, or from a replay of the log

    def update(
        self, data: Buffer, position: int, header: BatchHeader, base_offset: Offset, now: Millis
    ) -> AbortedTxn | None:
        """Update the state for a batch. Only control batches are decoded.

        Returns the transaction if the batch aborts one.
        """
        if not header.is_control:
            self._append_data(header, base_offset, now)
            return None
        for record in iter_records(data, position, check_crc=False):
            marker = find_marker(record)
            if marker is not None:
                return self._append_marker(header, base_offset, now, marker)
        return None

    def _append_data(self, header: BatchHeader, base_offset: Offset, now: Millis) -> None:
        producer = self._get_or_add(header.producer_id)
        producer.begin_epoch(header.producer_epoch)
        producer.update_timestamp(header.max_timestamp, now)
        producer.batches.append(
            BatchMetadata(
                last_sequence=last_sequence(header),
                last_offset=Offset(base_offset + header.last_offset_delta),
                offset_delta=header.last_offset_delta,
                timestamp=header.max_timestamp,
            )
        )
        if header.is_transactional and producer.transaction_start is None:
            producer.transaction_start = base_offset
            self._open_transactions[header.producer_id] = base_offset

    def _append_marker(
        self, header: BatchHeader, base_offset: Offset, now: Millis, marker: EndTransactionMarker
    ) -> AbortedTxn | None:
        producer_id = header.producer_id
        producer = self._get_or_add(producer_id)
        producer.begin_epoch(header.producer_epoch)
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.update_timestamp(header.max_timestamp, now)
        first_offset, producer.transaction_start = producer.transaction_start, None
        self._open_transactions.pop(producer_id, None)
        if first_offset is None or marker.type is MarkerType.COMMIT:
            return None
        return AbortedTxn(
            producer_id=producer_id,
            first_offset=first_offset,
            last_offset=base_offset,
            last_stable_offset=self.last_stable_offset(Offset(base_offset + 1)),
        )

    def load(self, producer_id: ProducerId, producer: ProducerStateEntry) -> None:
        self._producers[producer_id] = producer
        if producer.transaction_start is not None:
            self._open_transactions[producer_id] = producer.transaction_start

    def _get_or_add(self, producer_id: ProducerId) -> ProducerStateEntry:
        producer = self._producers.get(producer_id)
        if producer is None:
            if len(self._producers) >= self._limits.producers_max:
                self._evict_idle()
            producer = self._producers[producer_id] = ProducerStateEntry()
        return producer

    # Queries and expiration

    def last_stable_offset(self, end_offset: Offset) -> Offset:
        """The first offset of the earliest open transaction, or `end_offset`."""
        return min(self._open_transactions.values()) if self._open_transactions else end_offset

    def last_records(self) -> dict[ProducerId, LastRecord]:
        return {
            producer_id: LastRecord(
                last_offset=producer.batches[-1].last_offset if producer.batches else None,
                epoch=producer.epoch,
            )
            for producer_id, producer in self._producers.items()
        }

    def expire(self, now: Millis) -> int:
        """Remove producers that have been idle for too long; returns their number."""
        expired = [
            producer_id
            for producer_id, producer in self._producers.items()
            if is_expired(producer, now, self._limits)
        ]
        for producer_id in expired:
            del self._producers[producer_id]
        return len(expired)

    def _evict_idle(self) -> None:
        idle = [item for item in self._producers.items() if item[1].transaction_start is None]
        idle.sort(key=lambda item: item[1].last_append_ms)
        # A tenth at a time, so that not every new producer causes a sort.
        for producer_id, _ in idle[: len(self._producers) // 10 + 1]:
            del self._producers[producer_id]


def is_expired(producer: ProducerStateEntry, now: Millis, limits: Limits) -> bool:
    is_idle = now - producer.last_append_ms >= limits.producer_id_expiration_ms
    return is_idle and producer.transaction_start is None


def last_sequence(header: BatchHeader) -> int:
    if header.base_sequence == NO_SEQUENCE:
        return NO_SEQUENCE
    return (header.base_sequence + header.last_offset_delta) % SEQUENCES
