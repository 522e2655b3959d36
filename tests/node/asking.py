"""A node without sockets: requests go in as bytes, answers come out as bytes, time is told."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kohort.log.catalog import Catalog
from kohort.log.disk import Disk
from kohort.node import dispatch
from kohort.node.broker import Address, Broker
from kohort.node.config import Settings
from kohort.node.request import Request
from kohort.node.topics import Topics
from kohort.types import ErrorCode, Millis, Offset, Partition, Topic, Uuid
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


class Pending:
    """A question, and its answer once it has come."""

    def __init__(self, body: object, version: int, client_id: str) -> None:
        header, decoded = decode_request(encode_request(body, version, 7, client_id)[4:])
        self.request = Request(header, decoded, "/127.0.0.1", lambda _: None)

    @property
    def is_answered(self) -> bool:
        return self.request.is_answered

    @property
    def answer(self) -> Any:
        assert self.is_answered, "no answer has come yet"
        header = self.request.header
        correlation_id, body = decode_response(
            self.request.payload[4:], header.request_api_key, header.request_api_version
        )
        assert correlation_id == 7
        return body


class Promises:
    """Stands for the thread that syncs: what was written is safe when the test says so."""

    def __init__(self) -> None:
        self._waiting: list[Callable[[], None]] = []

    def after(self, then: Callable[[], None]) -> None:
        self._waiting.append(then)

    def keep(self) -> None:
        waiting, self._waiting = self._waiting, []
        for then in waiting:
            then()


class Scene:
    """A broker on a directory, its clock and whoever asks it."""

    def __init__(
        self, where: Path | Disk, settings: Mapping[str, str] | None = None, *, syncs: bool = False
    ) -> None:
        self.now = START
        self.promises = Promises() if syncs else None
        self._where = where
        self._settings = Settings(settings)
        self._open()

    def _open(self) -> None:
        defaults = self._settings.topic_defaults()
        self.catalog, _ = Catalog.open(self._where, self.now, defaults)
        topics = Topics(self.catalog, self._settings)
        syncer: Any = self.promises
        self.broker = Broker(self._settings, topics, syncer)
        self.broker.address = Address(host="node.example", port=9092)
        for _ in self.broker.load_groups(lambda: self.now):
            pass

    def close(self) -> None:
        self.catalog.close(self.now)

    def restart(self) -> None:
        self.close()
        self._open()

    # Asking

    def ask(self, body: object, version: int, *, client_id: str = "tester") -> Pending:
        pending = Pending(body, version, client_id)
        dispatch.handle(self.broker, pending.request, self.now)
        return pending

    def answer(self, body: object, version: int) -> Any:
        return self.ask(body, version).answer

    def advance(self, ms: int) -> None:
        """Time passes; whatever is due happens at its own moment."""
        end = Millis(self.now + ms)
        while (deadline := self.broker.next_deadline()) is not None and deadline <= end:
            self.now = max(self.now, deadline)
            self.broker.fire_due(self.now)
        self.now = end

    # What most tests do

    def create(self, name: str, partitions: int = 1, **configs: str) -> CreatableTopicResult:
        """Settings are given with underscores for dots."""
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
        topic_id = self.broker.topics.id_of(Topic(name))
        assert topic_id is not None
        return topic_id

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
    """A batch of these values, as a producer would send it."""
    records = tuple(
        NewRecord(key=key, value=value.encode(), timestamp=Millis(at)) for value in values
    )
    return encode(NewBatch(records=records, **options))


def values_in(records: bytes | None) -> list[str]:
    """The values of all whole batches."""
    data = records or b""
    return [
        (record.value or b"").decode()
        for position, _ in split(data, truncated_ok=True)
        for record in iter_records(data, position)
    ]


def name_of(error_code: int) -> str:
    return ErrorCode(error_code).name
