"""aiokafka: everything on a loop, which here runs on a thread for all of its clients."""

import asyncio
import threading
from collections.abc import Coroutine, Iterable, Sequence
from functools import cache
from typing import Any, TypeVar

from aiokafka import (
    AIOKafkaConsumer,
    AIOKafkaProducer,
    ConsumerRebalanceListener,
    TopicPartition,
)
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from tests.node.clients.library import HEARTBEAT_MS, SESSION_MS, Seen, Wanted, Written

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}

_POLL_MS = 50
_DEADLINE_S = 30

T = TypeVar("T")


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="aiokafka", daemon=True).start()
    return loop


def _run(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run_coroutine_threadsafe(coroutine, _loop()).result(_DEADLINE_S)


class _Counter(ConsumerRebalanceListener):
    def __init__(self) -> None:
        self.assignments = 0

    def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        """Nothing is kept that would have to be given up."""

    def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:  # noqa: ARG002  # theirs
        self.assignments += 1


class AioMember:
    def __init__(self, bootstrap_servers: str, wanted: Wanted) -> None:
        self._topic = wanted.topic
        self._counter = _Counter()
        self._consumer = _run(self._start(bootstrap_servers, wanted))

    async def _start(self, bootstrap_servers: str, wanted: Wanted) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
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
        consumer.subscribe([wanted.topic], listener=self._counter)
        # Returns once it has joined, which another member that is not polled would prevent.
        self._starting = asyncio.ensure_future(consumer.start())
        return consumer

    def poll(self) -> list[Seen]:
        return _run(self._poll())

    async def _poll(self) -> list[Seen]:
        if not self._starting.done():
            await asyncio.wait([self._starting], timeout=_POLL_MS / 1000)
            return []
        self._starting.result()
        polled = await self._consumer.getmany(timeout_ms=_POLL_MS)
        return [_see(record) for records in polled.values() for record in records]

    def assignment(self) -> set[int]:
        return {each.partition for each in self._consumer.assignment()}

    @property
    def assignments(self) -> int:
        return self._counter.assignments

    def commit(self) -> None:
        _run(self._consumer.commit())

    def committed(self, partition: int) -> int | None:
        return _run(self._consumer.committed(self._at(partition)))

    def position(self, partition: int) -> int:
        return _run(self._consumer.position(self._at(partition)))

    def seek(self, partition: int, offset: int) -> None:
        async def seek() -> None:
            self._consumer.seek(self._at(partition), offset)

        _run(seek())

    def span(self, partition: int) -> tuple[int, int]:
        at = self._at(partition)
        first = _run(self._consumer.beginning_offsets([at]))[at]
        return first, _run(self._consumer.end_offsets([at]))[at]

    def offset_for_time(self, partition: int, timestamp_ms: int) -> int | None:
        at = self._at(partition)
        found = _run(self._consumer.offsets_for_times({at: timestamp_ms}))[at]
        return None if found is None else int(found.offset)

    def close(self) -> None:
        _run(self._consumer.stop())

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


class Aio:
    name = "aiokafka"
    assignors: tuple[str, ...] = tuple(ASSIGNORS)
    codecs: tuple[str, ...] = ("none", "gzip", "snappy", "lz4", "zstd")
    knows_fencing = False

    def join(self, bootstrap_servers: str, wanted: Wanted) -> AioMember:
        return AioMember(bootstrap_servers, wanted)

    def produce(
        self,
        bootstrap_servers: str,
        topic: str,
        records: Sequence[Written],
        *,
        codec: str = "none",
        is_idempotent: bool = False,
    ) -> list[int]:
        async def produce() -> list[int]:
            producer = AIOKafkaProducer(
                bootstrap_servers=bootstrap_servers,
                compression_type=None if codec == "none" else codec,
                enable_idempotence=is_idempotent,
                acks="all",
                linger_ms=5,
            )
            await producer.start()
            try:
                futures = [
                    await producer.send(
                        topic,
                        value=record.value,
                        key=record.key,
                        partition=record.partition,
                        headers=list(record.headers),
                        timestamp_ms=record.timestamp_ms,
                    )
                    for record in records
                ]
                return [(await future).offset for future in futures]
            finally:
                await producer.stop()

        return _run(produce())
