"""Who leads a partition, and a connection to ask it by: for what no other part of us asks."""

import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kohort.admin.cluster import Cluster
from kohort.admin.connection import Address, Connection, Lost, deadline_in
from kohort.client.topic_partition import TopicPartition
from kohort.types import BrokerId, Millis, Topic
from kohort.wire.api.k00_produce import ProduceRequest
from kohort.wire.api.k01_fetch import FetchRequest
from kohort.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic
from kohort.wire.api.k22_init_producer_id import InitProducerIdRequest

_VERSIONS: Final[Mapping[type, tuple[int, int]]] = {
    # From 7 on batches may be compressed with zstd; from 13 on topics go by id.
    ProduceRequest: (7, 12),
    FetchRequest: (12, 12),
    InitProducerIdRequest: (1, 4),
}

_ANSWER_MS: Final = Millis(35_000)
"""A broker that must wait for its replicas answers after half a minute at the latest."""


class Leaders:
    """Used by one thread."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._connections: dict[Address, Connection] = {}
        self._addresses: dict[BrokerId, Address] = {}
        self._leaders: dict[TopicPartition, BrokerId] = {}

    def learn(self, topics: Iterable[Topic]) -> None:
        """Ask who leads their partitions now."""
        asked = tuple(MetadataRequestTopic(name=topic) for topic in sorted(set(topics)))
        answer = self._cluster.caller.ask_any(
            MetadataRequest(topics=asked, allow_auto_topic_creation=False)
        )
        self._addresses = {each.node_id: (each.host, each.port) for each in answer.brokers}
        for topic in answer.topics:
            for each in topic.partitions:
                partition = TopicPartition(topic.name, each.partition_index)
                self._leaders.pop(partition, None)
                if each.leader_id in self._addresses:
                    self._leaders[partition] = each.leader_id

    def find(self, partition: TopicPartition) -> BrokerId | None:
        return self._leaders.get(partition)

    def any_broker(self) -> BrokerId:
        return next(iter(self._addresses))

    def ask(self, broker_id: BrokerId, body: object) -> Any:
        """Lost where it does not answer; the next question then takes a new connection."""
        address = self._addresses.get(broker_id)
        if address is None:
            raise Lost(f"broker {broker_id} is not known any more")
        try:
            connection = self._connections.get(address)
            if connection is None:
                connection = Connection(
                    address, self._cluster.settings.client_id, deadline_in(_ANSWER_MS)
                )
                self._connections[address] = connection
            return connection.ask(body, _VERSIONS[type(body)], deadline_in(_ANSWER_MS))
        except Lost:
            broken = self._connections.pop(address, None)
            if broken is not None:
                broken.close()
            raise

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()


class Patience:
    """How long something is tried again; what has come anew gives new time."""

    def __init__(self, patience_ms: Millis) -> None:
        self._patience_ms = patience_ms
        self.renew()

    def renew(self) -> None:
        self._deadline = deadline_in(self._patience_ms)

    def is_over(self) -> bool:
        return time.monotonic() >= self._deadline
