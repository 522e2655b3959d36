"""Reads `__consumer_offsets` and `__kohort_events`: the existing records first, then new ones.

It joins no group and commits nothing. It keeps its positions itself, so that a failed consumer can
be replaced.
"""

import time
from collections.abc import Callable, Iterable
from typing import Final

from kohort.client.consumer import Consumer
from kohort.client.errors import ConsumerError, CorruptRecordError
from kohort.client.fetch.consumer_records import ConsumerRecord
from kohort.events.internal_topics import CONSUMER_OFFSETS, KOHORT_EVENTS
from kohort.types import Offset, TopicPartition

_EVENTS_BACK_MS: Final = 3_900_000
"""How far back events are read: a little more than the hour that is shown."""

_POLL_MS: Final = 250
_RECORDS_MAX: Final = 500
"""Per poll. Readers of the state are blocked while these records are applied."""

_METADATA_INTERVAL_S: Final = 1.0
"""Between two checks for new topics and partitions."""

_METADATA_TIMEOUT_MS: Final = 2_000
"""Of one check. Closing the monitor can take this long if the cluster is unreachable."""

_FETCH_BYTES: Final = 16 * 1024 * 1024
"""Limit of fetched and unread bytes."""

_API_TIMEOUT_MS: Final = 10_000

RecordHandler = Callable[[Iterable[ConsumerRecord]], None]


class GroupTopicsReader:
    def __init__(self, bootstrap_servers: str, client_id: str) -> None:
        self._options = {
            "bootstrap.servers": bootstrap_servers,
            "client.id": client_id,
            "exclude.internal.topics": False,
            "allow.auto.create.topics": False,
            "auto.offset.reset": "earliest",
            # Offsets of open transactions are not committed yet.
            "isolation.level": "read_committed",
            "fetch.max.bytes": _FETCH_BYTES,
            "metadata.max.age.ms": 30_000,
            "default.api.timeout.ms": _API_TIMEOUT_MS,
        }
        self._consumer: Consumer | None = None
        self._positions: dict[TopicPartition, Offset] = {}
        self._backlog: dict[TopicPartition, tuple[Offset, Offset]] = {}
        self._next_check = 0.0

    def read(self, handle: RecordHandler) -> None:
        """Poll once and pass the records on. Raises ConsumerError."""
        if self._consumer is None:
            self._consumer = Consumer(self._options)
            self._next_check = 0.0
        if time.monotonic() >= self._next_check:
            self._find_topics(self._consumer)
            self._next_check = time.monotonic() + _METADATA_INTERVAL_S
        try:
            polled = self._consumer.poll(_POLL_MS, max_records=_RECORDS_MAX)
        except CorruptRecordError as error:
            self._positions[error.partition] = error.next_offset
            self._consumer.seek(error.partition, error.next_offset)
            return
        for partition, records in polled.items():
            handle(records)
            self._positions[partition] = Offset(records[-1].offset + 1)
        if not polled:
            self._skip_gaps(self._consumer)

    def _find_topics(self, consumer: Consumer) -> None:
        topics = consumer.topics(_METADATA_TIMEOUT_MS) & {CONSUMER_OFFSETS, KOHORT_EVENTS}
        found = {
            TopicPartition(topic, number)
            for topic in topics
            for number in consumer.partitions_for_topic(topic, _METADATA_TIMEOUT_MS)
        }
        if found <= consumer.assignment():
            return
        consumer.assign(found)
        for partition in found:
            if partition in self._positions:
                consumer.seek(partition, self._positions[partition])
        self._seek_start(consumer, found - self._positions.keys())

    def _seek_start(self, consumer: Consumer, new: set[TopicPartition]) -> None:
        """`__consumer_offsets` from its beginning; events from about an hour ago."""
        starts, ends = consumer.beginning_offsets(new), consumer.end_offsets(new)
        since = int(time.time() * 1000) - _EVENTS_BACK_MS
        times = {each: since for each in new if each.topic == KOHORT_EVENTS}
        by_time = consumer.offsets_for_times(times) if times else {}
        for partition in new:
            if partition not in starts or partition not in ends:
                continue
            start = starts[partition]
            if partition in by_time:
                first = by_time[partition]
                start = ends[partition] if first is None else first.offset
            consumer.seek(partition, start)
            self._positions[partition] = start
            self._backlog[partition] = (start, ends[partition])

    def _skip_gaps(self, consumer: Consumer) -> None:
        """Use the consumer's position: the last offsets of a compacted log may have no records."""
        for partition, (_, end) in self._backlog.items():
            if self._positions[partition] < end:
                self._positions[partition] = consumer.position(partition)

    def has_events(self) -> bool:
        return any(each.topic == KOHORT_EVENTS for each in self._positions)

    def share_read(self) -> float:
        """The share of the existing records that has been read, from 0 to 1."""
        total = sum(end - start for start, end in self._backlog.values())
        done = sum(
            min(self._positions[partition], end) - start
            for partition, (start, end) in self._backlog.items()
        )
        return 1.0 if done >= total else done / total

    def drop(self) -> None:
        """Close the consumer. The next read creates one and continues at the same position."""
        if self._consumer is not None:
            consumer, self._consumer = self._consumer, None
            try:
                consumer.close(timeout_ms=1_000)
            except ConsumerError:
                consumer.abandon()
