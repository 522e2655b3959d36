"""Cluster metadata: brokers, topics and partition leaders. No I/O.

It decides when to send the next Metadata request: when topics are missing, when a response shows
that it is outdated, and after metadata.max.age.ms.
"""

from collections.abc import Mapping
from typing import Final

from kohort.client.error_codes import error_code
from kohort.client.errors import BrokerResponseError, ConsumerError
from kohort.client.member.effects import BrokerAddress
from kohort.client.options import Address, Options
from kohort.protocol.backoff import Backoff
from kohort.types import (
    ZERO_UUID,
    BrokerId,
    ErrorCode,
    Millis,
    Partition,
    Topic,
    TopicPartition,
    Uuid,
    value,
)
from kohort.wire.api.k03_metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

_RETRIABLE: Final = frozenset(
    (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_TOPIC_ID,
    )
)
"""The topic may be created or a leader elected soon, so no error is raised."""


@value
class PartitionLeader:
    broker_id: BrokerId
    epoch: int


@value
class KnownTopic:
    topic_id: Uuid
    is_internal: bool
    leaders: Mapping[Partition, PartitionLeader]
    """Broker -1 if a partition has no leader."""


class ConsumerMetadata:
    def __init__(self, options: Options, backoff: Backoff) -> None:
        self._options = options
        self._backoff = backoff
        self.brokers: dict[BrokerId, BrokerAddress] = {}
        self.topics: dict[Topic, KnownTopic] = {}
        self.error: ConsumerError | None = None
        """An error of a watched topic, for the next poll."""
        self.requests_sent = 0
        """The number of requests so far; identifies the last one."""
        self.request_answered = 0
        """The request whose response came last."""
        self._watched: frozenset[Topic] = frozenset()
        self._is_watching_all = False
        self._requested: frozenset[Topic] | None = frozenset()
        self._covered: frozenset[Topic] | None = frozenset()
        """Topics of the last request and of the last response; None for all."""
        self._is_needed = False
        self._is_in_flight = False
        self._attempts = 0
        self._not_before = Millis(0)
        self._fresh_until = Millis(0)

    # Reading

    def addresses(self) -> list[Address]:
        """The known brokers, then the bootstrap servers."""
        known = [(broker.host, broker.port) for broker in self.brokers.values()]
        return list(dict.fromkeys((*known, *self._options.bootstrap_servers)))

    def find_leader(self, partition: TopicPartition) -> BrokerAddress | None:
        leader = self._leader(partition)
        return None if leader is None else self.brokers.get(leader.broker_id)

    def leader_epoch(self, partition: TopicPartition) -> int:
        leader = self._leader(partition)
        return -1 if leader is None else leader.epoch

    def topic_id(self, topic: Topic) -> Uuid:
        known = self.topics.get(topic)
        return ZERO_UUID if known is None else known.topic_id

    def partition_counts(self, topics: frozenset[Topic]) -> dict[Topic, int]:
        """Without topics that do not exist."""
        return {topic: len(self.topics[topic].leaders) for topic in topics if topic in self.topics}

    def _leader(self, partition: TopicPartition) -> PartitionLeader | None:
        known = self.topics.get(partition.topic)
        return None if known is None else known.leaders.get(partition.partition)

    # Updating

    def watch(self, topics: frozenset[Topic], *, is_all: bool) -> None:
        """Replace the set of topics to request."""
        new = topics - self._watched - self.topics.keys()
        if new or (is_all and not self._is_watching_all):
            self.request_update_now()
        self._watched = topics
        self._is_watching_all = is_all

    def covers(self, topics: frozenset[Topic]) -> bool:
        """Whether the last response covers these topics, so that missing ones do not exist."""
        return self.request_answered > 0 and (self._covered is None or topics <= self._covered)

    @property
    def is_all_covered(self) -> bool:
        return self._covered is None

    def request_update(self) -> None:
        """Metadata is outdated or incomplete; a request in flight is enough."""
        if not self._is_in_flight:
            self._is_needed = True

    def request_update_now(self) -> None:
        """A call waits for it: send a new request without backoff."""
        self._is_needed = True
        self._not_before = Millis(0)

    def due(self) -> Millis | None:
        """When to send the next request."""
        if self._is_in_flight:
            return None
        if self._is_needed:
            return self._not_before
        is_idle = not (self._watched or self._is_watching_all)
        return None if is_idle else max(self._not_before, self._fresh_until)

    def new_request(self) -> MetadataRequest:
        """The request, to be sent now; call `update` or `on_request_failed` afterwards."""
        self._is_in_flight = True
        self._is_needed = False
        self.requests_sent += 1
        self._requested = None if self._is_watching_all else self._watched
        topics = None
        if self._requested is not None:
            topics = tuple(MetadataRequestTopic(name=topic) for topic in sorted(self._requested))
        return MetadataRequest(
            topics=topics, allow_auto_topic_creation=self._options.allow_auto_create_topics
        )

    def on_request_failed(self, now: Millis) -> None:
        self._is_in_flight = False
        self._is_needed = True
        self._back_off(now)

    def update(self, response: MetadataResponse, now: Millis) -> None:
        self._is_in_flight = False
        self._covered = self._requested
        self.request_answered = self.requests_sent
        self.brokers = {
            each.node_id: BrokerAddress(node_id=each.node_id, host=each.host, port=each.port)
            for each in response.brokers
        }
        topics: dict[Topic, KnownTopic] = {}
        for each in response.topics:
            if each.name is None:
                continue
            if each.error_code == ErrorCode.NONE:
                topics[each.name] = self._merge(each, self.topics.get(each.name))
            else:
                self._set_error(each.name, each.error_code)
        self.topics = topics
        self._fresh_until = Millis(now + self._options.metadata_max_age_ms)
        if not self.covers(self._watched):
            self.request_update_now()
        elif self._is_complete():
            self._attempts = 0
            self._not_before = Millis(now + self._options.retry_backoff_ms)
        else:
            self._is_needed = True
            self._back_off(now)

    def _is_complete(self) -> bool:
        """Whether all watched topics exist and have leaders."""
        return self._watched <= self.topics.keys() and all(
            leader.broker_id in self.brokers
            for topic in self._watched
            for leader in self.topics[topic].leaders.values()
        )

    def update_leader(
        self,
        partition: TopicPartition,
        broker_id: BrokerId,
        epoch: int,
        brokers: list[BrokerAddress],
    ) -> bool:
        """Take the leader from an error response (KIP-951); whether it is new."""
        known = self.topics.get(partition.topic)
        leader = self._leader(partition)
        if known is None or leader is None or epoch <= leader.epoch or broker_id < 0:
            return False
        self.brokers |= {broker.node_id: broker for broker in brokers}
        leaders = {
            **known.leaders,
            partition.partition: PartitionLeader(broker_id=broker_id, epoch=epoch),
        }
        self.topics[partition.topic] = KnownTopic(
            topic_id=known.topic_id, is_internal=known.is_internal, leaders=leaders
        )
        return broker_id in self.brokers

    def _merge(self, reported: MetadataResponseTopic, known: KnownTopic | None) -> KnownTopic:
        """A broker with outdated metadata must not bring back an old leader (KIP-320)."""
        is_same = known is not None and known.topic_id == reported.topic_id
        former = known.leaders if known is not None and is_same else {}
        leaders = {
            each.partition_index: _newer(each, former.get(each.partition_index))
            for each in reported.partitions
        }
        return KnownTopic(
            topic_id=reported.topic_id, is_internal=reported.is_internal, leaders=leaders
        )

    def _set_error(self, topic: Topic, code: int) -> None:
        if code not in _RETRIABLE and topic in self._watched:
            self.error = BrokerResponseError(error_code(code), f"metadata of topic {topic!r}")

    def _back_off(self, now: Millis) -> None:
        self._not_before = self._backoff.after(now, self._attempts)
        self._attempts += 1


def _newer(reported: MetadataResponsePartition, known: PartitionLeader | None) -> PartitionLeader:
    if known is not None and reported.leader_epoch < known.epoch and reported.leader_epoch != -1:
        return known
    return PartitionLeader(broker_id=reported.leader_id, epoch=reported.leader_epoch)
