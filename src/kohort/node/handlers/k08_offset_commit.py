"""OffsetCommit: refuses unknown topics; the coordinator handles the others."""

from collections.abc import Iterator
from itertools import repeat
from typing import Final

from kohort.coordinator.commands import CommitOffsets, OffsetToCommit, Ticket
from kohort.coordinator.replies import CommitAnswered, Reply, RequestRefused
from kohort.node.broker import Broker
from kohort.node.repeated_commits import FirstCommit, RepeatedCommit, RepeatedCommits
from kohort.node.request import (
    PARKED,
    PreparedResponse,
    Request,
    RequestTemplate,
    Respond,
    SlicedWork,
)
from kohort.node.topics import ResolvedTopic
from kohort.types import ErrorCode, Millis
from kohort.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

_LARGE: Final = 500
"""A commit of more topics and partitions is handled in slices of this size."""

_RECORD_BYTES_MIN: Final = 41
"""A record of a committed offset, without the names of its group and topic."""


def handle(broker: Broker, request: Request, now: Millis) -> object:
    if isinstance(request.body, RepeatedCommit):
        return _handle_repeated(broker, request, request.body, now)
    body: OffsetCommitRequest = request.body
    if sum(len(topic.partitions) for topic in body.topics) + len(body.topics) > _LARGE:
        return _handle_large(broker, request, now)
    resolved = [
        broker.topics.resolve(t.name, t.topic_id, by_id=request.version >= 10) for t in body.topics
    ]
    offsets = tuple(_offsets(body, resolved))
    if not offsets:
        return _response(body, resolved, None)
    command = _command(broker, request, resolved, offsets, _respond)
    request.template = _learn(broker, request, resolved, command)
    broker.groups.submit(command, now)
    return PARKED


def _command(
    broker: Broker,
    request: Request,
    resolved: list[ResolvedTopic],
    offsets: tuple[OffsetToCommit, ...],
    respond: Respond[Reply],
) -> CommitOffsets:
    body: OffsetCommitRequest = request.body
    request.context = resolved
    return CommitOffsets(
        ticket=broker.park(request, respond),
        group_id=body.group_id,
        member_id=body.member_id,
        instance_id=body.group_instance_id,
        generation=body.generation_id_or_member_epoch,
        offsets=offsets,
        retention_ms=None if body.retention_time_ms < 0 else body.retention_time_ms,
        knows_missing_group=request.version >= 9,
    )


def _handle_large(broker: Broker, request: Request, now: Millis) -> SlicedWork:
    body: OffsetCommitRequest = request.body
    resolved: list[ResolvedTopic] = []
    for topic in body.topics:
        resolved.append(
            broker.topics.resolve(topic.name, topic.topic_id, by_id=request.version >= 10)
        )
        if not len(resolved) % _LARGE:
            yield
    offsets: list[OffsetToCommit] = []
    for index, offset in enumerate(_find_offsets(body, resolved), 1):
        if offset is not None:
            offsets.append(offset)
        if not index % _LARGE:
            now = yield
    if not offsets:
        return (yield from _response_in_slices(body, resolved, None))
    if _is_too_large(broker, body, offsets):
        refusal = RequestRefused(Ticket(0), ErrorCode.INVALID_COMMIT_OFFSET_SIZE)
        return (yield from _response_in_slices(body, resolved, refusal))
    command = _command(broker, request, resolved, tuple(offsets), _respond_in_slices)
    broker.groups.submit(command, now)
    return PARKED


def _is_too_large(broker: Broker, body: OffsetCommitRequest, offsets: list[OffsetToCommit]) -> bool:
    """Whether the offsets certainly exceed the largest batch. Kafka refuses them after it has made
    the batch, which takes long."""
    log = broker.topics.offsets_partitions()[0]
    each = _RECORD_BYTES_MIN + len(body.group_id)
    size = each * len(offsets) + sum(len(offset.topic) for offset in offsets)
    return size > log.settings.max_message_bytes


def _respond_in_slices(request: Request, reply: Reply) -> SlicedWork:
    return _response_in_slices(request.body, request.context, reply)


def _respond(request: Request, reply: Reply) -> OffsetCommitResponse:
    return _response(request.body, request.context, reply)


