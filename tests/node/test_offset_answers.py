"""Answers to OffsetFetch, written straight, are those that the wire encodes from values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.coordinator.records import OffsetCommitted
from kohort.coordinator.replies import FetchedTopic, NotFetched
from kohort.log.limits import LEADER_EPOCH
from kohort.node.faults import FINDERS
from kohort.node.offset_answers import OffsetAnswer
from kohort.types import (
    ZERO_UUID,
    ErrorCode,
    GroupId,
    Millis,
    Offset,
    Partition,
    Topic,
    Uuid,
    value,
)
from kohort.wire.api.k09_offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kohort.wire.envelope import encode_response
from kohort.wire.errors import UnencodableMessage
from kohort.wire.schema import schema_of

VERSIONS = schema_of(OffsetFetchResponse).versions
LONGEST_OLD_STRING = 2**15 - 1


@value
class Group:
    group_id: GroupId
    topics: tuple[FetchedTopic, ...]
    error: ErrorCode = ErrorCode.NONE


def write(groups: tuple[Group, ...], version: int) -> tuple[bytes, int]:
    answer = OffsetAnswer(version)
    for group in groups:
        answer.add_group(group.group_id, group.topics, group.error)
    return answer.frame(7), answer.error


def encode(groups: tuple[Group, ...], version: int) -> tuple[bytes, int]:
    """The general way: values of the wire's own declarations."""
    response = _many(groups) if version >= 8 else _single(groups[0])
    return encode_response(response, version, 7), FINDERS[OffsetFetchResponse](response)


def _many(groups: tuple[Group, ...]) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        groups=tuple(
            OffsetFetchResponseGroup(
                group_id=group.group_id,
                topics=tuple(
                    OffsetFetchResponseTopics(
                        name=topic.topic,
                        topic_id=topic.topic_id,
                        partitions=tuple(_partition(each) for each in topic.offsets),
                    )
                    for topic in group.topics
                ),
                error_code=group.error,
            )
            for group in groups
        )
    )


def _single(group: Group) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        topics=tuple(
            OffsetFetchResponseTopic(
                name=topic.topic,
                partitions=tuple(_old_partition(_partition(each)) for each in topic.offsets),
            )
            for topic in group.topics
        ),
        error_code=group.error,
    )


def _partition(each: OffsetCommitted | NotFetched) -> OffsetFetchResponsePartitions:
    if isinstance(each, NotFetched):
        return OffsetFetchResponsePartitions(
            partition_index=each.partition,
            committed_offset=Offset(-1),
            metadata="",
            error_code=each.error,
        )
    is_known = each.leader_epoch <= LEADER_EPOCH
    return OffsetFetchResponsePartitions(
        partition_index=each.partition,
        committed_offset=each.offset,
        committed_leader_epoch=each.leader_epoch if is_known else -1,
        metadata=each.metadata,
    )


def _old_partition(each: OffsetFetchResponsePartitions) -> OffsetFetchResponsePartition:
    return OffsetFetchResponsePartition(
        partition_index=each.partition_index,
        committed_offset=each.committed_offset,
        committed_leader_epoch=each.committed_leader_epoch,
        metadata=each.metadata,
        error_code=each.error_code,
    )


def kept(
    partition: int = 0, offset: int = 5, epoch: int = -1, metadata: str = ""
) -> OffsetCommitted:
    return OffsetCommitted(
        group_id=GroupId("g"),
        topic=Topic("t"),
        partition=Partition(partition),
        offset=Offset(offset),
        leader_epoch=epoch,
        metadata=metadata,
        commit_ms=Millis(1),
    )


def of_topic(*offsets: OffsetCommitted | NotFetched, topic: str = "t") -> FetchedTopic:
    return FetchedTopic(topic=Topic(topic), topic_id=ZERO_UUID, offsets=offsets)


int32s = st.integers(-(2**31), 2**31 - 1)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
long_texts = st.sampled_from(
    ["", "m" * 126, "m" * 127, "m" * 128, "\N{SNOWMAN}" * 5461, "m" * 20_000]
)
errors = st.sampled_from(
    [ErrorCode.NONE, ErrorCode.UNSTABLE_OFFSET_COMMIT, ErrorCode.UNKNOWN_TOPIC_ID]
)
missing = st.builds(NotFetched, partition=int32s.map(Partition), error=errors)
committed = st.builds(
    kept,
    partition=int32s,
    offset=st.integers(-(2**63), 2**63 - 1),
    epoch=st.integers(-2, 2) | int32s,
    metadata=texts | long_texts,
)
topics = st.builds(
    FetchedTopic,
    topic=(texts | long_texts).map(Topic),
    topic_id=st.binary(min_size=16, max_size=16).map(Uuid),
    offsets=st.lists(committed | missing, max_size=4).map(tuple),
)
groups = st.builds(
    Group,
    group_id=(texts | long_texts).map(GroupId),
    topics=st.lists(topics, max_size=3).map(tuple),
    error=errors | st.just(ErrorCode.NOT_COORDINATOR),
)


@given(st.lists(groups, min_size=1, max_size=3).map(tuple), st.sampled_from(VERSIONS))
def test_an_answer_is_what_the_wire_encodes(told: tuple[Group, ...], version: int) -> None:
    asked = told if version >= 8 else told[:1]

    assert write(asked, version) == encode(asked, version)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("count", [0, 1, 126, 127, 128, 1024])
def test_many_are_counted_as_the_wire_counts(count: int, version: int) -> None:
    offsets = of_topic(*(kept(partition=each) for each in range(count)))
    names = (of_topic(topic=f"t{each}") for each in range(count))
    told = (Group(group_id=GroupId("g"), topics=(offsets, *names)),)

    assert write(told, version) == encode(told, version)


@pytest.mark.parametrize("version", [each for each in VERSIONS if each >= 8])
@pytest.mark.parametrize("count", [0, 127, 128, 1024])
def test_many_groups_are_counted_as_the_wire_counts(count: int, version: int) -> None:
    told = tuple(Group(group_id=GroupId(f"g{each}"), topics=()) for each in range(count))

    assert write(told, version) == encode(told, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_too_long_for_a_version_is_refused(version: int) -> None:
    longest = kept(metadata="m" * LONGEST_OLD_STRING)
    longer = kept(metadata="m" * (LONGEST_OLD_STRING + 1))
    fitting = (Group(group_id=GroupId("g"), topics=(of_topic(longest),)),)
    told = (Group(group_id=GroupId("g"), topics=(of_topic(longer),)),)

    assert write(fitting, version) == encode(fitting, version)
    if version >= 6:
        assert write(told, version) == encode(told, version)
        return
    for way in (write, encode):
        with pytest.raises(UnencodableMessage, match="metadata"):
            way(told, version)
