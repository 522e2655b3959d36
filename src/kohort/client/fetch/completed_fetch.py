"""The batches that one fetch returned for one partition, decoded when they are read.

Decoding runs on the application's thread. It skips records before the requested offset, control
records and, with read_committed, records of aborted transactions. A corrupt batch raises only when
the application reaches it.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from kohort.client.errors import CorruptRecordError, RecordDeserializationError
from kohort.client.fetch.aborted_transactions import AbortedTransactionFilter
from kohort.client.fetch.consumer_records import BatchReader, ConsumerRecord
from kohort.types import Offset, TopicPartition, value
from kohort.wire import compression
from kohort.wire.api.k01_fetch import AbortedTransaction
from kohort.wire.batch_header import HEADER_BYTES, BatchHeader, find_next_offset, split, verify_crc
from kohort.wire.compression import Codec
from kohort.wire.errors import MalformedMessage
from kohort.wire.records import read_records

Deserializer = Callable[[bytes], Any]


@value
class FetchPosition:
    """The next offset to read, and the leader epoch of the record before it."""

    offset: Offset
    leader_epoch: int = -1


@value
class FetchedBatches:
    """Undecoded batches of one partition, as the broker sent them."""

    partition: TopicPartition
    first: Offset
    """The application's position. The first batch may hold records before it; skip these."""
    content: bytes
    aborted: tuple[AbortedTransaction, ...] | None
    """Transactions to filter out; None with read_uncommitted."""


@value
class FetchConfig:
    """How batches are decoded."""

    is_read_committed: bool = False
    check_crcs: bool = True
    key_deserializer: Deserializer | None = None
    value_deserializer: Deserializer | None = None


