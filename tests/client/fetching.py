"""An agent without a network: what it wants to send is looked at, and answered by hand."""

from typing import Any

from kohort.client.agent import Agent
from kohort.client.fetching.parcel import Place
from kohort.client.fetching.subscription import PartitionState, Wish
from kohort.client.network.requests import Answer, Request
from kohort.client.options import read_options
from kohort.client.topic_partition import TopicPartition
from kohort.types import BrokerId, Millis, Offset, Partition, Topic, Uuid
from kohort.wire.api.k01_fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from kohort.wire.api.k03_metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.client.batches import batch

ORDERS = Topic("orders")
ORDERS_ID = Uuid(b"o" * 16)


def partition(number: int) -> TopicPartition:
    return TopicPartition(ORDERS, Partition(number))


def metadata(leaders: dict[int, int], *, epoch: int = 0, topic_id: Uuid = ORDERS_ID) -> Any:
    """Orders, and who leads its partitions."""
    brokers = tuple(
        MetadataResponseBroker(node_id=BrokerId(each), host=f"broker-{each}", port=9092)
        for each in sorted(set(leaders.values()) - {-1})
    )
    partitions = tuple(
        MetadataResponsePartition(
            partition_index=Partition(number), leader_id=BrokerId(leader), leader_epoch=epoch
        )
        for number, leader in leaders.items()
    )
    topic = MetadataResponseTopic(name=ORDERS, topic_id=topic_id, partitions=partitions)
    return MetadataResponse(brokers=brokers, topics=(topic,))


def fetched(contents: dict[int, bytes], **fields: Any) -> FetchResponse:
    partitions = tuple(
        PartitionData(partition_index=Partition(number), records=content, **fields)
        for number, content in contents.items()
    )
    topic = FetchableTopicResponse(topic_id=ORDERS_ID, partitions=partitions)
    return FetchResponse(responses=(topic,))


class Stage:
    """Partitions of orders are assigned from offset 0, and their leaders are known."""

    def __init__(self, leaders: dict[int, int], **options: object) -> None:
        self.agent = Agent(read_options(options.items()), lambda: 0.5)
        self.now = Millis(1_000)
        self._open: list[Request] = []
        subscription = self.agent.subscription
        subscription.choose(Wish.PARTITIONS)
        subscription.add(map(partition, leaders))
        for state in subscription.states.values():
            subscription.stand(state, Place(offset=Offset(0)))
        self.advance()
        self.answer(MetadataRequest, metadata(leaders))

    def advance(self, by_ms: int = 0) -> None:
        self.now = Millis(self.now + by_ms)
        self.agent.advance(self.now)
        self._open += self.agent.post.take()

    def asked(self, request_type: type) -> list[Request]:
        """On their way, and not answered yet."""
        return [request for request in self._open if type(request.body) is request_type]

    def answer(self, request_type: type, answer: Answer, broker: int | None = None) -> None:
        """The oldest of this kind, of this broker."""
        request = next(
            each
            for each in self.asked(request_type)
            if broker is None or (each.broker is not None and each.broker.node_id == broker)
        )
        self._open.remove(request)
        request.then(answer, self.now)
        self.advance()

    def fetching(self) -> dict[int, dict[int, int]]:
        """What is being fetched: by broker, the offset of each partition."""
        return {
            int(request.broker.node_id): wanted(request.body)
            for request in self.asked(FetchRequest)
            if request.broker is not None
        }

    def state(self, number: int) -> PartitionState:
        return self.agent.subscription.get(partition(number))

    def read(self, number: int) -> None:
        """The program has read one parcel."""
        self.state(number).parcels.popleft()
        self.advance()


def wanted(body: Any) -> dict[int, int]:
    return {
        int(each.partition): int(each.fetch_offset)
        for topic in body.topics
        for each in topic.partitions
    }


def records(base: int, count: int = 1) -> bytes:
    return batch([b"value"] * count, base, epoch=0)
