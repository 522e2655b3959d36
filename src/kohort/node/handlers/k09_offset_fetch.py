"""OffsetFetch: one group before version 8, many since; each group is one question."""

from operator import attrgetter
from typing import Final

from kohort.coordinator.commands import FetchManyOffsets, FetchOffsets, TopicPartitions
from kohort.coordinator.replies import FetchedTopic, NotFetched, OffsetsFetched, Refused, Reply
from kohort.node.broker import Broker
from kohort.node.offset_answers import OffsetAnswer
from kohort.node.request import Request
from kohort.node.topics import Topics
from kohort.types import ZERO_UUID, ErrorCode, Millis, maker
from kohort.wire.api.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kohort.wire.errors import UnencodableMessage

_MANY_GROUPS: Final = 8
_BY_ID: Final = 10
"""The version since which topics go by id."""

_make_command: Final = maker(FetchOffsets)
_make_asked: Final = maker(TopicPartitions)
"""A thousand groups may be asked about at once."""

_get_ticket: Final = attrgetter("ticket")


def handle(broker: Broker, request: Request, now: Millis) -> None:
    body: OffsetFetchRequest = request.body
    groups = body.groups if request.version >= _MANY_GROUPS else (_as_group(body),)
    replies: list[Reply] = []

    def deliver(reply: Reply) -> None:
        replies.append(reply)
        if len(replies) == len(groups):
            replies.sort(key=_get_ticket)  # tickets were issued in the order of the groups
            _answer(broker.topics, request, groups, replies)

    issue, is_stable = broker.groups.issue, body.require_stable
    fetches = []
    for asked in groups:
        topics = None if asked.topics is None else _known(broker.topics, asked.topics, request)
        fetches.append(_make_command(issue(deliver), asked.group_id, topics, is_stable))
    if fetches:
        broker.groups.submit(FetchManyOffsets(fetches=tuple(fetches)), now)
    else:
        _answer(broker.topics, request, groups, replies)


def _as_group(body: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    topics = None
    if body.topics is not None:
        topics = tuple(
            OffsetFetchRequestTopics(name=t.name, partition_indexes=t.partition_indexes)
            for t in body.topics
        )
    return OffsetFetchRequestGroup(group_id=body.group_id, topics=topics)


def _known(
    topics: Topics, asked: tuple[OffsetFetchRequestTopics, ...], request: Request
) -> tuple[TopicPartitions, ...]:
    """By name, a topic may be gone and its offsets still there; by id it cannot be asked for."""
    if request.version < _BY_ID:
        return tuple([_make_asked(t.name, t.partition_indexes, ZERO_UUID) for t in asked])
    named = ((topics.find_by_id(each.topic_id), each) for each in asked)
    return tuple(
        _make_asked(topic.name, each.partition_indexes, each.topic_id)
        for topic, each in named
        if topic is not None
    )


def _answer(
    topics: Topics,
    request: Request,
    groups: tuple[OffsetFetchRequestGroup, ...],
    replies: list[Reply],
) -> None:
    answer = OffsetAnswer(request.version)
    try:
        for asked, reply in zip(groups, replies, strict=True):
            if isinstance(reply, Refused):
                answer.add_group(asked.group_id, (), reply.error)
                continue
            assert isinstance(reply, OffsetsFetched), f"this answers no offset fetch: {reply}"
            found = reply.topics
            if request.version >= _BY_ID:
                found = _by_id(topics, asked, found)
            answer.add_group(asked.group_id, found)
        payload = answer.frame(request.header.correlation_id)
    except UnencodableMessage as error:
        request.hang_up(str(error))
        return
    request.error = answer.error
    request.answer_encoded(payload)


def _by_id(
    topics: Topics, asked: OffsetFetchRequestGroup, found: tuple[FetchedTopic, ...]
) -> tuple[FetchedTopic, ...]:
    """As found, with ids where all were asked for, and then whatever no topic has the id of."""
    if asked.topics is None:
        return tuple(
            FetchedTopic(
                topic=each.topic,
                topic_id=topics.id_of(each.topic) or ZERO_UUID,
                offsets=each.offsets,
            )
            for each in found
        )
    known = {each.topic_id for each in found}
    return found + tuple(_unknown(each) for each in asked.topics if each.topic_id not in known)


def _unknown(topic: OffsetFetchRequestTopics) -> FetchedTopic:
    return FetchedTopic(
        topic=topic.name,
        topic_id=topic.topic_id,
        offsets=tuple(
            NotFetched(partition=each, error=ErrorCode.UNKNOWN_TOPIC_ID)
            for each in topic.partition_indexes
        ),
    )
