"""OffsetCommit: refuses unknown topics; the coordinator handles the others."""

from collections.abc import Iterator
from itertools import repeat

from kohort.coordinator.commands import CommitOffsets, OffsetToCommit
from kohort.coordinator.replies import CommitAnswered, Reply, RequestRefused
from kohort.node.broker import Broker
from kohort.node.repeated_commits import FirstCommit, RepeatedCommit, RepeatedCommits
from kohort.node.request import PARKED, PreparedResponse, Request, RequestTemplate
from kohort.node.topics import ResolvedTopic
from kohort.types import ErrorCode, Millis
from kohort.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)


def handle(broker: Broker, request: Request, now: Millis) -> object:
    if isinstance(request.body, RepeatedCommit):
        return _handle_repeated(broker, request, request.body, now)
    body: OffsetCommitRequest = request.body
    resolved = [
        broker.topics.resolve(t.name, t.topic_id, by_id=request.version >= 10) for t in body.topics
    ]
    offsets = tuple(_offsets(body, resolved))
    if not offsets:
        return _response(body, resolved, None)
    request.context = resolved
    command = CommitOffsets(
        ticket=broker.park(request, _respond),
        group_id=body.group_id,
        member_id=body.member_id,
        instance_id=body.group_instance_id,
        generation=body.generation_id_or_member_epoch,
        offsets=offsets,
        retention_ms=None if body.retention_time_ms < 0 else body.retention_time_ms,
        knows_missing_group=request.version >= 9,
    )
    request.template = _learn(broker, request, resolved, command)
    broker.groups.submit(command, now)
    return PARKED


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
    for requested, topic in zip(body.topics, resolved, strict=True):
        for partition in requested.partitions:
            if topic.find_error(partition.partition_index) is None:
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
    match reply:
        case RequestRefused():
            errors: Iterator[ErrorCode] = repeat(reply.error)
        case CommitAnswered():
            errors = iter(reply.errors)
        case None:
            errors = iter(())
        case _:
            raise AssertionError(f"unexpected reply to commit: {reply}")
    return OffsetCommitResponse(
        topics=tuple(
            _response_topic(requested, topic, errors)
            for requested, topic in zip(body.topics, resolved, strict=True)
        )
    )


def _response_topic(
    requested: OffsetCommitRequestTopic, topic: ResolvedTopic, errors: Iterator[ErrorCode]
) -> OffsetCommitResponseTopic:
    partitions = []
    for partition in requested.partitions:
        error = topic.find_error(partition.partition_index)
        partitions.append(
            OffsetCommitResponsePartition(
                partition_index=partition.partition_index,
                error_code=next(errors) if error is None else error,
            )
        )
    return OffsetCommitResponseTopic(
        name=requested.name, topic_id=requested.topic_id, partitions=tuple(partitions)
    )