def _handle_repeated(broker: Broker, request: Request, body: RepeatedCommit, now: Millis) -> object:
    """The fast path: only the offsets are new."""
    template = body.template
    first = template.command
    command = CommitOffsets(
        broker.park(request, _respond_to_repeated),
        first.group_id,
        template.offsets(body.numbers),
        first.member_id,
        first.instance_id,
        first.generation,
        first.retention_ms,
        first.knows_missing_group,
    )
    broker.groups.submit(command, now)
    return PARKED


def _respond_to_repeated(request: Request, reply: Reply) -> OffsetCommitResponse | PreparedResponse:
    body: RepeatedCommit = request.body
    template = body.template
    return template.find_response(reply) or _response(template.body, template.resolved, reply)


def _learn(
    broker: Broker, request: Request, resolved: list[ResolvedTopic], command: CommitOffsets
) -> RequestTemplate:
    """Make the template that recognises the next commits, after two commits of a kind."""
    body: OffsetCommitRequest = request.body
    before = request.template
    if isinstance(before, RepeatedCommits) and before.is_worth_keeping():
        return before
    is_whole = len(command.offsets) == sum(len(topic.partitions) for topic in body.topics)
    if is_whole and isinstance(before, FirstCommit) and before.is_like(request.header, body):
        none = (ErrorCode.NONE,) * len(command.offsets)
        success = CommitAnswered(command.ticket, command.offsets, none)
        return RepeatedCommits(
            request, resolved, command, _response(body, resolved, success), broker.topics
        )
    return FirstCommit(request)


def _offsets(body: OffsetCommitRequest, resolved: list[ResolvedTopic]) -> Iterator[OffsetToCommit]:
    return (each for each in _find_offsets(body, resolved) if each is not None)


def _find_offsets(
    body: OffsetCommitRequest, resolved: list[ResolvedTopic]
) -> Iterator[OffsetToCommit | None]:
    """None for a partition that does not exist."""
    for requested, topic in zip(body.topics, resolved, strict=True):
        for partition in requested.partitions:
            if topic.find_error(partition.partition_index) is not None:
                yield None
            else:
                yield OffsetToCommit(
                    topic=topic.name,
                    partition=partition.partition_index,
                    offset=partition.committed_offset,
                    leader_epoch=partition.committed_leader_epoch,
                    metadata=partition.committed_metadata,
                    topic_id=requested.topic_id,
                )


def _response(
    body: OffsetCommitRequest, resolved: list[ResolvedTopic], reply: Reply | None
) -> OffsetCommitResponse:
    """Without a reply, no partition of the request exists."""
    # DEVIATION: Kafka merges a topic that appears twice, if some of its partitions are refused.
    errors = _errors(reply)
    return OffsetCommitResponse(
        topics=tuple(
            _response_topic(requested, topic, errors)
            for requested, topic in zip(body.topics, resolved, strict=True)
        )
    )


def _response_in_slices(
    body: OffsetCommitRequest, resolved: list[ResolvedTopic], reply: Reply | None
) -> SlicedWork:
    errors = _errors(reply)
    topics = []
    for requested, topic in zip(body.topics, resolved, strict=True):
        partitions: list[OffsetCommitResponsePartition] = []
        for each in _response_partitions(requested, topic, errors):
            partitions.append(each)
            if not len(partitions) % _LARGE:
                yield
        topics.append(
            OffsetCommitResponseTopic(
                name=requested.name, topic_id=requested.topic_id, partitions=tuple(partitions)
            )
        )
        if not len(topics) % _LARGE:
            yield
    return OffsetCommitResponse(topics=tuple(topics))


def _errors(reply: Reply | None) -> Iterator[ErrorCode]:
    match reply:
        case RequestRefused():
            return repeat(reply.error)
        case CommitAnswered():
            return iter(reply.errors)
        case None:
            return iter(())
        case _:
            raise AssertionError(f"unexpected reply to commit: {reply}")


def _response_topic(
    requested: OffsetCommitRequestTopic, topic: ResolvedTopic, errors: Iterator[ErrorCode]
) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=requested.name,
        topic_id=requested.topic_id,
        partitions=tuple(_response_partitions(requested, topic, errors)),
    )


def _response_partitions(
    requested: OffsetCommitRequestTopic, topic: ResolvedTopic, errors: Iterator[ErrorCode]
) -> Iterator[OffsetCommitResponsePartition]:
    for partition in requested.partitions:
        error = topic.find_error(partition.partition_index)
        yield OffsetCommitResponsePartition(
            partition_index=partition.partition_index,
            error_code=next(errors) if error is None else error,
        )
