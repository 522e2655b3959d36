"""An admin client: creates topics, adds partitions, resends requests, audits the result."""

from collections.abc import Callable

from kohort.events.internal_topics import CONSUMER_OFFSETS
from kohort.protocol.errors import ProtocolError
from kohort.sim.client_connection import FETCH_BY_NAME, read_records
from kohort.sim.context import SimContext
from kohort.sim.plan import SimulationPlan, topic_name
from kohort.sim.process import ClientProcess
from kohort.types import (
    BrokerId,
    ErrorCode,
    GroupId,
    Millis,
    Offset,
    Partition,
    Topic,
    TopicPartition,
)
from kohort.wire.api.k01_fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from kohort.wire.api.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kohort.wire.api.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from kohort.wire.api.k19_create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kohort.wire.api.k37_create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from kohort.wire.api.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

_TIMEOUT_MS = 3_000
_RETRY_MS = 200
_EARLIEST = Millis(-2)
_TOPIC_RESOURCE = 2
_SEGMENT_BYTES = "internal.segment.bytes"
_GROUP_BYTES, _MEMBER_BYTES = 1_500, 800
"""A segment of `__consumer_offsets` must hold the record of a group with all its members."""

Then = Callable[[], None]


class SimulatedAdminClient:
    def __init__(self, context: SimContext, plan: SimulationPlan) -> None:
        self._context = context
        self._plan = plan
        self._process = ClientProcess(context.scheduler)
        self._connection = context.connection(self._process, "admin")
        self._resend_connection = context.connection(self._process, "ghost")
        self.partitions = dict(enumerate(plan.topics))
        """Partition counts that the node has confirmed."""

    def all_partitions(self) -> list[TopicPartition]:
        return [
            TopicPartition(Topic(topic_name(topic)), Partition(index))
            for topic, count in self.partitions.items()
            for index in range(count)
        ]

    # Setup

    def create_topics(self, then: Then) -> None:
        size = self._plan.segment_bytes
        configs = (CreatableTopicConfig(name=_SEGMENT_BYTES, value=str(size)),) if size else ()
        body = CreateTopicsRequest(
            topics=tuple(
                CreatableTopic(
                    name=Topic(topic_name(index)),
                    num_partitions=count,
                    replication_factor=1,
                    configs=configs,
                )
                for index, count in enumerate(self._plan.topics)
            ),
            timeout_ms=Millis(_TIMEOUT_MS),
        )

        def created(response: CreateTopicsResponse) -> None:
            assert not any(topic.error_code for topic in response.topics), response
            self._shrink_segments(then)

        self._send(body, created)

    def _shrink_segments(self, then: Then) -> None:
        """Use small segments in `__consumer_offsets`, so that it rolls and is compacted."""
        if not self._plan.segment_bytes:
            then()
            return
        size = _GROUP_BYTES + _MEMBER_BYTES * len(self._plan.members)
        configs = (
            AlterableConfig(name=_SEGMENT_BYTES, config_operation=0, value=str(size)),
            AlterableConfig(name="min.cleanable.dirty.ratio", config_operation=0, value="0.1"),
        )
        resource = AlterConfigsResource(
            resource_type=_TOPIC_RESOURCE, resource_name=CONSUMER_OFFSETS, configs=configs
        )

        self._send(IncrementalAlterConfigsRequest(resources=(resource,)), lambda _: then())

    # Planned events

    def grow(self, topic: str, count: int, then: Callable[[TopicPartition], None]) -> None:
        index = int(topic[1:])
        total = self.partitions[index] + count
        asked = CreatePartitionsTopic(name=Topic(topic), count=total, assignments=None)
        body = CreatePartitionsRequest(topics=(asked,), timeout_ms=Millis(_TIMEOUT_MS))

        def grown(response: CreatePartitionsResponse) -> None:
            code = response.results[0].error_code
            # A retry of a successful request finds the partitions.
            if code in (ErrorCode.NONE, ErrorCode.INVALID_PARTITIONS):
                for number in range(self.partitions[index], total):
                    then(TopicPartition(Topic(topic), Partition(number)))
                self.partitions[index] = max(total, self.partitions[index])
            else:
                self._process.later(_RETRY_MS, lambda: self._send(body, grown))

        self._send(body, grown)

    def resend(self, body: object) -> None:
        """Send an old request again."""
        self._resend_connection.send(body, _TIMEOUT_MS, lambda _: None, lambda _: None)

    # Audit

    def audit(self, groups: list[str], then: Then) -> None:
        """Read all committed offsets and records; checkers see the responses."""
        topics = tuple(
            OffsetFetchRequestTopics(
                name=Topic(topic_name(topic)),
                partition_indexes=tuple(map(Partition, range(count))),
            )
            for topic, count in self.partitions.items()
        )
        body = OffsetFetchRequest(
            groups=tuple(
                OffsetFetchRequestGroup(group_id=GroupId(group), topics=topics) for group in groups
            ),
            require_stable=True,
        )

        def on_response(response: OffsetFetchResponse) -> None:
            if any(group.error_code for group in response.groups):
                self._process.later(_RETRY_MS, lambda: self.audit(groups, then))
            else:
                self._audit_beginnings(then)

        self._send(body, on_response)

    def _audit_beginnings(self, then: Then) -> None:
        """Check the start offsets: no acknowledged record may lie before them."""
        body = ListOffsetsRequest(
            replica_id=BrokerId(-1),
            topics=tuple(
                ListOffsetsTopic(
                    name=Topic(topic_name(topic)),
                    partitions=tuple(
                        ListOffsetsPartition(partition_index=Partition(index), timestamp=_EARLIEST)
                        for index in range(count)
                    ),
                )
                for topic, count in self.partitions.items()
            ),
        )

        def on_response(response: ListOffsetsResponse) -> None:
            beginnings = {
                TopicPartition(topic.name, part.partition_index): part.offset
                for topic in response.topics
                for part in topic.partitions
            }
            for partition, offset in beginnings.items():
                self._context.checkers.records.check_start_offset(partition, offset)
            self._audit_records(dict(beginnings), then)

        self._send(body, on_response)

    def _audit_records(self, positions: dict[TopicPartition, int], then: Then) -> None:
        if not positions:
            then()
            return
        body = FetchRequest(
            max_wait_ms=Millis(0),
            min_bytes=0,
            topics=tuple(
                FetchTopic(
                    topic=at.topic,
                    partitions=(
                        FetchPartition(
                            partition=at.partition,
                            fetch_offset=Offset(position),
                            partition_max_bytes=1 << 20,
                        ),
                    ),
                )
                for at, position in positions.items()
            ),
        )
        asked_at = self._context.scheduler.now
        self._send(
            body,
            lambda response: self._on_records(response, positions, asked_at, then),
            version_max=FETCH_BY_NAME,
        )

    def _on_records(
        self,
        response: FetchResponse,
        positions: dict[TopicPartition, int],
        asked_at: int,
        then: Then,
    ) -> None:
        left: dict[TopicPartition, int] = {}
        records = self._context.checkers.records
        for topic in response.responses:
            for part in topic.partitions:
                at = TopicPartition(topic.topic, part.partition_index)
                found = read_records(part.records or b"")
                records.fetched(at, positions[at], found, asked_at)
                end = found[-1][0] + 1 if found else positions[at]
                if part.error_code or end < part.high_watermark:
                    left[at] = end
                else:
                    records.check_end_offset(at, end)
        self._audit_records(left, then)

    def _send(
        self, body: object, then: Callable[..., None], version_max: int | None = None
    ) -> None:
        """Retry until there is a response."""

        def retry(_: ProtocolError) -> None:
            self._process.later(_RETRY_MS, lambda: self._send(body, then, version_max))

        self._connection.send(body, _TIMEOUT_MS, then, retry, version_max=version_max)
