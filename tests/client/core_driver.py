"""Drives a ConsumerCore without a network: tests inspect its requests and pass responses."""

from typing import Any

from kohort.client.consumer_core import ConsumerCore
from kohort.client.fetch.completed_fetch import FetchPosition
from kohort.client.fetch.subscription_state import SubscriptionType, TopicPartitionState
from kohort.client.network.send_queue import ClientRequest, Response
from kohort.client.options import read_options
from kohort.types import BrokerId, Millis, Offset, Partition, Topic, TopicPartition, Uuid
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
from tests.client.fetched_batches import batch

ORDERS = Topic("orders")
ORDERS_ID = Uuid(b"o" * 16)


def partition(number: int) -> TopicPartition:
    return TopicPartition(ORDERS, Partition(number))


def metadata(leaders: dict[int, int], *, epoch: int = 0, topic_id: Uuid = ORDERS_ID) -> Any:
    """Metadata of the topic orders with these leaders."""
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


class CoreDriver:
    """A core with partitions of orders assigned from offset 0, and known leaders."""

    def __init__(self, leaders: dict[int, int], **options: object) -> None:
        self.core = ConsumerCore(read_options(options.items()), lambda: 0.5)
        self.now = Millis(1_000)
        self._open: list[ClientRequest] = []
        subscription = self.core.subscription
        subscription.set_type(SubscriptionType.USER_ASSIGNED)
        subscription.add(map(partition, leaders))
        for state in subscription.states.values():
            subscription.seek(state, FetchPosition(offset=Offset(0)))
        self.advance()
        self.respond(MetadataRequest, metadata(leaders))

    def advance(self, by_ms: int = 0) -> None:
        self.now = Millis(self.now + by_ms)
        self.core.advance(self.now)
        self._open += self.core.send_queue.take()

    def in_flight(self, request_type: type) -> list[ClientRequest]:
        """Requests of this type in flight."""
        return [request for request in self._open if type(request.body) is request_type]

    def respond(self, request_type: type, respond: Response, broker: int | None = None) -> None:
        """Respond to the oldest request of this type, to this broker."""
        request = next(
            each
            for each in self.in_flight(request_type)
            if broker is None or (each.broker is not None and each.broker.node_id == broker)
        )
        self._open.remove(request)
        request.callback(respond, self.now)
        self.advance()

    def fetching(self) -> dict[int, dict[int, int]]:
        """The fetches in flight: by broker, the offset of each partition."""
        return {
            int(request.broker.node_id): requested_offsets(request.body)
            for request in self.in_flight(FetchRequest)
            if request.broker is not None
        }

    def state(self, number: int) -> TopicPartitionState:
        return self.core.subscription.get(partition(number))

    def read(self, number: int) -> None:
        """The application has read one fetch."""
        self.state(number).fetches.popleft()
        self.advance()


def requested_offsets(body: Any) -> dict[int, int]:
    return {
        int(each.partition): int(each.fetch_offset)
        for topic in body.topics
        for each in topic.partitions
    }


def records(base: int, count: int = 1) -> bytes:
    return batch([b"value"] * count, base, epoch=0)
