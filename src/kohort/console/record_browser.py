"""Reads records of a topic without a group, and formats them as untrusted bytes.

Printable UTF-8 is shown as text, everything else in hexadecimal; long values are truncated.
Nothing is deserialized.
"""

import threading
import time
from typing import Final

from kohort.admin.cluster_connection import Cluster
from kohort.admin.errors import AdminError
from kohort.client.consumer import Consumer
from kohort.client.errors import ConsumerError
from kohort.client.fetch.completed_fetch import FetchedBatches
from kohort.console.page import TooBusy
from kohort.console.record_decoder import (
    DECOMPRESSED_BYTES_MAX,
    DecodedRecord,
    ShownBytes,
    decode_records,
    decompress,
)
from kohort.types import Millis, Offset, Partition, Topic, TopicPartition, value
from kohort.wire.batch_header import HEADER_BYTES, BatchHeader, split
from kohort.wire.errors import MalformedMessage, TooLarge

COUNT_MAX: Final = 200

_API_TIMEOUT_MS: Final = 10_000
_IDLE_S: Final = 2.0
"""Stop after this time without a record."""

_PAGES_MAX: Final = 4
"""Pages that are read at the same time. Each needs memory for a fetch and a decompressed batch."""

_PAGE_DECOMPRESSED_BYTES_MAX: Final = 256 * 1024 * 1024
"""Decompressed for one page in total, one batch after the other. Limits the time."""

_PAGE_SHOWN_CHARS_MAX: Final = 4_000_000

_slots: Final = threading.BoundedSemaphore(_PAGES_MAX)


@value
class TooLargeBatch:
    """A batch that is not decompressed because it would be too large."""

    last_offset: Offset
    compressed_bytes: int


@value
class ShownRecord:
    partition: Partition
    offset: Offset
    timestamp_ms: Millis | None
    key: ShownBytes | None
    value: ShownBytes | None
    headers: tuple[tuple[str, ShownBytes | None], ...]
    too_large: TooLargeBatch | None = None
    """If set, this stands for all records of a batch, and nothing else is known of them."""


@value
class RecordPage:
    start: Offset
    """The log start offset."""
    end: Offset
    next: Offset
    """The offset after the last record of this page."""
    records: tuple[ShownRecord, ...]
    error: str
    """Why there are no more records; empty if there is no error."""


def browse(
    cluster: Cluster, topic: Topic, partition: Partition, *, offset: int | None, count: int
) -> RecordPage:
    """`count` records from an offset on, or the last ones."""
    topic_partition = TopicPartition(topic, partition)
    options = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "client.id": cluster.settings.client_id,
        "auto.offset.reset": "earliest",
        "allow.auto.create.topics": False,
        "default.api.timeout.ms": _API_TIMEOUT_MS,
        "max.partition.fetch.bytes": 1_048_576,
        "fetch.max.bytes": 4_194_304,
    }
    if not _slots.acquire(blocking=False):
        raise TooBusy(f"more than {_PAGES_MAX} pages of records are being read: try again")
    try:
        with Consumer(options) as consumer:
            return _browse(consumer, topic_partition, offset, count)
    except ConsumerError as error:
        raise AdminError(f"cannot read records of {topic}:{partition}: {error}") from None
    finally:
        _slots.release()


def _browse(
    consumer: Consumer, topic_partition: TopicPartition, offset: int | None, count: int
) -> RecordPage:
    start = consumer.beginning_offsets([topic_partition]).get(topic_partition, Offset(0))
    end = consumer.end_offsets([topic_partition]).get(topic_partition, Offset(0))
    first = Offset(max(start, end - count if offset is None else min(offset, end)))
    page = _PageBuilder(topic_partition.partition, first, count)
    if first < end:
        consumer.assign([topic_partition])
        consumer.seek(topic_partition, first)
        progress_at = time.monotonic()
        while not page.is_full and page.next < end:
            fetched = consumer.poll_batches(200)
            if fetched is not None and page.add(fetched):
                progress_at = time.monotonic()
            elif time.monotonic() - progress_at > _IDLE_S:
                break
    return RecordPage(
        start=start, end=end, next=page.next, records=tuple(page.records), error=page.error
    )


class _PageBuilder:
    """Collects records in order, until one of the page's limits is reached."""

    def __init__(self, partition: Partition, first: Offset, count: int) -> None:
        self.records: list[ShownRecord] = []
        self.next = first
        self.error = ""
        self._partition = partition
        self._count = count
        self._bytes_left = _PAGE_DECOMPRESSED_BYTES_MAX
        self._chars_left = _PAGE_SHOWN_CHARS_MAX

    @property
    def is_full(self) -> bool:
        return len(self.records) >= self._count or bool(self.error)

    def add(self, fetched: FetchedBatches) -> bool:
        """Whether there was anything new."""
        before = self.next
        try:
            for position, header in split(fetched.content, truncated_ok=True):
                if self.is_full:
                    break
                if header.next_offset > self.next:
                    self._add_batch(fetched.content, position, header)
        except MalformedMessage as error:
            self.error = f"cannot read the record at offset {self.next}: {error}"
        return self.next > before

    def _add_batch(self, content: bytes, position: int, header: BatchHeader) -> None:
        if self._bytes_left <= 0:
            self.error = "the page is incomplete: it needs too much memory; continue with Newer"
        elif header.is_control or not header.record_count:
            self.next = header.next_offset
        else:
            try:
                body = decompress(content, position, header)
            except TooLarge:
                self._bytes_left -= DECOMPRESSED_BYTES_MAX
                self._add_too_large(header)
            else:
                self._bytes_left -= len(body)
                self._add_records(body, header)

    def _add_too_large(self, header: BatchHeader) -> None:
        batch = TooLargeBatch(
            last_offset=header.last_offset,
            compressed_bytes=header.size_in_bytes - HEADER_BYTES,
        )
        self.records.append(
            ShownRecord(
                partition=self._partition,
                offset=max(header.base_offset, self.next),
                timestamp_ms=None if header.max_timestamp < 0 else header.max_timestamp,
                key=None,
                value=None,
                headers=(),
                too_large=batch,
            )
        )
        self.next = header.next_offset

    def _add_records(self, body: bytes, header: BatchHeader) -> None:
        for each in decode_records(body, header, self.next):
            if self.is_full:
                return
            self._add_record(each)
        if not self.is_full:
            self.next = header.next_offset

    def _add_record(self, record: DecodedRecord) -> None:
        self.records.append(
            ShownRecord(
                partition=self._partition,
                offset=record.offset,
                timestamp_ms=record.timestamp_ms,
                key=record.key,
                value=record.value,
                headers=record.headers,
            )
        )
        self.next = Offset(record.offset + 1)
        shown = (record.key, record.value, *(each for _, each in record.headers))
        self._chars_left -= sum(len(each.text) for each in shown if each is not None)
        self._chars_left -= sum(len(name) for name, _ in record.headers)
        if self._chars_left <= 0:
            self.error = "the page is incomplete: its records are too long; continue with Newer"
