"""ListOffsets: looks up first, last and timestamp offsets, with retries. No I/O."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from kohort.client.error_codes import error_code
from kohort.client.errors import (
    BrokerResponseError,
    ConsumerError,
    KafkaTimeoutError,
    UnknownTopicOrPartitionError,
)
from kohort.client.member.effects import BrokerAddress
from kohort.client.member.member_events import RequestFailure
from kohort.client.network.metadata import ConsumerMetadata
from kohort.client.network.send_queue import Response, SendQueue
from kohort.client.options import Options
from kohort.protocol.backoff import Backoff
from kohort.types import BrokerId, ErrorCode, Millis, Offset, Topic, TopicPartition, value
from kohort.wire.api.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

BEGINNING: Final = Millis(-2)
END: Final = Millis(-1)

STALE_METADATA: Final = frozenset(
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
"""The leader has changed, is missing, or our metadata is older than the broker's: retry."""

_CONSUMER: Final = BrokerId(-1)


@value
class OffsetAndTimestamp:
    offset: Offset
    timestamp: Millis
    """Of the record; -1 for beginning and end offsets."""
    leader_epoch: int


@dataclass(slots=True, eq=False)
class OffsetLookup:
    """A lookup of many partitions; `then` is called after each response."""

    wanted: dict[TopicPartition, Millis]
    then: Callable[["OffsetLookup", Millis], None]
    found: dict[TopicPartition, OffsetAndTimestamp | None] = field(default_factory=dict)
    """None if no record has that timestamp or a later one."""
    error: ConsumerError | None = None
    """A fatal error."""
    in_flight: int = 0
    attempts: int = 0
    retry_at: Millis = Millis(0)

    @property
    def missing(self) -> list[TopicPartition]:
        return [partition for partition in self.wanted if partition not in self.found]


class OffsetFetcher:
    def __init__(
        self, options: Options, metadata: ConsumerMetadata, send_queue: SendQueue, backoff: Backoff
    ) -> None:
        self._options = options
        self._metadata = metadata
        self._send_queue = send_queue
        self._backoff = backoff
        self._open: list[OffsetLookup] = []

    def begin(
        self, wanted: Mapping[TopicPartition, Millis], then: Callable[[OffsetLookup, Millis], None]
    ) -> OffsetLookup:
        lookup = OffsetLookup(wanted=dict(wanted), then=then)
        self._open.append(lookup)
        return lookup

    def cancel(self, lookup: OffsetLookup) -> None:
        if lookup in self._open:
            self._open.remove(lookup)

    def topics(self) -> frozenset[Topic]:
        """The topics whose metadata is needed."""
        return frozenset(partition.topic for each in self._open for partition in each.wanted)

    def due(self) -> Millis | None:
        return min((each.retry_at for each in self._open if not each.in_flight), default=None)

    def retry_now(self) -> None:
        """Metadata was updated: retry without waiting."""
        for lookup in self._open:
            lookup.retry_at = Millis(0)

    def advance(self, now: Millis) -> None:
        for lookup in list(self._open):
            if not lookup.in_flight and now >= lookup.retry_at:
                self._send_requests(lookup, now)

    def timeout_error(self, lookup: OffsetLookup) -> ConsumerError:
        """The error of a lookup that has timed out."""
        for partition in lookup.missing:
            if self._metadata.request_answered and partition.topic not in self._metadata.topics:
                return UnknownTopicOrPartitionError(partition.topic)
        names = ", ".join(f"{topic}-{number}" for topic, number in lookup.missing)
        return KafkaTimeoutError(
            f"timed out while looking up offsets of {names}: no leader has responded"
        )

    def _send_requests(self, lookup: OffsetLookup, now: Millis) -> None:
        by_leader: dict[BrokerId, list[TopicPartition]] = defaultdict(list)
        for partition in lookup.missing:
            leader = self._metadata.find_leader(partition)
            if leader is None:
                self._metadata.request_update()
            else:
                by_leader[leader.node_id].append(partition)
        for broker_id, partitions in by_leader.items():
            self._send(lookup, self._metadata.brokers[broker_id], partitions)
        if not lookup.in_flight:
            self._try_again(lookup, now)

    def _send(
        self, lookup: OffsetLookup, leader: BrokerAddress, partitions: list[TopicPartition]
    ) -> None:
        by_topic: dict[Topic, list[ListOffsetsPartition]] = defaultdict(list)
        for partition in partitions:
            by_topic[partition.topic].append(
                ListOffsetsPartition(
                    partition_index=partition.partition,
                    current_leader_epoch=self._metadata.leader_epoch(partition),
                    timestamp=lookup.wanted[partition],
                )
            )
        body = ListOffsetsRequest(
            replica_id=_CONSUMER,
            isolation_level=int(self._options.is_read_committed),
            topics=tuple(
                ListOffsetsTopic(name=topic, partitions=tuple(each))
                for topic, each in by_topic.items()
            ),
        )
        lookup.in_flight += 1

        def then(response: Response, now: Millis) -> None:
            lookup.in_flight -= 1
            self._take(lookup, response)
            self._finish(lookup, now)

        self._send_queue.send(body, leader, self._options.request_timeout_ms, then)

    def _take(self, lookup: OffsetLookup, response: Response) -> None:
        if isinstance(response, RequestFailure):
            self._metadata.request_update()
            return
        assert isinstance(response, ListOffsetsResponse)
        for topic in response.topics:
            for each in topic.partitions:
                partition = TopicPartition(topic.name, each.partition_index)
                if each.error_code == ErrorCode.NONE:
                    lookup.found[partition] = None
                    if each.offset >= 0:
                        lookup.found[partition] = OffsetAndTimestamp(
                            offset=each.offset,
                            timestamp=each.timestamp,
                            leader_epoch=each.leader_epoch,
                        )
                elif each.error_code in STALE_METADATA:
                    self._metadata.request_update()
                else:
                    what = f"ListOffsets of {topic.name}-{each.partition_index} failed"
                    lookup.error = BrokerResponseError(error_code(each.error_code), what)

    def _finish(self, lookup: OffsetLookup, now: Millis) -> None:
        if lookup not in self._open:
            return
        if lookup.error is not None or not lookup.missing:
            self._open.remove(lookup)
        elif not lookup.in_flight:
            self._try_again(lookup, now)
        lookup.then(lookup, now)

    def _try_again(self, lookup: OffsetLookup, now: Millis) -> None:
        lookup.retry_at = self._backoff.after(now, lookup.attempts)
        lookup.attempts += 1
