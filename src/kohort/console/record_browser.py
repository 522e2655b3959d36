"""Reads records of a topic without a group, and formats them as untrusted bytes.

Printable UTF-8 is shown as text, everything else in hexadecimal; long values are truncated.
Nothing is deserialized.
"""

import time
from typing import Final

from kohort.admin.cluster_connection import Cluster
from kohort.admin.errors import AdminError
from kohort.client.consumer import Consumer
from kohort.client.errors import ConsumerError, CorruptRecordError
from kohort.client.fetch.consumer_records import ConsumerRecord
from kohort.types import Millis, Offset, Partition, Topic, TopicPartition, value

COUNT_MAX: Final = 200
SHOWN_BYTES: Final = 2_048
HEADERS_MAX: Final = 50

_API_TIMEOUT_MS: Final = 10_000
_IDLE_S: Final = 2.0
"""Stop after this time without a record."""


@value
class ShownBytes:
    """Bytes formatted as text or hexadecimal."""

    text: str
    is_text: bool
    """False: hexadecimal."""
    size: int
    is_cut: bool


@value
class ShownRecord:
    partition: Partition
    offset: Offset
    timestamp_ms: Millis | None
    key: ShownBytes | None
    value: ShownBytes | None
    headers: tuple[tuple[str, ShownBytes | None], ...]


@value
class RecordPage:
    start: Offset
    """The log start offset."""
    end: Offset
    records: tuple[ShownRecord, ...]
    error: str
    """Why there are no more records; empty if there is no error."""


def show(data: bytes | None) -> ShownBytes | None:
    if data is None:
        return None
    text = _find_text(data[:SHOWN_BYTES])
    is_cut = len(data) > SHOWN_BYTES
    if text is not None:
        return ShownBytes(text=text, is_text=True, size=len(data), is_cut=is_cut)
    digits = data[:SHOWN_BYTES].hex(" ")
    return ShownBytes(text=digits, is_text=False, size=len(data), is_cut=is_cut)


def _find_text(data: bytes) -> str | None:
    """The text, if it is UTF-8 without control or bidirectional characters."""
    for cut in range(4):
        try:
            text = data[: len(data) - cut].decode()
        except UnicodeDecodeError:
            # The truncation may have split a character.
            if len(data) < SHOWN_BYTES:
                return None
            continue
        is_plain = all(char.isprintable() or char in "\n\r\t" for char in text)
        return text if is_plain else None
    return None


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
    try:
        with Consumer(options) as consumer:
            return _browse(consumer, topic_partition, offset, count)
    except ConsumerError as error:
        raise AdminError(f"cannot read records of {topic}:{partition}: {error}") from None


def _browse(
    consumer: Consumer, topic_partition: TopicPartition, offset: int | None, count: int
) -> RecordPage:
    start = consumer.beginning_offsets([topic_partition]).get(topic_partition, Offset(0))
    end = consumer.end_offsets([topic_partition]).get(topic_partition, Offset(0))
    first = max(start, end - count if offset is None else min(offset, end))
    records: list[ConsumerRecord] = []
    failure = ""
    if first < end:
        consumer.assign([topic_partition])
        consumer.seek(topic_partition, first)
        progress_at = time.monotonic()
        try:
            while len(records) < count and consumer.position(topic_partition) < end:
                polled = consumer.poll(200, max_records=count - len(records)).get(
                    topic_partition, []
                )
                records += polled
                progress_at = time.monotonic() if polled else progress_at
                if time.monotonic() - progress_at > _IDLE_S:
                    break
        except CorruptRecordError as error:
            failure = f"cannot read the record at offset {error.offset}: {error}"
    return RecordPage(
        start=start, end=end, records=tuple(_shown(each) for each in records), error=failure
    )


def _shown(record: ConsumerRecord) -> ShownRecord:
    return ShownRecord(
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=None if record.timestamp < 0 else record.timestamp,
        key=show(record.key),
        value=show(record.value),
        headers=tuple((name, show(content)) for name, content in record.headers[:HEADERS_MAX]),
    )
