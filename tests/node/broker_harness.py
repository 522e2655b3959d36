"""A broker without sockets: encoded requests in, encoded responses out, manual clock."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kohort.coordinator.commands import Command, Ticket
from kohort.log.catalog import Catalog
from kohort.log.catalog_file import CatalogTopic
from kohort.log.disk import Disk
from kohort.log.repair import OnRepair, ignore_repair
from kohort.log.sync_queue import PendingSync
from kohort.node import dispatch
from kohort.node.broker import Address, Broker
from kohort.node.config import BrokerConfig
from kohort.node.request import Request, SlicedWork
from kohort.node.syncer import Syncer
from kohort.node.topics import Topics
from kohort.types import DeadlineMillis, ErrorCode, Millis, Offset, Partition, Topic, Uuid
from kohort.wire.api.k00_produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from kohort.wire.api.k01_fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from kohort.wire.api.k19_create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from kohort.wire.batch import NewBatch, NewRecord, encode, iter_records, split
from kohort.wire.envelope import decode_request, decode_response, encode_request

START = Millis(1_700_000_000_000)


class PendingResponse:
    """A request and, later, its response."""

    def __init__(self, body: object, version: int, client_id: str) -> None:
        header, decoded = decode_request(encode_request(body, version, 7, client_id)[4:])
        self.request = Request(header, decoded, "/127.0.0.1", self)

    @property
    def is_answered(self) -> bool:
        return self.request.is_answered

    @property
    def answer(self) -> Any:
        assert self.is_answered, "there is no response yet"
        header = self.request.header
        correlation_id, body = decode_response(
            self.request.payload[4:], header.request_api_key, header.request_api_version
        )
        assert correlation_id == 7
        return body

    # Responder

    def answered(self, request: Request) -> None: ...

    def close(self, reason: str) -> None:
        raise AssertionError(reason)

    def continue_later(self, request: Request, work: SlicedWork) -> None:
        try:
            while True:
                work.send(None)  # type: ignore[arg-type]  # the first one
        except StopIteration as end:
            request.answer(end.value)

    def hold_back(self, request: Request) -> None: ...

    def fail(self, error: Exception) -> None:
        raise error


class ReplyCollector:
    """Collects the replies to tickets."""

    def __init__(self) -> None:
        self.replies: list[Any] = []

    def deliver(self, reply: Any) -> None:
        self.replies.append(reply)


class _ManualSync:
    """A sync driver that the test completes manually."""

    def start(self, files: Sequence[PendingSync]) -> None: ...


class HarnessClock:
    """One time for timestamps and for timers."""

    def __init__(self, harness: "BrokerHarness") -> None:
        self._harness = harness

    def now(self) -> Millis:
        return self._harness.now

    def monotonic(self) -> float:
        return self._harness.now / 1000


class BrokerHarness:
    """A broker on a directory with a manual clock; each request is one loop iteration."""

    def __init__(
        self,
        where: Path | Disk,
        settings: Mapping[str, str] | None = None,
        *,
        syncs: bool = False,
        on_repair: OnRepair = ignore_repair,
    ) -> None:
        self.now = START
        self._on_repair = on_repair
        self._syncs = syncs
        self._where = where
        self._settings = BrokerConfig(settings)
        self._open()

    def _open(self) -> None:
        defaults = self._settings.topic_defaults()
        self.catalog, repairs = Catalog.open(self._where, self.now, defaults)
        self.catalog.on_repair = self._on_repair
        for repair in repairs:
            self._on_repair(repair)
        topics = Topics(self.catalog, self._settings)
        self._syncer = Syncer(_ManualSync()) if self._syncs else None
        self.broker = Broker(self._settings, topics, self._syncer)
        self.broker.address = Address(host="node.example", port=9092)
        self._set_timer_time()
        for _ in self.broker.load_groups(HarnessClock(self)):
            pass
        self.end_iteration()

    def close(self) -> None:
        self.catalog.close(self.now)

    def restart(self) -> None:
        self.close()
        self._open()

    # Iterations

    def end_iteration(self) -> None:
        broker = self.broker
        broker.groups.append_deferred()
        broker.purgatory.complete(1 << 30)
        broker.write_events()
        if self._syncer is not None:
            self._syncer.end_iteration(broker.take_pending_syncs)

    def sync(self) -> None:
        """Complete the sync of everything written so far."""
        syncer = self._syncer
        assert syncer is not None, "this harness was created without syncs"
        while not syncer.is_idle:
            while syncer.is_collecting:
                syncer.end_iteration(self.broker.take_pending_syncs)
            syncer.finish(0.0)
        self.end_iteration()

    def submit(self, make: Callable[[Ticket], Command]) -> ReplyCollector:
        inbox = ReplyCollector()
        self._set_timer_time()
        self.broker.groups.submit(make(self.broker.groups.open(inbox)), self.now)
        self.end_iteration()
        return inbox

    def shut_down(self) -> None:
        self.broker.shut_down(self.now)
        self.end_iteration()

    # Requests

    def ask(self, body: object, version: int, *, client_id: str = "tester") -> PendingResponse:
        pending = PendingResponse(body, version, client_id)
        self._set_timer_time()
        work = dispatch.handle(self.broker, pending.request, self.now)
        while work is not None:
            self.end_iteration()
            try:
                work.send(self.now)
            except StopIteration as end:
                dispatch.settle(self.broker, pending.request, end.value)
                work = None
        self.end_iteration()
        return pending

    def answer(self, body: object, version: int) -> Any:
        return self.ask(body, version).answer

    def advance(self, ms: int) -> None:
        """Advance the clock; timers fire at their deadlines."""
        end = Millis(self.now + ms)
        while (deadline := self.broker.next_deadline()) is not None and deadline <= end:
            self.now = Millis(max(self.now, deadline))
            self.broker.purgatory.fire_due(DeadlineMillis(self.now))
            self.broker.groups.fire_due(DeadlineMillis(self.now), self.now)
            self.end_iteration()
        self.now = end
        self._set_timer_time()

    def _set_timer_time(self) -> None:
        broker = self.broker
        broker.groups.timers.now = broker.purgatory.timers.now = DeadlineMillis(self.now)

    # Common requests

    def create(self, name: str, partitions: int = 1, **configs: str) -> CreatableTopicResult:
        """Settings are keyword arguments with underscores instead of dots."""
        topic = CreatableTopic(
            name=Topic(name),
            num_partitions=partitions,
            replication_factor=1,
            configs=tuple(
                CreatableTopicConfig(name=key.replace("_", "."), value=text)
                for key, text in configs.items()
            ),
        )
        (result,) = self.answer(CreateTopicsRequest(topics=(topic,)), 7).topics
        assert isinstance(result, CreatableTopicResult)
        return result

    def id_of(self, name: str) -> Uuid:
        return self.get_topic(name).topic_id

    def get_topic(self, name: str) -> CatalogTopic:
        topic = self.broker.topics.find(Topic(name))
        assert topic is not None
        return topic

    def produce(
        self, batch: bytes, name: str = "t", partition: int = 0, *, acks: int = 1, version: int = 12
    ) -> PartitionProduceResponse:
        pending = self.ask(produce_request(batch, name, partition, acks=acks), version)
        result = pending.answer.responses[0].partition_responses[0]
        assert isinstance(result, PartitionProduceResponse)
        return result

    def fetch(self, offset: int = 0, name: str = "t", partition: int = 0) -> PartitionData:
        answer = self.answer(fetch_request(offset, name, partition, max_wait_ms=0), 12)
        result = answer.responses[0].partitions[0]
        assert isinstance(result, PartitionData)
        return result


def produce_request(
    batch: bytes | None, name: str = "t", partition: int = 0, *, acks: int = 1
) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=batch)
    topic = TopicProduceData(name=Topic(name), partition_data=(data,))
    return ProduceRequest(acks=acks, timeout_ms=Millis(1000), topic_data=(topic,))


def fetch_request(
    offset: int = 0,
    name: str = "t",
    partition: int = 0,
    *,
    min_bytes: int = 1,
    max_wait_ms: int = 500,
    **options: Any,
) -> FetchRequest:
    asked = FetchPartition(
        partition=Partition(partition), fetch_offset=Offset(offset), partition_max_bytes=1 << 20
    )
    return FetchRequest(
        min_bytes=min_bytes,
        max_wait_ms=Millis(max_wait_ms),
        topics=(FetchTopic(topic=Topic(name), partitions=(asked,)),),
        **options,
    )


def new_batch(*values: str, at: int = START, key: bytes | None = b"k", **options: Any) -> bytes:
    """A batch with these values."""
    records = tuple(
        NewRecord(key=key, value=value.encode(), timestamp=Millis(at)) for value in values
    )
    return encode(NewBatch(records=records, **options))


def values_in(records: bytes | None) -> list[str]:
    """The values of all complete batches."""
    data = records or b""
    return [
        (record.value or b"").decode()
        for position, _ in split(data, truncated_ok=True)
        for record in iter_records(data, position)
    ]


def name_of(error_code: int) -> str:
    return ErrorCode(error_code).name
