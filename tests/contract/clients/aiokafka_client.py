"""aiokafka's consumer and producer."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from inspect import isawaitable, signature
from typing import Any

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

from tests.contract.clients.aiokafka_admin import AiokafkaAdmin
from tests.contract.clients.aiokafka_loop import run
from tests.contract.clients.client_library import (
    CommittedOffset,
    ConsumedRecord,
    Limitation,
    MemberOptions,
    NotSupported,
    ProducerRecord,
    TopicAndPartition,
    not_supported,
)
from tests.contract.clients.python_member import (
    PythonMember,
    RebalanceRecorder,
    consumer_options,
    to_consumed,
)

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}

_POLL_MS = 20


class _Listener(RebalanceRecorder, ConsumerRebalanceListener):
    pass


class AiokafkaMember(PythonMember):
    partition_type = TopicPartition

    def __init__(self, bootstrap_servers: str, options: MemberOptions) -> None:
        if "cooperative-sticky" in options.assignors:
            raise not_supported(assignors, "CooperativeStickyAssignor")
        if options.protocol == "consumer":
            assert "group_protocol" not in signature(AIOKafkaConsumer).parameters, "use it"
            raise NotSupported("group_protocol")
        self._listener = _Listener()
        self._polling: asyncio.Future[Any] | None = None
        run(self._start(bootstrap_servers, options))

    async def _start(self, bootstrap_servers: str, options: MemberOptions) -> None:
        self._consumer = AIOKafkaConsumer(
            **consumer_options(bootstrap_servers, options),
            partition_assignment_strategy=[ASSIGNORS[name] for name in options.assignors],
            retry_backoff_ms=20,
        )
        self.subscribe_from(options)
        # start() returns after the join, which a member that is not polled would block.
        self._starting = asyncio.ensure_future(self._consumer.start())

    def _ask(self, call: Callable[[], Any]) -> Any:
        async def ask() -> Any:
            found = call()
            return await found if isawaitable(found) else found

        return run(ask())

    def assign(self, *tps: TopicAndPartition) -> None:
        run(self._started())
        super().assign(*tps)

    def poll(self) -> list[ConsumedRecord]:
        return run(self._poll())

    async def _poll(self) -> list[ConsumedRecord]:
        """getmany() waits for the end of a rebalance regardless of its timeout."""
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
        return [to_consumed(record) for records in polled.result().values() for record in records]

    async def _started(self) -> None:
        await self._starting

    def commit(self, to_commit: Mapping[TopicAndPartition, CommittedOffset] | None = None) -> None:
        if to_commit is None:
            run(self._consumer.commit())
            return
        if any(committed.leader_epoch is not None for committed in to_commit.values()):
            raise not_supported(OffsetAndMetadata, "leader_epoch")
        offsets = {
            TopicPartition(*tp): (committed.offset, committed.metadata)
            for tp, committed in to_commit.items()
        }
        run(self._consumer.commit(offsets))

    def committed(self, tp: TopicAndPartition) -> CommittedOffset | None:
        found = run(self._consumer.committed(TopicPartition(*tp)))
        return None if found is None else CommittedOffset(offset=found)

    def close(self) -> None:
        run(self._close())

    async def _close(self) -> None:
        for task in (self._starting, self._polling):
            if task is not None and not task.done():
                task.cancel()
                await asyncio.wait([task])
        await self._consumer.stop()


class AiokafkaLibrary:
    name = "aiokafka"
    version = aiokafka.__version__
    limitations: Mapping[str, Limitation] = {
        "cooperative-sticky": Limitation(reason="It has only eager assignors."),
        "fencing": Limitation(
            reason=(
                "Its heartbeats and commits do not carry the instance id, so the broker cannot"
                " fence it: it rejoins and replaces the other member."
            ),
            is_there=lambda: hasattr(group, "HeartbeatRequest_v3"),
        ),
        "leader-epochs": Limitation(reason="It commits offsets without their leader epoch."),
        "metadata-read": Limitation(
            reason="The consumer returns the committed offset without its metadata.",
            raises=AssertionError,
        ),
        "consumer-protocol": Limitation(reason="It has only the classic group protocol."),
        "delete-groups": Limitation(reason="Its admin client cannot delete groups."),
        "alter-offsets": Limitation(reason="Its admin client cannot alter a group's offsets."),
        "delete-offsets": Limitation(reason="Its admin client cannot delete a group's offsets."),
        "remove-members": Limitation(reason="Its admin client cannot remove members from a group."),
        "latest-by-time": Limitation(reason="Its admin client cannot list offsets."),
        "reset-settings": Limitation(reason="Its admin client cannot reset a single setting."),
    }

    def join(self, bootstrap_servers: str, options: MemberOptions) -> AiokafkaMember:
        return AiokafkaMember(bootstrap_servers, options)

    def administer(self, bootstrap_servers: str) -> AiokafkaAdmin:
        return AiokafkaAdmin(bootstrap_servers)

    def produce(
        self,
        bootstrap_servers: str,
        topic: str,
        records: Sequence[ProducerRecord],
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
