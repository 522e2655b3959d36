"""aiokafka: its consumers and producers."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from inspect import signature
from typing import Any, Literal

import aiokafka
from aiokafka import (
    AIOKafkaConsumer,
    AIOKafkaProducer,
    ConsumerRebalanceListener,
    OffsetAndMetadata,
    TopicPartition,
)
from aiokafka.coordinator.assignors import abstract as assignors
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.protocol import group

from tests.contract.clients.aio_admin import AioAdmin
from tests.contract.clients.aio_loop import run, run_now
from tests.contract.clients.library import (
    HEARTBEAT_MS,
    METADATA_MS,
    Lack,
    Lacking,
    Place,
    Seen,
    Standing,
    Told,
    Wanted,
    Written,
    lacking,
)

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}

_POLL_MS = 20


class _Listener(ConsumerRebalanceListener):
    def __init__(self) -> None:
        self.told: list[Told] = []

    def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        self._note("assigned", assigned)

    def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        self._note("revoked", revoked)

    def _note(self, what: Literal["assigned", "revoked"], partitions: Iterable[Any]) -> None:
        if places := frozenset(Place(*each) for each in partitions):
            self.told.append(Told(what, places))


class AioMember:
    def __init__(self, bootstrap_servers: str, wanted: Wanted) -> None:
        if "cooperative-sticky" in wanted.assignors:
            raise lacking(assignors, "CooperativeStickyAssignor")
        if wanted.protocol == "consumer":
            assert "group_protocol" not in signature(AIOKafkaConsumer).parameters, "use it"
            raise Lacking("group_protocol")
        self._listener = _Listener()
        self._polling: asyncio.Future[Any] | None = None
        self._consumer = run(self._start(bootstrap_servers, wanted))

    async def _start(self, bootstrap_servers: str, wanted: Wanted) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap_servers,
            group_id=wanted.group,
            group_instance_id=wanted.instance,
            partition_assignment_strategy=[ASSIGNORS[name] for name in wanted.assignors],
            auto_offset_reset=wanted.reset,
            enable_auto_commit=wanted.commits_by_itself,
            auto_commit_interval_ms=100,
            heartbeat_interval_ms=HEARTBEAT_MS,
            session_timeout_ms=wanted.session_ms,
            max_poll_interval_ms=wanted.poll_interval_ms,
            max_partition_fetch_bytes=wanted.partition_bytes,
            isolation_level="read_committed" if wanted.is_reading_committed else "read_uncommitted",
            fetch_max_wait_ms=50,
            retry_backoff_ms=20,
            metadata_max_age_ms=METADATA_MS,
        )
        if wanted.pattern is not None:
            consumer.subscribe(pattern=wanted.pattern, listener=self._listener)
        elif wanted.topics:
            consumer.subscribe(list(wanted.topics), listener=self._listener)
        # Returns once it has joined, which another member that is not polled would prevent.
        self._starting = asyncio.ensure_future(consumer.start())
        return consumer

    @property
    def told(self) -> Sequence[Told]:
        return self._listener.told

    def stall(self) -> None:
        """It is not polled unless somebody does."""

    def subscribe(self, *topics: str) -> None:
        run_now(lambda: self._consumer.subscribe(list(topics), listener=self._listener))

    def assign(self, *places: Place) -> None:
        run(self._started())
        run_now(lambda: self._consumer.assign([TopicPartition(*place) for place in places]))

    def poll(self) -> list[Seen]:
        return run(self._poll())

    async def _poll(self) -> list[Seen]:
        """Its own poll waits for a rebalance to end, however short it was asked to be."""
        if not self._starting.done():
            await asyncio.wait([self._starting], timeout=_POLL_MS / 1000)
            return []
        self._starting.result()
        if self._polling is None:
            self._polling = asyncio.ensure_future(self._consumer.getmany(timeout_ms=_POLL_MS))
        await asyncio.wait([self._polling], timeout=2 * _POLL_MS / 1000)
        if not self._polling.done():
            return []
        polled, self._polling = self._polling, None
        return [_see(record) for records in polled.result().values() for record in records]

    async def _started(self) -> None:
        await self._starting

    def assignment(self) -> set[Place]:
        return {Place(*each) for each in self._consumer.assignment()}

    def commit(self, standings: Mapping[Place, Standing] | None = None) -> None:
        if standings is None:
            run(self._consumer.commit())
            return
        if any(standing.leader_epoch is not None for standing in standings.values()):
            raise lacking(OffsetAndMetadata, "leader_epoch")
        offsets = {
            TopicPartition(*place): (standing.offset, standing.metadata)
            for place, standing in standings.items()
        }
        run(self._consumer.commit(offsets))

    def committed(self, place: Place) -> Standing | None:
        found = run(self._consumer.committed(TopicPartition(*place)))
        return None if found is None else Standing(offset=found)

    def position(self, place: Place) -> int:
        return int(run(self._consumer.position(TopicPartition(*place))))

    def seek(self, place: Place, offset: int) -> None:
        run_now(lambda: self._consumer.seek(TopicPartition(*place), offset))

    def pause(self, *places: Place) -> None:
        run_now(lambda: self._consumer.pause(*(TopicPartition(*place) for place in places)))

    def resume(self, *places: Place) -> None:
        run_now(lambda: self._consumer.resume(*(TopicPartition(*place) for place in places)))

    def span(self, place: Place) -> tuple[int, int]:
        at = TopicPartition(*place)
        first = run(self._consumer.beginning_offsets([at]))[at]
        return first, run(self._consumer.end_offsets([at]))[at]

    def offset_for_time(self, place: Place, timestamp_ms: int) -> int | None:
        at = TopicPartition(*place)
        found = run(self._consumer.offsets_for_times({at: timestamp_ms}))[at]
        return None if found is None else int(found.offset)

    def close(self) -> None:
        run(self._close())

    async def _close(self) -> None:
        for task in (self._starting, self._polling):
            if task is not None and not task.done():
                task.cancel()
                await asyncio.wait([task])
        await self._consumer.stop()


def _see(record: Any) -> Seen:
    return Seen(
        place=Place(record.topic, record.partition),
        offset=record.offset,
        key=record.key,
        value=record.value,
        headers=tuple(record.headers),
        timestamp_ms=record.timestamp,
    )


class Aio:
    name = "aiokafka"
    version = aiokafka.__version__
    lacks: Mapping[str, Lack] = {
        "cooperative-sticky": Lack(reason="It has only eager assignors."),
        "fencing": Lack(
            reason=(
                "Its heartbeats and commits do not carry its instance id, so that nobody can tell"
                " it that it was replaced: it joins again, and takes the place back."
            ),
            is_there=lambda: hasattr(group, "HeartbeatRequest_v3"),
        ),
        "leader-epochs": Lack(reason="It commits offsets without their leader epoch."),
        "metadata-read": Lack(
            reason="A consumer is told the committed offset, and not what was beside it.",
            raises=AssertionError,
        ),
        "consumer-protocol": Lack(reason="It has only the classic group protocol."),
        "delete-groups": Lack(reason="Its administration cannot delete groups."),
        "alter-offsets": Lack(reason="Its administration cannot set a group's offsets."),
        "delete-offsets": Lack(reason="Its administration cannot delete a group's offsets."),
        "remove-members": Lack(reason="Its administration cannot remove members from a group."),
        "latest-by-time": Lack(reason="Its administration cannot list offsets."),
        "reset-settings": Lack(reason="Its administration cannot take back one setting."),
    }

    def join(self, bootstrap_servers: str, wanted: Wanted) -> AioMember:
        return AioMember(bootstrap_servers, wanted)

    def administer(self, bootstrap_servers: str) -> AioAdmin:
        return AioAdmin(bootstrap_servers)

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
                max_request_size=10_000_000,
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

        return run(produce())

    def produce_in_transactions(
        self, bootstrap_servers: str, topic: str, committed: bytes, aborted: bytes
    ) -> None:
        async def produce() -> None:
            producer = AIOKafkaProducer(bootstrap_servers=bootstrap_servers, transactional_id=topic)
            try:
                await producer.start()
                await producer.begin_transaction()
                await producer.send_and_wait(topic, aborted, partition=0)
                await producer.abort_transaction()
                async with producer.transaction():
                    await producer.send_and_wait(topic, committed, partition=0)
            finally:
                await producer.stop()

        run(produce())
