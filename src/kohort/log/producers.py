"""What a partition remembers of each producer, so that a batch sent twice is kept once.

Sequence numbers are checked as Kafka does: the next one follows the last, a new epoch begins at
zero, and a producer nobody remembers may begin anywhere (KIP-360). Beside them stand the
transactions that are still open. All of it can be read again from the batches' headers.
"""

from collections import deque
from typing import Final

from kohort.log.errors import Refused
from kohort.log.index import AbortedTransaction
from kohort.log.limits import Limits
from kohort.types import ErrorCode, Millis, Offset, ProducerEpoch, ProducerId, value
from kohort.wire.batch import (
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    BatchHeader,
    iter_records,
)
from kohort.wire.control import EndTransactionMarker, MarkerType, find_marker
from kohort.wire.varint import Buffer

BATCHES_REMEMBERED: Final = 5
"""As many as a producer may have under way (its max.in.flight.requests.per.connection)."""

SEQUENCES: Final = 2**31
"""After the last sequence number comes 0."""

NO_COORDINATOR_EPOCH: Final = -1


@value
class WrittenBatch:
    """Enough of a batch to know it again and to answer for it."""

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


class Producer:
    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_heard_ms",
        "last_timestamp",
        "transaction_start",
    )

    def __init__(self) -> None:
        self.epoch = NO_PRODUCER_EPOCH
        self.coordinator_epoch = NO_COORDINATOR_EPOCH
        self.last_timestamp = NO_TIMESTAMP
        """What its last batch said."""
        self.last_heard_ms = NO_TIMESTAMP
        """When that batch came, as far as is known."""
        self.transaction_start: Offset | None = None
        self.batches: deque[WrittenBatch] = deque(maxlen=BATCHES_REMEMBERED)

    def begin_epoch(self, epoch: ProducerEpoch) -> None:
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()

    def hear(self, timestamp: Millis, now: Millis) -> None:
        # DEVIATION: a producer counts as idle from when its last batch came. Kafka goes by the
        # batch's own timestamp, and so forgets one of old records while it is still at work. A
        # snapshot has only that timestamp, so over an orderly restart it is as in Kafka.
        self.last_timestamp = timestamp
        self.last_heard_ms = max(timestamp, now)

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


@value
class LastWritten:
    """What compaction must keep of a producer: its last data, or else its last marker."""

    last_offset: Offset | None
    epoch: ProducerEpoch


