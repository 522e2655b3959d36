"""What one fetch has brought of one partition: batches as they came, opened when their turn comes.

It is opened on the program's thread, and gives records out in order: none that are before the
offset asked for, none that control the log, and none of aborted transactions where these are not
wanted. What is damaged is complained of when the program comes to it, and not before.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from kohort.client.errors import BadRecord, Undeserializable
from kohort.client.fetching.aborted import Aborted
from kohort.client.fetching.records import BatchReader, ConsumerRecord
from kohort.client.topic_partition import TopicPartition
from kohort.types import Offset, value
from kohort.wire import compression
from kohort.wire.api.k01_fetch import AbortedTransaction
from kohort.wire.batch_header import HEADER_BYTES, BatchHeader, split, verify_crc
from kohort.wire.compression import Codec
from kohort.wire.errors import MalformedMessage
from kohort.wire.records import read_records

Deserializer = Callable[[bytes], Any]


@value
class Place:
    """Where a reader stands: the next offset, and the epoch of the leader that wrote before it."""

    offset: Offset
    leader_epoch: int = -1


@value
class FetchedBatches:
    """Batches as a broker sent them, for who opens them by other means."""

    partition: TopicPartition
    first: Offset
    """Where the program stands: records before it are nobody's business."""
    content: bytes
    aborted: tuple[AbortedTransaction, ...] | None
    """Whose records are to be left out; None where every record counts."""


@value
class Opening:
    """How parcels are opened."""

    is_committed_only: bool = False
    check_crcs: bool = True
    key_deserializer: Deserializer | None = None
    value_deserializer: Deserializer | None = None


class Parcel:
    """`take` gives records; then `place` is where the program stands, and `end` where this ends."""

    def __init__(
        self,
        partition: TopicPartition,
        content: bytes,
        place: Place,
        opening: Opening,
        aborted: Iterable[AbortedTransaction] = (),
    ) -> None:
        self.partition = partition
        self.place = self.end = place
        self.size = len(content)
        self._first = place.offset
        self._content = content
        self._opening = opening
        self._aborted_list = tuple(aborted) if opening.is_committed_only else None
        self._aborted = None if self._aborted_list is None else Aborted(self._aborted_list)
        self._batches: deque[tuple[int, BatchHeader]] = deque()
        self._batch: tuple[BatchHeader, BatchReader] | None = None
        self._undelivered: list[ConsumerRecord] = []
        self._fault: str | None = None
        self._measure()

    def _measure(self) -> None:
        try:
            self._batches.extend(split(self._content, truncated_ok=True))
        except MalformedMessage as error:
            self._fault = str(error)
        if self._batches:
            self.end = self._end_of(self._batches[-1][1])
        elif self._content and self._fault is None:
            self._fault = f"{self.size} bytes are no whole batch"

    @property
    def is_bad(self) -> bool:
        """Whether it ends in something that cannot be read, so that nothing can follow it."""
        return self._fault is not None

    @property
    def is_done(self) -> bool:
        return not (self._batches or self._batch or self._undelivered or self._fault)

    def take(self, count: int) -> list[ConsumerRecord]:
        """The next records, at most so many, perhaps none; BadRecord when a bad one comes first."""
        records = self._undelivered[:count]
        del self._undelivered[:count]
        try:
            while len(records) < count and (batch := self._open()) is not None:
                records += self._read(*batch, count - len(records))
        except MalformedMessage as error:
            self._fault = str(error)
            self._batch = None
            self._batches.clear()
        if self._fault is not None and not records and not self._batches:
            raise BadRecord(self.partition, self.place.offset, self._fault)
        return self._deserialize(records)

    def take_whole(self) -> FetchedBatches:
        """All that is left of it, unopened and unchecked."""
        first = self.place.offset
        self._batches.clear()
        self._undelivered.clear()
        self._batch = self._fault = None
        self.place = self.end
        return FetchedBatches(
            partition=self.partition,
            first=first,
            content=self._content,
            aborted=self._aborted_list,
        )

    def _open(self) -> tuple[BatchHeader, BatchReader] | None:
        """The batch to read from; those that nobody wants are passed over."""
        while self._batch is None and self._batches:
            pos, header = self._batches[0]
            if self._opening.check_crcs:
                verify_crc(self._content, pos, header)
            if self._is_wanted(pos, header):
                body, bounds = self._body(pos, header)
                self._batch = header, BatchReader(body, bounds, header, self.partition)
            else:
                self.place = self._end_of(header)
            self._batches.popleft()
        return self._batch

    def _is_wanted(self, pos: int, header: BatchHeader) -> bool:
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
        """Bytes, and where in them the records are: uncompressed ones are left in their place."""
        start, end = pos + HEADER_BYTES, pos + header.size_in_bytes
        # Compaction leaves an emptied batch without any bytes, not even those of an empty stream.
        if header.codec is Codec.NONE or start == end:
            return self._content, (start, end)
        body = compression.decompress(header.codec, self._content[start:end])
        return body, (0, len(body))

    def _read(self, header: BatchHeader, batch: BatchReader, count: int) -> list[ConsumerRecord]:
        records = batch.read(count)
        if batch.left:
            after = Offset(records[-1].offset + 1)
            self.place = self._place(after, header)
        else:
            self.place = self._end_of(header)
            self._batch = None
        # Brokers send whole batches, so the first one may begin before what was asked for.
        if records and records[0].offset < self._first:
            return [record for record in records if record.offset >= self._first]
        return records

    def _end_of(self, header: BatchHeader) -> Place:
        return self._place(header.next_offset, header)

    def _place(self, offset: Offset, header: BatchHeader) -> Place:
        """Never before what was asked for, whatever a broker sends."""
        return Place(offset=max(offset, self._first), leader_epoch=header.partition_leader_epoch)

    def _deserialize(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        """Up to one that cannot be: that one is complained of when it comes first."""
        of_key, of_value = self._opening.key_deserializer, self._opening.value_deserializer
        if of_key is None and of_value is None:
            return records
        for index, record in enumerate(records):
            given: Any = record  # nobody has seen it yet, so it may still change
            try:
                key = _apply(of_key, record.key)
                given.value = _apply(of_value, record.value)
                given.key = key
            except Exception as error:
                self._undelivered = records[index:] + self._undelivered
                self.place = Place(offset=record.offset, leader_epoch=record.leader_epoch)
                if index == 0:
                    raise Undeserializable(self.partition, record.offset, error) from error
                return records[:index]
        return records


def _apply(deserializer: Deserializer | None, data: bytes | None) -> Any:
    return data if deserializer is None or data is None else deserializer(data)
