"""OffsetCommit: topics that do not exist are answered here, the rest goes to the coordinator."""

from collections.abc import Iterator
from typing import Final

from kohort.coordinator.commands import CommitOffsets, OffsetToCommit
from kohort.coordinator.replies import CommitAnswered, Refused, Reply
from kohort.node.broker import Broker
from kohort.node.recommits import Commits, Once, Recommit
from kohort.node.request import Known, Request
from kohort.node.topics import Named
from kohort.types import ErrorCode, Millis, maker
from kohort.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

_make_commit: Final = maker(CommitOffsets)


def handle(broker: Broker, request: Request, now: Millis) -> None:
    if isinstance(request.body, Recommit):
        _handle_again(broker, request, request.body, now)
        return
    body: OffsetCommitRequest = request.body
    named = [
        broker.topics.name(t.name, t.topic_id, by_id=request.version >= 10) for t in body.topics
    ]
    offsets = tuple(_offsets(body, named))
    if not offsets:
        request.answer(_respond(body, named, iter(())))
        return

    def deliver(reply: Reply) -> None:
        request.answer(_respond(body, named, _errors(reply, len(offsets))))

    command = CommitOffsets(
        ticket=broker.groups.issue(deliver),
        group_id=body.group_id,
        member_id=body.member_id,
        instance_id=body.group_instance_id,
        generation=body.generation_id_or_member_epoch,
        offsets=offsets,
        retention_ms=None if body.retention_time_ms < 0 else body.retention_time_ms,
        knows_missing_group=request.version >= 9,
    )
    request.known = _learn(broker, request, named, command)
    broker.groups.submit(command, now)


def _handle_again(broker: Broker, request: Request, body: Recommit, now: Millis) -> None:
    """As above, for a commit of which all but the offsets is known."""
    known = body.known
    first = known.command

    def deliver(reply: Reply) -> None:
        ready = known.find_answer(reply)
        if ready is not None:
            request.answer_ready(ready)
        else:
            errors = _errors(reply, len(first.offsets))
            request.answer(_respond(known.body, known.named, errors))

    command = _make_commit(
        broker.groups.issue(deliver),
        first.group_id,
        first.member_id,
        first.instance_id,
        first.generation,
        known.offsets(body.numbers),
        first.retention_ms,
        first.knows_missing_group,
    )
    broker.groups.submit(command, now)


def _learn(broker: Broker, request: Request, named: list[Named], command: CommitOffsets) -> Known:
    """What this commit teaches about those to come: the second of a kind tells what they share."""
    body: OffsetCommitRequest = request.body
    before = request.known
    if isinstance(before, Commits) and before.is_worth_keeping():
        return before
    is_whole = len(command.offsets) == sum(len(topic.partitions) for topic in body.topics)
    if is_whole and isinstance(before, Once) and before.is_like(request.header, body):
        answer = _respond(body, named, iter([ErrorCode.NONE] * len(command.offsets)))
        return Commits(request, named, command, answer, broker.topics)
    return Once(request)


def _offsets(body: OffsetCommitRequest, named: list[Named]) -> Iterator[OffsetToCommit]:
    for asked, topic in zip(body.topics, named, strict=True):
        for partition in asked.partitions:
            if topic.find_fault(partition.partition_index) is None:
                yield OffsetToCommit(
                    topic=topic.name,
                    partition=partition.partition_index,
                    offset=partition.committed_offset,
                    leader_epoch=partition.committed_leader_epoch,
                    metadata=partition.committed_metadata,
                    topic_id=asked.topic_id,
                )


def _errors(reply: Reply, count: int) -> Iterator[ErrorCode]:
    match reply:
        case Refused():
            return iter([reply.error] * count)
        case CommitAnswered():
            return iter(reply.errors)
        case _:
            raise AssertionError(f"a commit cannot be answered with {reply}")


def _respond(
    body: OffsetCommitRequest, named: list[Named], errors: Iterator[ErrorCode]
) -> OffsetCommitResponse:
    # DEVIATION: Kafka answers once for a topic that is named twice, if some of it is refused.
    return OffsetCommitResponse(
        topics=tuple(
            _respond_topic(asked, topic, errors)
            for asked, topic in zip(body.topics, named, strict=True)
        )
    )


def _respond_topic(
    asked: OffsetCommitRequestTopic, topic: Named, errors: Iterator[ErrorCode]
) -> OffsetCommitResponseTopic:
    partitions = []
    for partition in asked.partitions:
        fault = topic.find_fault(partition.partition_index)
        partitions.append(
            OffsetCommitResponsePartition(
                partition_index=partition.partition_index,
                error_code=next(errors) if fault is None else fault,
            )
        )
    return OffsetCommitResponseTopic(
        name=asked.name, topic_id=asked.topic_id, partitions=tuple(partitions)
    )