class Producers:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._producers: dict[ProducerId, Producer] = {}
        self._open: dict[ProducerId, Offset] = {}

    def __len__(self) -> int:
        return len(self._producers)

    def items(self) -> list[tuple[ProducerId, Producer]]:
        return list(self._producers.items())

    # What a client sends

    def find_duplicate(self, header: BatchHeader) -> WrittenBatch | None:
        producer = self._producers.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            return None
        first, last = header.base_sequence, last_sequence(header)
        for batch in producer.batches:
            if batch.last_sequence == last and batch.first_sequence == first:
                return batch
        return None

    def check(self, header: BatchHeader) -> None:
        """Raises Refused unless this batch may follow what its producer wrote before."""
        producer = self._producers.get(header.producer_id)
        if producer is None:
            return
        who = f"producer {header.producer_id}"
        epoch, sequence = header.producer_epoch, header.base_sequence
        if epoch < producer.epoch:
            reason = f"{who} has epoch {producer.epoch}, the batch has {epoch}"
            raise Refused(ErrorCode.INVALID_PRODUCER_EPOCH, reason)
        expected = 0 if epoch > producer.epoch else (producer.last_sequence + 1) % SEQUENCES
        if sequence != expected:
            reason = f"{who} with epoch {epoch} must go on at {expected}, the batch at {sequence}"
            raise Refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, reason)
        if producer.transaction_start is not None and not header.is_transactional:
            reason = f"{who} has a transaction open since offset {producer.transaction_start}"
            raise Refused(ErrorCode.INVALID_TXN_STATE, reason)

    # What the log has taken, or is read again from it

    def note(
        self, data: Buffer, position: int, header: BatchHeader, base_offset: Offset, now: Millis
    ) -> AbortedTransaction | None:
        """A batch of some producer; its bytes are read only if it ends a transaction.

        Tells of the transaction if what it wrote does not count.
        """
        if not header.is_control:
            self._note_data(header, base_offset, now)
            return None
        for record in iter_records(data, position, check_crc=False):
            marker = find_marker(record)
            if marker is not None:
                return self._note_marker(header, base_offset, now, marker)
        return None

    def _note_data(self, header: BatchHeader, base_offset: Offset, now: Millis) -> None:
        producer = self._get_or_add(header.producer_id)
        producer.begin_epoch(header.producer_epoch)
        producer.hear(header.max_timestamp, now)
        producer.batches.append(
            WrittenBatch(
                last_sequence=last_sequence(header),
                last_offset=Offset(base_offset + header.last_offset_delta),
                offset_delta=header.last_offset_delta,
                timestamp=header.max_timestamp,
            )
        )
        if header.is_transactional and producer.transaction_start is None:
            producer.transaction_start = base_offset
            self._open[header.producer_id] = base_offset

    def _note_marker(
        self, header: BatchHeader, base_offset: Offset, now: Millis, marker: EndTransactionMarker
    ) -> AbortedTransaction | None:
        producer_id = header.producer_id
        producer = self._get_or_add(producer_id)
        producer.begin_epoch(header.producer_epoch)
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.hear(header.max_timestamp, now)
        first_offset, producer.transaction_start = producer.transaction_start, None
        self._open.pop(producer_id, None)
        if first_offset is None or marker.type is MarkerType.COMMIT:
            return None
        return AbortedTransaction(
            producer_id=producer_id,
            first_offset=first_offset,
            last_offset=base_offset,
            last_stable_offset=self.last_stable_offset(Offset(base_offset + 1)),
        )

    def load(self, producer_id: ProducerId, producer: Producer) -> None:
        self._producers[producer_id] = producer
        if producer.transaction_start is not None:
            self._open[producer_id] = producer.transaction_start

    def _get_or_add(self, producer_id: ProducerId) -> Producer:
        producer = self._producers.get(producer_id)
        if producer is None:
            if len(self._producers) >= self._limits.producers_max:
                self._forget_idlest()
            producer = self._producers[producer_id] = Producer()
        return producer

    # What follows from it

    def last_stable_offset(self, end_offset: Offset) -> Offset:
        """Where the first open transaction begins; readers of committed records stop there."""
        return min(self._open.values()) if self._open else end_offset

    def last_written(self) -> dict[ProducerId, LastWritten]:
        return {
            producer_id: LastWritten(
                last_offset=producer.batches[-1].last_offset if producer.batches else None,
                epoch=producer.epoch,
            )
            for producer_id, producer in self._producers.items()
        }

    def expire(self, now: Millis) -> int:
        """Forgets producers that have been idle for too long; says how many."""
        expired = [
            producer_id
            for producer_id, producer in self._producers.items()
            if is_expired(producer, now, self._limits)
        ]
        for producer_id in expired:
            del self._producers[producer_id]
        return len(expired)

    def _forget_idlest(self) -> None:
        idle = [item for item in self._producers.items() if item[1].transaction_start is None]
        idle.sort(key=lambda item: item[1].last_heard_ms)
        # A tenth at a time, so that the next ones need not look again.
        for producer_id, _ in idle[: len(self._producers) // 10 + 1]:
            del self._producers[producer_id]


def is_expired(producer: Producer, now: Millis, limits: Limits) -> bool:
    is_idle = now - producer.last_heard_ms >= limits.producer_id_expiration_ms
    return is_idle and producer.transaction_start is None


def last_sequence(header: BatchHeader) -> int:
    if header.base_sequence == NO_SEQUENCE:
        return NO_SEQUENCE
    return (header.base_sequence + header.last_offset_delta) % SEQUENCES
