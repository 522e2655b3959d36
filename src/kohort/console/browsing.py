"""Records of a topic, read without a group and shown as what they are: bytes that nobody trusts.

Text is shown where it is text, anything else as hexadecimal digits; long ones are cut. Nothing is
executed, deserialized or guessed at.
"""

import time
from typing import Final

from kohort.admin.cluster import Cluster
from kohort.admin.errors import AdminError
from kohort.client.consumer import Consumer
from kohort.client.errors import BadRecord, ConsumerError
from kohort.client.fetching.records import ConsumerRecord
from kohort.client.topic_partition import TopicPartition
from kohort.types import Millis, Offset, Partition, Topic, value

COUNT_MAX: Final = 200
SHOWN_BYTES: Final = 2_048
HEADERS_MAX: Final = 50

_CALL_MS: Final = 10_000
_QUIET_S: Final = 2.0
"""No record for so long: there are none."""


@value
class Shown:
    """Bytes as they are shown."""

    text: str
    is_text: bool
    """Else hexadecimal digits."""
    size: int
    is_cut: bool


@value
class ShownRecord:
    partition: Partition
    offset: Offset
    timestamp_ms: Millis | None
    key: Shown | None
    value: Shown | None
    headers: tuple[tuple[str, Shown | None], ...]


@value
class Browsed:
    start: Offset
    """Of the log."""
    end: Offset
    records: tuple[ShownRecord, ...]
    trouble: str
    """Why there are not more, where something is wrong; else empty."""


def show(data: bytes | None) -> Shown | None:
    if data is None:
        return None
    text = _find_text(data[:SHOWN_BYTES])
    is_cut = len(data) > SHOWN_BYTES
    if text is not None:
        return Shown(text=text, is_text=True, size=len(data), is_cut=is_cut)
    digits = data[:SHOWN_BYTES].hex(" ")
    return Shown(text=digits, is_text=False, size=len(data), is_cut=is_cut)


def _find_text(data: bytes) -> str | None:
    """UTF-8 without signs that would move, hide or turn round what stands beside them."""
    for cut in range(4):
        try:
            text = data[: len(data) - cut].decode()
        except UnicodeDecodeError:
            # The cut may have gone through the middle of a sign.
            if len(data) < SHOWN_BYTES:
                return None
            continue
        is_plain = all(sign.isprintable() or sign in "\n\r\t" for sign in text)
        return text if is_plain else None
    return None


def browse(
    cluster: Cluster, topic: Topic, partition: Partition, *, offset: int | None, count: int
) -> Browsed:
    """So many records from an offset on, or the last ones."""
    place = TopicPartition(topic, partition)
    options = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "client.id": cluster.settings.client_id,
        "auto.offset.reset": "earliest",
        "allow.auto.create.topics": False,
        "default.api.timeout.ms": _CALL_MS,
        "max.partition.fetch.bytes": 1_048_576,
        "fetch.max.bytes": 4_194_304,
    }
    try:
        with Consumer(options) as consumer:
            return _browse(consumer, place, offset, count)
    except ConsumerError as error:
        raise AdminError(f"records of {topic}:{partition} cannot be read: {error}") from None


def _browse(consumer: Consumer, place: TopicPartition, offset: int | None, count: int) -> Browsed:
    start = consumer.beginning_offsets([place]).get(place, Offset(0))
    end = consumer.end_offsets([place]).get(place, Offset(0))
    first = max(start, end - count if offset is None else min(offset, end))
    records: list[ConsumerRecord] = []
    trouble = ""
    if first < end:
        consumer.assign([place])
        consumer.seek(place, first)
        heard = time.monotonic()
        try:
            while len(records) < count and consumer.position(place) < end:
                polled = consumer.poll(200, max_records=count - len(records)).get(place, [])
                records += polled
                heard = time.monotonic() if polled else heard
                if time.monotonic() - heard > _QUIET_S:
                    break
        except BadRecord as error:
            trouble = f"the record at offset {error.offset} cannot be read: {error}"
    return Browsed(
        start=start, end=end, records=tuple(_shown(each) for each in records), trouble=trouble
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
