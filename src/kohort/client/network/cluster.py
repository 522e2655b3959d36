"""What brokers have told about the cluster: who they are, which topics there are, who leads. Pure.

It also knows when to ask again: because something is missing, because somebody found out that it
is no longer true, or because it is old.
"""

from collections.abc import Mapping
from typing import Final

from kohort.client.backoff import Backoff
from kohort.client.errors import BrokerRefused, ConsumerError
from kohort.client.member.effects import Broker
from kohort.client.options import Address, Options
from kohort.client.refusals import named
from kohort.client.topic_partition import TopicPartition
from kohort.types import ZERO_UUID, BrokerId, ErrorCode, Millis, Partition, Topic, Uuid, value
from kohort.wire.api.k03_metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

_PASSING: Final = frozenset(
    (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_TOPIC_ID,
    )
)
"""A topic may be made, a leader elected: no reason to trouble the program."""


@value
class Leader:
    broker_id: BrokerId
    epoch: int


@value
class KnownTopic:
    topic_id: Uuid
    is_internal: bool
    leaders: Mapping[Partition, Leader]
    """A partition without a leader has broker -1."""


class Cluster:
    def __init__(self, options: Options, backoff: Backoff) -> None:
        self._options = options
        self._backoff = backoff
        self.brokers: dict[BrokerId, Broker] = {}
        self.topics: dict[Topic, KnownTopic] = {}
        self.fault: ConsumerError | None = None
        """What the program must hear about a topic it wants."""
        self.questions = 0
        """How many there were, so that who waits for an answer knows to which one it was."""
        self.answered = 0
        """Which one was answered last."""
        self._watched: frozenset[Topic] = frozenset()
        self._is_watching_all = False
        self._asked: frozenset[Topic] | None = frozenset()
        self._covered: frozenset[Topic] | None = frozenset()
        """What the last question was, and the last one that was answered, about; None is all."""
        self._is_needed = False
        self._is_asking = False
        self._attempts = 0
        self._not_before = Millis(0)
        self._fresh_until = Millis(0)

    # What is known

    def addresses(self) -> list[Address]:
        """Where a broker may be found: those that are known, and at last those to begin with."""
        known = [(broker.host, broker.port) for broker in self.brokers.values()]
        return list(dict.fromkeys((*known, *self._options.bootstrap_servers)))

    def find_leader(self, partition: TopicPartition) -> Broker | None:
        leader = self._leader(partition)
        return None if leader is None else self.brokers.get(leader.broker_id)

    def leader_epoch(self, partition: TopicPartition) -> int:
        leader = self._leader(partition)
        return -1 if leader is None else leader.epoch

    def topic_id(self, topic: Topic) -> Uuid:
        known = self.topics.get(topic)
        return ZERO_UUID if known is None else known.topic_id

    def partition_counts(self, topics: frozenset[Topic]) -> dict[Topic, int]:
        """Of those topics that exist."""
        return {topic: len(self.topics[topic].leaders) for topic in topics if topic in self.topics}

    def _leader(self, partition: TopicPartition) -> Leader | None:
        known = self.topics.get(partition.topic)
        return None if known is None else known.leaders.get(partition.partition)

    # What is wanted

    def watch(self, topics: frozenset[Topic], *, is_all: bool) -> None:
        """From now on these, or all there are; nobody else's business is asked about."""
        new = topics - self._watched - self.topics.keys()
        if new or (is_all and not self._is_watching_all):
            self.doubt_now()
        self._watched = topics
        self._is_watching_all = is_all

    def covers(self, topics: frozenset[Topic]) -> bool:
        """Whether the last answer was about these: a topic that it does not name does not exist."""
        return self.answered > 0 and (self._covered is None or topics <= self._covered)

    @property
    def is_all_covered(self) -> bool:
        return self._covered is None

    def doubt(self) -> None:
        """What is known has turned out wrong, or is not enough; an answer on its way may do."""
        if not self._is_asking:
            self._is_needed = True

    def doubt_now(self) -> None:
        """Somebody waits for it."""
        self._is_needed = True
        self._not_before = Millis(0)

    def due(self) -> Millis | None:
        """When to ask again."""
        if self._is_asking:
            return None
        if self._is_needed:
            return self._not_before
        is_idle = not (self._watched or self._is_watching_all)
        return None if is_idle else max(self._not_before, self._fresh_until)

    def ask(self) -> MetadataRequest:
        """The question, to be sent now; `learn` or `miss` tells how it ended."""
        self._is_asking = True
        self._is_needed = False
        self.questions += 1
        self._asked = None if self._is_watching_all else self._watched
        topics = None
        if self._asked is not None:
            topics = tuple(MetadataRequestTopic(name=topic) for topic in sorted(self._asked))
        return MetadataRequest(
            topics=topics, allow_auto_topic_creation=self._options.allow_auto_create_topics
        )

    def miss(self, now: Millis) -> None:
        """Nobody answered."""
        self._is_asking = False
        self._is_needed = True
        self._slow_down(now)

    def learn(self, answer: MetadataResponse, now: Millis) -> None:
        self._is_asking = False
        self._covered = self._asked
        self.answered = self.questions
        self.brokers = {
            each.node_id: Broker(node_id=each.node_id, host=each.host, port=each.port)
            for each in answer.brokers
        }
        topics: dict[Topic, KnownTopic] = {}
        for each in answer.topics:
            if each.name is None:
                continue
            if each.error_code == ErrorCode.NONE:
                topics[each.name] = self._merge(each, self.topics.get(each.name))
            else:
                self._refuse(each.name, each.error_code)
        self.topics = topics
        self._fresh_until = Millis(now + self._options.metadata_max_age_ms)
        if not self.covers(self._watched):
            self.doubt_now()
        elif self._is_complete():
            self._attempts = 0
            self._not_before = Millis(now + self._options.retry_backoff_ms)
        else:
            self._is_needed = True
            self._slow_down(now)

    def _is_complete(self) -> bool:
        """Whether all that is watched can be read."""
        return self._watched <= self.topics.keys() and all(
            leader.broker_id in self.brokers
            for topic in self._watched
            for leader in self.topics[topic].leaders.values()
        )

    def hear_of_leader(
        self, partition: TopicPartition, broker_id: BrokerId, epoch: int, brokers: list[Broker]
    ) -> bool:
        """A broker that no longer leads has said who does (KIP-951); whether that was news."""
        known = self.topics.get(partition.topic)
        leader = self._leader(partition)
        if known is None or leader is None or epoch <= leader.epoch or broker_id < 0:
            return False
        self.brokers |= {broker.node_id: broker for broker in brokers}
        leaders = {**known.leaders, partition.partition: Leader(broker_id=broker_id, epoch=epoch)}
        self.topics[partition.topic] = KnownTopic(
            topic_id=known.topic_id, is_internal=known.is_internal, leaders=leaders
        )
        return broker_id in self.brokers

    def _merge(self, told: MetadataResponseTopic, known: KnownTopic | None) -> KnownTopic:
        """A broker that lags behind must not bring back a leader that is no more (KIP-320)."""
        is_same = known is not None and known.topic_id == told.topic_id
        former = known.leaders if known is not None and is_same else {}
        leaders = {
            each.partition_index: _newer(each, former.get(each.partition_index))
            for each in told.partitions
        }
        return KnownTopic(topic_id=told.topic_id, is_internal=told.is_internal, leaders=leaders)

    def _refuse(self, topic: Topic, code: int) -> None:
        if code not in _PASSING and topic in self._watched:
            self.fault = BrokerRefused(named(code), f"topic {topic!r} cannot be read")

    def _slow_down(self, now: Millis) -> None:
        self._not_before = self._backoff.after(now, self._attempts)
        self._attempts += 1


def _newer(told: MetadataResponsePartition, known: Leader | None) -> Leader:
    if known is not None and told.leader_epoch < known.epoch and told.leader_epoch != -1:
        return known
    return Leader(broker_id=told.leader_id, epoch=told.leader_epoch)
