"""OffsetFetch: one group before version 8, many since; each group is one question."""

from collections.abc import Callable
from functools import partial
from itertools import groupby

from kohort.coordinator.commands import FetchOffsets, TopicPartitions
from kohort.coordinator.replies import FetchedOffset, OffsetsFetched, Refused, Reply
from kohort.node.broker import Broker
from kohort.node.gathering import gather
from kohort.node.request import Request
from kohort.types import ErrorCode, GroupId, Millis, Offset, Topic, Uuid
from kohort.wire.api.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)


def handle(broker: Broker, request: Request, now: Millis) -> None:
    body: OffsetFetchRequest = request.body
    groups = body.groups if request.version >= 8 else (_as_group(body),)

    def finish(answers: list[OffsetFetchResponseGroup]) -> None:
        if request.version >= 8:
            request.answer(OffsetFetchResponse(groups=tuple(answers)))
        else:
            request.answer(_as_single(answers[0]))

    collect = gather(len(groups), finish)
    for index, asked in enumerate(groups):
        _fetch(broker, request, asked, partial(collect, index), now)
    if not groups:
        finish([])


def _as_group(body: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    topics = None
    if body.topics is not None:
        topics = tuple(
            OffsetFetchRequestTopics(name=t.name, partition_indexes=t.partition_indexes)
            for t in body.topics
        )
    return OffsetFetchRequestGroup(group_id=body.group_id, topics=topics)


def _fetch(
    broker: Broker,
    request: Request,
    asked: OffsetFetchRequestGroup,
    collect: Callable[[OffsetFetchResponseGroup], None],
    now: Millis,
) -> None:
    by_id = request.version >= 10
    topics = None
    strangers: list[OffsetFetchResponseTopics] = []
    if asked.topics is not None:
        known = []
        for topic in asked.topics:
            named = broker.topics.name(topic.name, topic.topic_id, by_id=by_id)
            if by_id and named.count == 0:
                strangers.append(_unknown(topic))
            else:
                known.append(
                    TopicPartitions(
                        topic=named.name,
                        partitions=topic.partition_indexes,
                        topic_id=topic.topic_id,
                    )
                )
        topics = tuple(known)

    def deliver(reply: Reply) -> None:
        collect(_respond_group(broker, asked.group_id, reply, strangers, by_id=by_id))

    command = FetchOffsets(
        ticket=broker.groups.issue(deliver),
        group_id=asked.group_id,
        topics=topics,
        require_stable=request.body.require_stable,
    )
    broker.groups.submit(command, now)


def _respond_group(
    broker: Broker,
    group_id: GroupId,
    reply: Reply,
    strangers: list[OffsetFetchResponseTopics],
    *,
    by_id: bool,
) -> OffsetFetchResponseGroup:
    match reply:
        case Refused():
            return OffsetFetchResponseGroup(group_id=group_id, error_code=reply.error)
        case OffsetsFetched():
            topics = [
                _respond_topic(broker, name, list(offsets), by_id=by_id)
                for name, offsets in groupby(reply.offsets, key=lambda each: each.topic)
            ]
            return OffsetFetchResponseGroup(group_id=group_id, topics=(*topics, *strangers))
        case _:
            raise AssertionError(f"an offset fetch cannot be answered with {reply}")


def _respond_topic(
    broker: Broker, name: Topic, offsets: list[FetchedOffset], *, by_id: bool
) -> OffsetFetchResponseTopics:
    topic_id: Uuid = offsets[0].topic_id
    if by_id:
        topic_id = broker.topics.id_of(name) or topic_id
    return OffsetFetchResponseTopics(
        name=name,
        topic_id=topic_id,
        partitions=tuple(
            OffsetFetchResponsePartitions(
                partition_index=each.partition,
                committed_offset=each.offset,
                committed_leader_epoch=each.leader_epoch,
                metadata=each.metadata,
                error_code=each.error,
            )
            for each in offsets
        ),
    )


def _unknown(topic: OffsetFetchRequestTopics) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        topic_id=topic.topic_id,
        partitions=tuple(
            OffsetFetchResponsePartitions(
                partition_index=partition,
                committed_offset=Offset(-1),
                metadata="",
                error_code=ErrorCode.UNKNOWN_TOPIC_ID,
            )
            for partition in topic.partition_indexes
        ),
    )


def _as_single(group: OffsetFetchResponseGroup) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=tuple(
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetFetchResponsePartition(
                        partition_index=each.partition_index,
                        committed_offset=each.committed_offset,
                        committed_leader_epoch=each.committed_leader_epoch,
                        metadata=each.metadata,
                        error_code=each.error_code,
                    )
                    for each in topic.partitions
                ),
            )
            for topic in group.topics
        ),
    )
