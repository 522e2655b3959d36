"""Whoever makes topics and lets them grow, haunts members, and looks at everything at the end."""

from collections.abc import Callable

from kohort.client.topic_partition import TopicPartition
from kohort.sim.life import Life
from kohort.sim.phone import Loss
from kohort.sim.plan import Plan, topic_name
from kohort.sim.reader import read_pieces
from kohort.sim.stage import Stage
from kohort.types import BrokerId, ErrorCode, GroupId, Millis, Offset, Partition, Topic
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

_PATIENCE_MS = 3_000
_RETRY_MS = 200
_EARLIEST = Millis(-2)
_TOPIC_RESOURCE = 2
_SEGMENT_BYTES = "internal.segment.bytes"
_GROUP_BYTES, _MEMBER_BYTES = 1_500, 800
"""A segment of the groups' topic must hold the record of a group, with all its members."""

Then = Callable[[], None]


class Admin:
    def __init__(self, stage: Stage, plan: Plan) -> None:
        self._stage = stage
        self._plan = plan
        self._life = Life(stage.timeline)
        self._phone = stage.phone(self._life, "admin")
        self._ghost = stage.phone(self._life, "ghost")
        self.partitions = dict(enumerate(plan.topics))
        """How many each topic has for certain."""

    def all_partitions(self) -> list[TopicPartition]:
        return [
            TopicPartition(Topic(topic_name(topic)), Partition(index))
            for topic, count in self.partitions.items()
            for index in range(count)
        ]

    # Before anybody else comes

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
            timeout_ms=Millis(_PATIENCE_MS),
        )

        def created(answer: CreateTopicsResponse) -> None:
            assert not any(topic.error_code for topic in answer.topics), answer
            self._shrink_segments(then)

        self._ask(body, created)

    def _shrink_segments(self, then: Then) -> None:
        """Of the groups' own topic, so that it rolls and is compacted."""
        if not self._plan.segment_bytes:
            then()
            return
        size = _GROUP_BYTES + _MEMBER_BYTES * len(self._plan.members)
        configs = (
            AlterableConfig(name=_SEGMENT_BYTES, config_operation=0, value=str(size)),
            AlterableConfig(name="min.cleanable.dirty.ratio", config_operation=0, value="0.1"),
        )
        resource = AlterConfigsResource(
            resource_type=_TOPIC_RESOURCE, resource_name="__consumer_offsets", configs=configs
        )

        self._ask(IncrementalAlterConfigsRequest(resources=(resource,)), lambda _: then())

    # While things happen

    def grow(self, topic: str, count: int, then: Callable[[TopicPartition], None]) -> None:
        index = int(topic[1:])
        total = self.partitions[index] + count
        asked = CreatePartitionsTopic(name=Topic(topic), count=total, assignments=None)
        body = CreatePartitionsRequest(topics=(asked,), timeout_ms=Millis(_PATIENCE_MS))

        def grown(answer: CreatePartitionsResponse) -> None:
            code = answer.results[0].error_code
            # The second try of one that was kept finds them there.
            if code in (ErrorCode.NONE, ErrorCode.INVALID_PARTITIONS):
                for number in range(self.partitions[index], total):
                    then(TopicPartition(Topic(topic), Partition(number)))
                self.partitions[index] = max(total, self.partitions[index])
            else:
                self._life.later(_RETRY_MS, lambda: self._ask(body, grown))

        self._ask(body, grown)

    def haunt(self, body: object) -> None:
        """Something that was said before arrives again."""
        self._ghost.ask(body, _PATIENCE_MS, lambda _: None, lambda _: None)

    # At the end

    def audit(self, groups: list[str], then: Then) -> None:
        """Look at everything that was promised; the tap looks along at offsets."""
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

        def shown(answer: OffsetFetchResponse) -> None:
            if any(group.error_code for group in answer.groups):
                self._life.later(_RETRY_MS, lambda: self.audit(groups, then))
            else:
                self._audit_beginnings(then)

        self._ask(body, shown)

    def _audit_beginnings(self, then: Then) -> None:
        """Where each log begins: nothing that was promised may lie before it."""
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

        def shown(answer: ListOffsetsResponse) -> None:
            beginnings = {
                TopicPartition(topic.name, part.partition_index): part.offset
                for topic in answer.topics
                for part in topic.partitions
            }
            for partition, offset in beginnings.items():
                self._stage.court.records.begins(partition, offset)
            self._audit_records(dict(beginnings), then)

        self._ask(body, shown)

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
        asked_at = self._stage.timeline.now
        self._ask(body, lambda answer: self._on_records(answer, positions, asked_at, then))

    def _on_records(
        self,
        answer: FetchResponse,
        positions: dict[TopicPartition, int],
        asked_at: int,
        then: Then,
    ) -> None:
        left: dict[TopicPartition, int] = {}
        records = self._stage.court.records
        for topic in answer.responses:
            for part in topic.partitions:
                at = TopicPartition(topic.topic, part.partition_index)
                pieces = read_pieces(at, part.records or b"")
                found = [(each.offset, each.text) for each in pieces]
                records.fetched(at, positions[at], found, asked_at)
                end = pieces[-1].offset + 1 if pieces else positions[at]
                if part.error_code or end < part.high_watermark:
                    left[at] = end
                else:
                    records.ends(at, end)
        self._audit_records(left, then)

    def _ask(self, body: object, then: Callable[..., None]) -> None:
        """Again and again until it is answered."""

        def lose(_: Loss) -> None:
            self._life.later(_RETRY_MS, lambda: self._ask(body, then))

        self._phone.ask(body, _PATIENCE_MS, then, lose)
