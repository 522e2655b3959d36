"""OffsetFetch: one group before version 8, many since; each group is one command."""

from dataclasses import dataclass
from typing import Final

from kohort.coordinator.commands import FetchManyOffsets, FetchOffsets, RequestedTopic
from kohort.coordinator.replies import (
    FetchedTopic,
    NotFetched,
    OffsetsFetched,
    Reply,
    RequestRefused,
)
from kohort.node.broker import Broker
from kohort.node.offset_fetch_encoder import new_offset_fetch_encoder
from kohort.node.request import PARKED, Disconnect, ParkedForMany, Request, SlicedWork
from kohort.node.topics import Topics
from kohort.types import ZERO_UUID, ErrorCode, GroupId, Millis
from kohort.wire.api.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from kohort.wire.errors import UnencodableMessage

_MANY_GROUPS: Final = 8
_BY_ID: Final = 10
"""The first version with topic ids instead of names."""

_ITEMS_PER_SLICE: Final = 500
"""Groups, topics and partitions that are fetched between two yields."""

_Key = GroupId | int
"""The group whose offsets are all requested, or the position of another group in the request. All
offsets of a group are fetched once, although a request may name it many times."""


@dataclass(frozen=True, slots=True)
class _Context:
    topics: Topics
    groups: tuple[OffsetFetchRequestGroup, ...]
    keys: list[_Key]


def handle(broker: Broker, request: Request, now: Millis) -> SlicedWork:
    body: OffsetFetchRequest = request.body
    groups = body.groups if request.version >= _MANY_GROUPS else (_as_group(body),)
    if not groups:
        return OffsetFetchResponse()
    keys: list[_Key] = [
        each.group_id if each.topics is None else index for index, each in enumerate(groups)
    ]
    request.context = _Context(broker.topics, groups, keys)
    distinct = dict(zip(keys, groups, strict=True))
    waiter = ParkedForMany(request, _respond, len(distinct))
    open_ticket, is_stable = broker.groups.open, body.require_stable
    fetches: list[FetchOffsets] = []
    left = _ITEMS_PER_SLICE
    for requested in distinct.values():
        if left <= 0:
            broker.groups.submit(FetchManyOffsets(fetches=tuple(fetches)), now)
            fetches, left = [], _ITEMS_PER_SLICE
            now = yield
        topics = requested.topics
        known = None if topics is None else _known(broker.topics, topics, request)
        fetches.append(FetchOffsets(open_ticket(waiter), requested.group_id, known, is_stable))
        left -= 1
        if topics:
            left -= sum(1 + len(each.partition_indexes) for each in topics)
    broker.groups.submit(FetchManyOffsets(fetches=tuple(fetches)), now)
    return PARKED


def _as_group(body: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    topics = None
    if body.topics is not None:
        topics = tuple(
            OffsetFetchRequestTopics(name=t.name, partition_indexes=t.partition_indexes)
            for t in body.topics
        )
    return OffsetFetchRequestGroup(group_id=body.group_id, topics=topics)


def _known(
    topics: Topics, requested: tuple[OffsetFetchRequestTopics, ...], request: Request
) -> tuple[RequestedTopic, ...]:
    """By name, the offsets of a deleted topic can be fetched; by id, they cannot."""
    if request.version < _BY_ID:
        return tuple([RequestedTopic(t.name, t.partition_indexes, ZERO_UUID) for t in requested])
    named = ((topics.find_by_id(each.topic_id), each) for each in requested)
    return tuple(
        RequestedTopic(topic.name, each.partition_indexes, each.topic_id)
        for topic, each in named
        if topic is not None
    )


def _respond(request: Request, replies: list[Reply]) -> SlicedWork:
    context: _Context = request.context
    answer = new_offset_fetch_encoder(request.version)
    by_key = dict(zip(dict.fromkeys(context.keys), replies, strict=True))
    try:
        for key, requested in zip(context.keys, context.groups, strict=True):
            reply = by_key[key]
            if isinstance(reply, RequestRefused):
                yield from answer.add_group(requested.group_id, (), reply.error)
                continue
            assert isinstance(reply, OffsetsFetched), (
                f"unexpected reply to an offset fetch: {reply}"
            )
            found = reply.topics
            if request.version >= _BY_ID:
                found = _by_id(context.topics, requested, found)
            yield from answer.add_group(requested.group_id, found)
        return answer.finish(request.header.correlation_id)
    except UnencodableMessage as error:
        return Disconnect(str(error))


def _by_id(
    topics: Topics, requested: OffsetFetchRequestGroup, found: tuple[FetchedTopic, ...]
) -> tuple[FetchedTopic, ...]:
    """Add topic ids if all topics were requested, and errors for ids that no topic has."""
    if requested.topics is None:
        return tuple(
            FetchedTopic(
                topic=each.topic,
                topic_id=topics.id_of(each.topic) or ZERO_UUID,
                offsets=each.offsets,
            )
            for each in found
        )
    known = {each.topic_id for each in found}
    return found + tuple(_unknown(each) for each in requested.topics if each.topic_id not in known)


def _unknown(topic: OffsetFetchRequestTopics) -> FetchedTopic:
    return FetchedTopic(
        topic=topic.name,
        topic_id=topic.topic_id,
        offsets=tuple(
            NotFetched(partition=each, error=ErrorCode.UNKNOWN_TOPIC_ID)
            for each in topic.partition_indexes
        ),
    )
