"""kafka-python: does its work while it is polled, which it is on a thread of its own.

Each poll waits until something comes. Where a poll ends just when a join is completed, kafka-python
3.0.12 forgets that join: it has an assignment that nobody is told, and sends no more heartbeats.
"""

import threading
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.codec import has_gzip, has_lz4, has_snappy, has_zstd
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import FencedInstanceIdError

from tests.node.clients.library import HEARTBEAT_MS, SESSION_MS, Fenced, Seen, Wanted, Written

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}

HAS_CODEC = {"gzip": has_gzip, "snappy": has_snappy, "lz4": has_lz4, "zstd": has_zstd}

_POLL_MS = 3_600_000


class _Counter(ConsumerRebalanceListener):
    def __init__(self) -> None:
        self.assignments = 0

    def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        """Nothing is kept that would have to be given up."""

    def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:  # noqa: ARG002  # theirs
        self.assignments += 1


class KafkaPythonMember:
    def __init__(self, bootstrap_servers: str, wanted: Wanted) -> None:
        self._topic = wanted.topic
        self._counter = _Counter()
        self._consumer = KafkaConsumer(
            bootstrap_servers=bootstrap_servers,
            group_id=wanted.group,
            group_instance_id=wanted.instance,
            partition_assignment_strategy=[ASSIGNORS[wanted.assignor]],
            auto_offset_reset="earliest",
            enable_auto_commit=wanted.commits_by_itself,
            auto_commit_interval_ms=100,
            heartbeat_interval_ms=HEARTBEAT_MS,
            session_timeout_ms=SESSION_MS,
            fetch_max_wait_ms=50,
            metadata_max_age_ms=1000,
        )
        self._consumer.subscribe([wanted.topic], listener=self._counter)
        self._come: deque[Seen] = deque()
        self._error: Exception | None = None
        self._is_closing = False
        self._thread = threading.Thread(target=self._keep_polling, daemon=True)
        self._thread.start()

    def _keep_polling(self) -> None:
        try:
            while not self._is_closing:
                polled = self._consumer.poll(timeout_ms=_POLL_MS)
                self._come += [_see(record) for records in polled.values() for record in records]
        except Exception as error:
            # Closed under its poll it complains in many ways, which is no news.
            self._error = None if self._is_closing else error

    def poll(self) -> list[Seen]:
        assert self._error is None, self._error
        return [self._come.popleft() for _ in range(len(self._come))]

    def assignment(self) -> set[int]:
        return {each.partition for each in self._consumer.assignment()}

    @property
    def assignments(self) -> int:
        return self._counter.assignments

    def commit(self) -> None:
        try:
            self._consumer.commit()
        except FencedInstanceIdError as error:
            raise Fenced from error

    def committed(self, partition: int) -> int | None:
        found: int | None = self._consumer.committed(self._at(partition))
        return found

    def position(self, partition: int) -> int:
        return int(self._consumer.position(self._at(partition)))

    def seek(self, partition: int, offset: int) -> None:
        self._consumer.seek(self._at(partition), offset)

    def span(self, partition: int) -> tuple[int, int]:
        at = self._at(partition)
        return (
            self._consumer.beginning_offsets([at])[at],
            self._consumer.end_offsets([at])[at],
        )

    def offset_for_time(self, partition: int, timestamp_ms: int) -> int | None:
        at = self._at(partition)
        found = self._consumer.offsets_for_times({at: timestamp_ms})[at]
        return None if found is None else int(found.offset)

    def close(self) -> None:
        self._is_closing = True
        self._consumer.close()
        self._thread.join()

    def _at(self, partition: int) -> TopicPartition:
        return TopicPartition(self._topic, partition)


def _see(record: Any) -> Seen:
    return Seen(
        partition=record.partition,
        offset=record.offset,
        key=record.key,
        value=record.value,
        headers=tuple(record.headers),
        timestamp_ms=record.timestamp,
    )


class KafkaPython:
    name = "kafka-python"
    assignors: tuple[str, ...] = tuple(ASSIGNORS)
    codecs: tuple[str, ...] = ("none", *(name for name, has in HAS_CODEC.items() if has()))
    knows_fencing = True

    def join(self, bootstrap_servers: str, wanted: Wanted) -> KafkaPythonMember:
        return KafkaPythonMember(bootstrap_servers, wanted)

    def produce(
        self,
        bootstrap_servers: str,
        topic: str,
        records: Sequence[Written],
        *,
        codec: str = "none",
        is_idempotent: bool = False,
    ) -> list[int]:
        producer = KafkaProducer(
            bootstrap_servers=bootstrap_servers,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=is_idempotent,
            acks="all",
            linger_ms=5,
        )
        try:
            futures = [
                producer.send(
                    topic,
                    value=record.value,
                    key=record.key,
                    partition=record.partition,
                    headers=list(record.headers),
                    timestamp_ms=record.timestamp_ms,
                )
                for record in records
            ]
            return [future.get(20).offset for future in futures]
        finally:
            producer.close()
