"""Reads the two topics that tell of groups, from what they still have of the past to what is new.

It belongs to no group and commits nothing. Where it stands is kept here, so that a consumer that
failed can be replaced by another.
"""

import time
from collections.abc import Callable, Iterable
from typing import Final

from kohort.client.consumer import Consumer
from kohort.client.errors import BadRecord, ConsumerError
from kohort.client.fetching.records import ConsumerRecord
from kohort.client.topic_partition import TopicPartition
from kohort.types import Offset, Topic

OFFSETS: Final = Topic("__consumer_offsets")
EVENTS: Final = Topic("__kohort_events")

_EVENTS_BACK_MS: Final = 3_900_000
"""How much of the past is read in events: a little more than the hour that is shown."""

_POLL_MS: Final = 250
_RECORDS_MAX: Final = 500
"""At once: whoever looks at the picture waits for as long as they are folded."""

_LOOK_S: Final = 1.0
"""Between two looks for a topic that is not there yet, or has more partitions."""

_LOOK_MS: Final = 2_000
"""For one look; whoever ends the reading waits for as long, if the cluster is away."""

_FETCH_BYTES: Final = 16 * 1024 * 1024
"""What may lie here unread."""

_CALL_MS: Final = 10_000

Take = Callable[[Iterable[ConsumerRecord]], None]


class Tail:
    def __init__(self, bootstrap_servers: str, client_id: str) -> None:
        self._options = {
            "bootstrap.servers": bootstrap_servers,
            "client.id": client_id,
            "exclude.internal.topics": False,
            "allow.auto.create.topics": False,
            "auto.offset.reset": "earliest",
            # What a transaction has not committed is no commit.
            "isolation.level": "read_committed",
            "fetch.max.bytes": _FETCH_BYTES,
            "metadata.max.age.ms": 30_000,
            "default.api.timeout.ms": _CALL_MS,
        }
        self._consumer: Consumer | None = None
        self._stands: dict[TopicPartition, Offset] = {}
        self._past: dict[TopicPartition, tuple[Offset, Offset]] = {}
        self._next_look = 0.0

    def read(self, take: Take) -> None:
        """Give on what has come, if anything has; a ConsumerError if there is something wrong."""
        if self._consumer is None:
            self._consumer = Consumer(self._options)
            self._next_look = 0.0
        if time.monotonic() >= self._next_look:
            self._find_topics(self._consumer)
            self._next_look = time.monotonic() + _LOOK_S
        try:
            polled = self._consumer.poll(_POLL_MS, max_records=_RECORDS_MAX)
        except BadRecord as error:
            self._stands[error.partition] = Offset(error.offset + 1)
            self._consumer.seek(error.partition, error.offset + 1)
            return
        for partition, records in polled.items():
            take(records)
            self._stands[partition] = Offset(records[-1].offset + 1)
        if not polled:
            self._pass_gaps(self._consumer)

    def _find_topics(self, consumer: Consumer) -> None:
        topics = consumer.topics(_LOOK_MS) & {OFFSETS, EVENTS}
        found = {
            TopicPartition(topic, number)
            for topic in topics
            for number in consumer.partitions_for(topic, _LOOK_MS)
        }
        if found <= consumer.assignment():
            return
        consumer.assign(found)
        for partition in found:
            if partition in self._stands:
                consumer.seek(partition, self._stands[partition])
        self._begin(consumer, found - self._stands.keys())

    def _begin(self, consumer: Consumer, fresh: set[TopicPartition]) -> None:
        """Compacted records from their beginning; events from about an hour ago."""
        starts, ends = consumer.beginning_offsets(fresh), consumer.end_offsets(fresh)
        since = int(time.time() * 1000) - _EVENTS_BACK_MS
        times = {each: since for each in fresh if each.topic == EVENTS}
        told = consumer.offsets_for_times(times) if times else {}
        for partition in fresh:
            if partition not in starts or partition not in ends:
                continue
            start = starts[partition]
            if partition in told:
                first = told[partition]
                start = ends[partition] if first is None else first.offset
            consumer.seek(partition, start)
            self._stands[partition] = start
            self._past[partition] = (start, ends[partition])

    def _pass_gaps(self, consumer: Consumer) -> None:
        """A compacted log may end in offsets without a record: the consumer has passed them."""
        for partition, (_, end) in self._past.items():
            if self._stands[partition] < end:
                self._stands[partition] = consumer.position(partition)

    def has_events(self) -> bool:
        return any(each.topic == EVENTS for each in self._stands)

    def share_read(self) -> float:
        """How much of the past has been read, from 0 to 1."""
        todo = sum(end - start for start, end in self._past.values())
        done = sum(
            min(self._stands[partition], end) - start
            for partition, (start, end) in self._past.items()
        )
        return 1.0 if done >= todo else done / todo

    def drop(self) -> None:
        """End the present consumer; the next read begins anew where this one stood."""
        if self._consumer is not None:
            consumer, self._consumer = self._consumer, None
            try:
                consumer.close(timeout_ms=1_000)
            except ConsumerError:
                consumer.abandon()
