"""OffsetFetch: one group before version 8, many since; each group is one question."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import groupby, islice
from typing import Final

from kohort.coordinator.commands import FetchOffsets, TopicPartitions
from kohort.coordinator.replies import FetchedOffset, OffsetsFetched, Refused, Reply
from kohort.log.limits import LEADER_EPOCH
from kohort.node.broker import Broker
from kohort.node.gathering import gather
from kohort.node.request import Request
from kohort.types import ZERO_UUID, ErrorCode, Millis, Offset, Topic, Uuid, maker
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

_NO_EPOCH: Final = -1


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
        if isinstance(reply, Refused):
            collect(OffsetFetchResponseGroup(group_id=asked.group_id, error_code=reply.error))
            return
        found = _topics(broker, reply, topics, by_id=by_id)
        collect(OffsetFetchResponseGroup(group_id=asked.group_id, topics=(*found, *strangers)))

    command = FetchOffsets(
        ticket=broker.groups.issue(deliver),
        group_id=asked.group_id,
        topics=topics,
        require_stable=request.body.require_stable,
    )
    broker.groups.submit(command, now)


def _topics(
    broker: Broker, reply: Reply, asked: tuple[TopicPartitions, ...] | None, *, by_id: bool
) -> Iterator[OffsetFetchResponseTopics]:
    """What was found, as it was asked for: a topic without partitions has an answer too."""
    assert isinstance(reply, OffsetsFetched), f"an offset fetch cannot be answered with {reply}"
    if asked is None:
        for name, offsets in groupby(reply.offsets, key=lambda each: each.topic):
            topic_id = (broker.topics.id_of(name) if by_id else None) or ZERO_UUID
            yield _topic(name, topic_id, offsets)
        return
    found = iter(reply.offsets)
    for topic in asked:
        yield _topic(topic.topic, topic.topic_id, islice(found, len(topic.partitions)))


def _topic(
    name: Topic, topic_id: Uuid, offsets: Iterable[FetchedOffset]
) -> OffsetFetchResponseTopics:
    # DEVIATION: Kafka tells any epoch that was committed. One that no leader here has had came from
    # another Kafka with the offset, and a Java consumer would wait for such a leader for ever.
    partitions = [
        _make_partition(
            each.partition,
            each.offset,
            each.leader_epoch if each.leader_epoch <= LEADER_EPOCH else _NO_EPOCH,
            each.metadata,
            each.error,
        )
        for each in offsets
    ]
    return OffsetFetchResponseTopics(name=name, topic_id=topic_id, partitions=tuple(partitions))


_make_partition: Final = maker(OffsetFetchResponsePartitions)
"""All offsets of a thousand groups are told in one answer."""


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
