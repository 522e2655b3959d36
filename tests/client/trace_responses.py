"""Builds broker responses from the words of a trace."""

import re
from typing import Any

from kohort.types import (
    BrokerId,
    ErrorCode,
    Generation,
    InstanceId,
    MemberId,
    Partition,
    Topic,
)
from kohort.wire.api import (
    k08_offset_commit,
    k09_offset_fetch,
    k10_find_coordinator,
    k11_join_group,
    k14_sync_group,
)
from tests.client.coordinator_bridge import commit_response, error_response
from tests.client.trace_line import TraceWords
from tests.client.trace_syntax import position, subscription
from tests.coordinator.trace_syntax import assignment

PORT = 9092


def response(body: Any, words: TraceWords) -> object:
    """The response to this request: the name of an error code, or its content."""
    first = words.bare[0] if words.bare else ""
    if first in ErrorCode.__members__:
        member_id = MemberId(words.option("member") or "")
        return error_response(body, ErrorCode[words.next()], member_id)
    match body:
        case k10_find_coordinator.FindCoordinatorRequest():
            return _found(body, words.next())
        case k11_join_group.JoinGroupRequest():
            return _joined(words)
        case k14_sync_group.SyncGroupRequest():
            return k14_sync_group.SyncGroupResponse(
                error_code=0,
                protocol_type=words.option("type"),
                protocol_name=words.option("protocol"),
                assignment=_assignment(words.next()),
            )
        case k08_offset_commit.OffsetCommitRequest():
            return _committed(body, words)
        case k09_offset_fetch.OffsetFetchRequest():
            return _fetched(body, words)
        case _:
            assert words.next() == "ok"
            return error_response(body, ErrorCode.NONE)


def _found(
    body: k10_find_coordinator.FindCoordinatorRequest, host: str
) -> k10_find_coordinator.FindCoordinatorResponse:
    """`b1` is broker 1."""
    named = k10_find_coordinator.Coordinator(
        key=body.coordinator_keys[0],
        node_id=BrokerId(int(host.removeprefix("b"))),
        host=host,
        port=PORT,
        error_code=0,
    )
    return k10_find_coordinator.FindCoordinatorResponse(coordinators=(named,))


def _joined(words: TraceWords) -> k11_join_group.JoinGroupResponse:
    """`gen=1 member=m1 leader=m1 m1[t1] m2/i2[t1+t1:0@1]`, and `skip` for skip_assignment."""
    skip = "skip" in words.bare
    members = [each for each in words.rest() if each != "skip"]
    member_id = MemberId(words.option("member") or "")
    return k11_join_group.JoinGroupResponse(
        error_code=0,
        generation_id=Generation(int(words.option("gen") or "-1")),
        protocol_type=words.option("type") or "consumer",
        protocol_name=words.option("protocol") or "range",
        leader=MemberId(words.option("leader") or member_id),
        skip_assignment=skip,
        member_id=member_id,
        members=tuple(_member(each) for each in members),
    )


def _member(text: str) -> k11_join_group.JoinGroupResponseMember:
    match = re.fullmatch(r"([\w-]+)(?:/([\w-]+))?\[(.*)\]", text)
    assert match is not None, f"{text!r} is not a member"
    return k11_join_group.JoinGroupResponseMember(
        member_id=MemberId(match[1]),
        group_instance_id=None if match[2] is None else InstanceId(match[2]),
        metadata=b"?" if match[3] == "garbage" else subscription(match[3]),
    )


def _assignment(text: str) -> bytes:
    """`t1:0,1`, `-` for an empty assignment, `left-out` for no assignment, or `garbage`."""
    unusual = {"-": assignment("t1:"), "left-out": b"", "garbage": b"?"}
    return unusual[text] if text in unusual else assignment(text)


def _committed(
    body: k08_offset_commit.OffsetCommitRequest, words: TraceWords
) -> k08_offset_commit.OffsetCommitResponse:
    """`ok`, failed partitions as in `t1:0=UNKNOWN_TOPIC_OR_PARTITION`, or `elsewhere`."""
    if words.bare == ["elsewhere"]:
        words.rest()
        return commit_response({(Topic("t9"), Partition(9)): ErrorCode.NONE})
    errors = {
        (topic.name, each.partition_index): ErrorCode.NONE
        for topic in body.topics
        for each in topic.partitions
    }
    for word in words.rest():
        if word != "ok":
            at, _, error = word.partition("=")
            topic, _, partition = at.partition(":")
            errors[Topic(topic), Partition(int(partition))] = ErrorCode[error]
    return commit_response(errors)


def _fetched(
    body: k09_offset_fetch.OffsetFetchRequest, words: TraceWords
) -> k09_offset_fetch.OffsetFetchResponse:
    """`t1:0=5 t1:1=-1 t2:0=UNSTABLE_OFFSET_COMMIT`"""
    (requested,) = body.groups
    topics: dict[Topic, list[k09_offset_fetch.OffsetFetchResponsePartitions]] = {}
    for word in words.rest():
        at, _, text = word.partition("=")
        error = ErrorCode[text] if text in ErrorCode.__members__ else ErrorCode.NONE
        where, found_ = position(word if error is ErrorCode.NONE else f"{at}=-1")
        topics.setdefault(where.topic, []).append(
            k09_offset_fetch.OffsetFetchResponsePartitions(
                partition_index=where.partition,
                committed_offset=found_.offset,
                committed_leader_epoch=found_.leader_epoch,
                metadata="",
                error_code=error,
            )
        )
    group = k09_offset_fetch.OffsetFetchResponseGroup(
        group_id=requested.group_id,
        topics=tuple(
            k09_offset_fetch.OffsetFetchResponseTopics(name=topic, partitions=tuple(found))
            for topic, found in topics.items()
        ),
        error_code=0,
    )
    return k09_offset_fetch.OffsetFetchResponse(groups=(group,))
