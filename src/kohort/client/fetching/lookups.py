"""ListOffsets: where partitions begin and end, and where a moment is, asked for until it is known.

Pure: questions go to whoever leads a partition, and again after a while where that failed.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from kohort.client.backoff import Backoff
from kohort.client.errors import BrokerRefused, ConsumerError, UnknownTopic, Unreachable
from kohort.client.member.effects import Broker
from kohort.client.member.events import Loss
from kohort.client.network.cluster import Cluster
from kohort.client.network.post import Post
from kohort.client.network.requests import Answer
from kohort.client.options import Options
from kohort.client.refusals import named
from kohort.client.topic_partition import TopicPartition
from kohort.types import BrokerId, ErrorCode, Millis, Offset, Topic, value
from kohort.wire.api.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

BEGINNING: Final = Millis(-2)
END: Final = Millis(-1)

MOVED: Final = frozenset(
    (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    )
)
"""The partition is led by somebody else, or nobody, or we know less than the broker: ask again."""

_CONSUMER: Final = BrokerId(-1)


@value
class FoundOffset:
    offset: Offset
    timestamp: Millis
    """Of the record; -1 for the beginning and the end."""
    leader_epoch: int


@dataclass(slots=True, eq=False)
class Lookup:
    """A question about many partitions; `then` is called whenever more of it is answered."""

    wanted: dict[TopicPartition, Millis]
    then: Callable[["Lookup", Millis], None]
    found: dict[TopicPartition, FoundOffset | None] = field(default_factory=dict)
    """None where no record is as young as the moment asked for."""
    error: ConsumerError | None = None
    """What no repetition will mend."""
    asking: int = 0
    attempts: int = 0
    retry_at: Millis = Millis(0)

    @property
    def missing(self) -> list[TopicPartition]:
        return [partition for partition in self.wanted if partition not in self.found]


class Lookups:
    def __init__(self, options: Options, cluster: Cluster, post: Post, backoff: Backoff) -> None:
        self._options = options
        self._cluster = cluster
        self._post = post
        self._backoff = backoff
        self._open: list[Lookup] = []

    def begin(
        self, wanted: Mapping[TopicPartition, Millis], then: Callable[[Lookup, Millis], None]
    ) -> Lookup:
        lookup = Lookup(wanted=dict(wanted), then=then)
        self._open.append(lookup)
        return lookup

    def withdraw(self, lookup: Lookup) -> None:
        if lookup in self._open:
            self._open.remove(lookup)

    def topics(self) -> frozenset[Topic]:
        """Those that must be known for it."""
        return frozenset(partition.topic for each in self._open for partition in each.wanted)

    def due(self) -> Millis | None:
        return min((each.retry_at for each in self._open if not each.asking), default=None)

    def hurry(self) -> None:
        """More is known of the cluster: what waited for that may be asked now."""
        for lookup in self._open:
            lookup.retry_at = Millis(0)

    def advance(self, now: Millis) -> None:
        for lookup in list(self._open):
            if not lookup.asking and now >= lookup.retry_at:
                self._ask(lookup, now)

    def explain(self, lookup: Lookup) -> ConsumerError:
        """Why there is no answer after all this time."""
        for partition in lookup.missing:
            if self._cluster.answered and partition.topic not in self._cluster.topics:
                return UnknownTopic(partition.topic)
        names = ", ".join(f"{topic}-{number}" for topic, number in lookup.missing)
        return Unreachable(f"no leader has told the offsets of {names} in time")

    def _ask(self, lookup: Lookup, now: Millis) -> None:
        by_leader: dict[BrokerId, list[TopicPartition]] = defaultdict(list)
        for partition in lookup.missing:
            leader = self._cluster.find_leader(partition)
            if leader is None:
                self._cluster.doubt()
            else:
                by_leader[leader.node_id].append(partition)
        for broker_id, partitions in by_leader.items():
            self._send(lookup, self._cluster.brokers[broker_id], partitions)
        if not lookup.asking:
            self._try_again(lookup, now)

    def _send(self, lookup: Lookup, leader: Broker, partitions: list[TopicPartition]) -> None:
        by_topic: dict[Topic, list[ListOffsetsPartition]] = defaultdict(list)
        for partition in partitions:
            by_topic[partition.topic].append(
                ListOffsetsPartition(
                    partition_index=partition.partition,
                    current_leader_epoch=self._cluster.leader_epoch(partition),
                    timestamp=lookup.wanted[partition],
                )
            )
        body = ListOffsetsRequest(
            replica_id=_CONSUMER,
            isolation_level=int(self._options.is_committed_only),
            topics=tuple(
                ListOffsetsTopic(name=topic, partitions=tuple(asked))
                for topic, asked in by_topic.items()
            ),
        )
        lookup.asking += 1

        def then(answer: Answer, now: Millis) -> None:
            lookup.asking -= 1
            self._take(lookup, answer)
            self._settle(lookup, now)

        self._post.send(body, leader, self._options.request_timeout_ms, then)

    def _take(self, lookup: Lookup, answer: Answer) -> None:
        if isinstance(answer, Loss):
            self._cluster.doubt()
            return
        assert isinstance(answer, ListOffsetsResponse)
        for topic in answer.topics:
            for each in topic.partitions:
                partition = TopicPartition(topic.name, each.partition_index)
                if each.error_code == ErrorCode.NONE:
                    lookup.found[partition] = None
                    if each.offset >= 0:
                        lookup.found[partition] = FoundOffset(
                            offset=each.offset,
                            timestamp=each.timestamp,
                            leader_epoch=each.leader_epoch,
                        )
                elif each.error_code in MOVED:
                    self._cluster.doubt()
                else:
                    what = f"offsets of {topic.name}-{each.partition_index}"
                    lookup.error = BrokerRefused(named(each.error_code), what)

    def _settle(self, lookup: Lookup, now: Millis) -> None:
        if lookup not in self._open:
            return
        if lookup.error is not None or not lookup.missing:
            self._open.remove(lookup)
        elif not lookup.asking:
            self._try_again(lookup, now)
        lookup.then(lookup, now)

    def _try_again(self, lookup: Lookup, now: Millis) -> None:
        lookup.retry_at = self._backoff.after(now, lookup.attempts)
        lookup.attempts += 1