class CompletedFetch:
    """`position` is behind the records that `take` returned, `end` behind the last batch."""

    def __init__(
        self,
        partition: TopicPartition,
        content: bytes,
        position: FetchPosition,
        config: FetchConfig,
        aborted: Iterable[AbortedTransaction] = (),
        *,
        high_watermark: Offset | None = None,
    ) -> None:
        self.partition = partition
        self.position = self.end = position
        self.size = len(content)
        self._first = position.offset
        self._content = content
        self._config = config
        self._aborted_list = tuple(aborted) if config.is_read_committed else None
        self._aborted = (
            None if self._aborted_list is None else AbortedTransactionFilter(self._aborted_list)
        )
        self._batches: deque[tuple[int, BatchHeader]] = deque()
        self._batch: tuple[BatchHeader, BatchReader] | None = None
        self._undelivered: list[ConsumerRecord] = []
        self._high_watermark = high_watermark
        self._batch_at = 0
        """The position in the content of the batch that is read."""
        self._error: str | None = None
        self._error_at = 0
        """The position in the content of the corrupt batch."""
        self._split_batches()

    def _split_batches(self) -> None:
        try:
            self._batches.extend(split(self._content, truncated_ok=True))
        except MalformedMessage as error:
            self._error = str(error)
        if self._batches:
            position, header = self._batches[-1]
            self.end = self._end_of(header)
            self._error_at = position + header.size_in_bytes
        elif self._content and self._error is None:
            self._error = f"{self.size} bytes are not a complete batch"

    @property
    def is_bad(self) -> bool:
        """Whether it ends with a corrupt batch, so that no fetch can follow it."""
        return self._error is not None

    @property
    def is_done(self) -> bool:
        return not (self._batches or self._batch or self._undelivered or self._error)

    def take(self, count: int) -> list[ConsumerRecord]:
        """Up to `count` records; CorruptRecordError if the next batch is corrupt."""
        records = self._undelivered[:count]
        del self._undelivered[:count]
        try:
            while len(records) < count and (batch := self._open()) is not None:
                records += self._read(*batch, count - len(records))
        except MalformedMessage as error:
            self._error, self._error_at = str(error), self._batch_at
            self._batch = None
            self._batches.clear()
        if self._error is not None and not records and not self._batches:
            raise CorruptRecordError(
                self.partition, self.position.offset, self._error, self._find_next_offset()
            )
        return self._deserialize(records)

    def _find_next_offset(self) -> Offset | None:
        """The offset after the corrupt batch. A damaged one may claim offsets beyond the log."""
        found = find_next_offset(self._content, self._error_at)
        if found is None or self._high_watermark is None:
            return found
        return min(found, self._high_watermark)

    def take_batches(self) -> FetchedBatches:
        """All remaining batches, not decoded and not checked."""
        first = self.position.offset
        self._batches.clear()
        self._undelivered.clear()
        self._batch = self._error = None
        self.position = self.end
        return FetchedBatches(
            partition=self.partition,
            first=first,
            content=self._content,
            aborted=self._aborted_list,
        )

    def _open(self) -> tuple[BatchHeader, BatchReader] | None:
        """The current batch; control batches and aborted transactions are skipped."""
        while self._batch is None and self._batches:
            pos, header = self._batches[0]
            self._batch_at = pos
            if self._config.check_crcs:
                verify_crc(self._content, pos, header)
            if self._is_readable(pos, header):
                body, bounds = self._body(pos, header)
                self._batch = header, BatchReader(body, bounds, header, self.partition)
            else:
                self.position = self._end_of(header)
            self._batches.popleft()
        return self._batch

    def _is_readable(self, pos: int, header: BatchHeader) -> bool:
        if self._aborted is not None:
            self._aborted.begin(header)
        if header.is_control:
            if self._aborted is not None:
                body, (start, end) = self._body(pos, header)
                control = read_records(body[start:end], header, message="ControlBatch", shift=0)
                self._aborted.end(header, control)
            return False
        return self._aborted is None or not self._aborted.covers(header)

    def _body(self, pos: int, header: BatchHeader) -> tuple[bytes, tuple[int, int]]:
        """A buffer and the bounds of the records in it. Uncompressed records are not copied."""
        start, end = pos + HEADER_BYTES, pos + header.size_in_bytes
        # Compaction leaves an empty batch without any bytes, not even an empty compressed stream.
        if header.codec is Codec.NONE or start == end:
            return self._content, (start, end)
        body = compression.decompress(header.codec, self._content[start:end])
        return body, (0, len(body))

    def _read(self, header: BatchHeader, batch: BatchReader, count: int) -> list[ConsumerRecord]:
        records = batch.read(count)
        if batch.left:
            after = Offset(records[-1].offset + 1)
            self.position = self._position_at(after, header)
        else:
            self.position = self._end_of(header)
            self._batch = None
        # Brokers send whole batches, so the first one may start before the requested offset.
        if records and records[0].offset < self._first:
            return [record for record in records if record.offset >= self._first]
        return records

    def _end_of(self, header: BatchHeader) -> FetchPosition:
        return self._position_at(header.next_offset, header)

    def _position_at(self, offset: Offset, header: BatchHeader) -> FetchPosition:
        """Never before the requested offset, even if the broker sends older batches."""
        return FetchPosition(
            offset=max(offset, self._first), leader_epoch=header.partition_leader_epoch
        )

    def _deserialize(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        """Stop before a record that cannot be deserialized; it raises when it comes first."""
        of_key, of_value = self._config.key_deserializer, self._config.value_deserializer
        if of_key is None and of_value is None:
            return records
        for index, record in enumerate(records):
            given: Any = record  # not shared yet, so it may be changed despite being frozen
            try:
                key = _apply(of_key, record.key)
                given.value = _apply(of_value, record.value)
                given.key = key
            except Exception as error:
                self._undelivered = records[index:] + self._undelivered
                self.position = FetchPosition(
                    offset=record.offset, leader_epoch=record.leader_epoch
                )
                if index == 0:
                    raise RecordDeserializationError(
                        self.partition, record.offset, error
                    ) from error
                return records[:index]
        return records


def _apply(deserializer: Deserializer | None, data: bytes | None) -> Any:
    return data if deserializer is None or data is None else deserializer(data)
