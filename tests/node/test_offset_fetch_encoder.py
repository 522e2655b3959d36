"""FastOffsetFetchEncoder writes the same bytes as the plain encoder."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.coordinator.records import OffsetCommitted
from kohort.coordinator.replies import FetchedTopic, NotFetched
from kohort.log.limits import LEADER_EPOCH
from kohort.node.offset_fetch_encoder import (
    OffsetFetchEncoder,
    PlainOffsetFetchEncoder,
    new_offset_fetch_encoder,
)
from kohort.node.request import EncodedResponse
from kohort.node.response_errors import ERROR_FINDERS
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
)
from kohort.wire.envelope import decode_response, encode_response
from kohort.wire.errors import UnencodableMessage
from kohort.wire.schema import schema_of

VERSIONS = schema_of(OffsetFetchResponse).versions
LONGEST_OLD_STRING = 2**15 - 1


@value
class Group:
    group_id: GroupId
    topics: tuple[FetchedTopic, ...]
    error: ErrorCode = ErrorCode.NONE


def answered(
    answer: OffsetFetchEncoder, groups: tuple[Group, ...], version: int
) -> tuple[bytes, int]:
    for group in groups:
        for _ in answer.add_group(group.group_id, group.topics, group.error):
            pass
    response = answer.finish(7)
    if isinstance(response, EncodedResponse):
        return response.payload, response.error
    return encode_response(response, version, 7), ERROR_FINDERS[type(response)](response)


def write(groups: tuple[Group, ...], version: int) -> tuple[bytes, int]:
    """As the handler does: by the fast path since version 8."""
    return answered(new_offset_fetch_encoder(version), groups, version)


def encode(groups: tuple[Group, ...], version: int) -> tuple[bytes, int]:
    """The plain path: messages that the wire encodes."""
    return answered(PlainOffsetFetchEncoder(version), groups, version)


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
def test_fast_encoder_writes_the_bytes_of_the_plain_encoder(
    returned: tuple[Group, ...], version: int
) -> None:
    asked = returned if version >= 8 else returned[:1]

    assert write(asked, version) == encode(asked, version)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("count", [0, 1, 126, 127, 128, 1024])
def test_long_arrays_have_the_same_length_prefix(count: int, version: int) -> None:
    offsets = of_topic(*(kept(partition=each) for each in range(count)))
    names = (of_topic(topic=f"t{each}") for each in range(count))
    returned = (Group(group_id=GroupId("g"), topics=(offsets, *names)),)

    assert write(returned, version) == encode(returned, version)


@pytest.mark.parametrize("version", [each for each in VERSIONS if each >= 8])
@pytest.mark.parametrize("count", [0, 127, 128, 1024])
def test_many_groups_have_the_same_length_prefix(count: int, version: int) -> None:
    returned = tuple(Group(group_id=GroupId(f"g{each}"), topics=()) for each in range(count))

    assert write(returned, version) == encode(returned, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_metadata_too_long_for_a_version_is_refused(version: int) -> None:
    longest = kept(metadata="m" * LONGEST_OLD_STRING)
    longer = kept(metadata="m" * (LONGEST_OLD_STRING + 1))
    fitting = (Group(group_id=GroupId("g"), topics=(of_topic(longest),)),)
    returned = (Group(group_id=GroupId("g"), topics=(of_topic(longer),)),)

    assert write(fitting, version) == encode(fitting, version)
    if version >= 6:
        assert write(returned, version) == encode(returned, version)
        return
    for way in (write, encode):
        with pytest.raises(UnencodableMessage, match="metadata"):
            way(returned, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_has_offset_epoch_metadata_and_error(version: int) -> None:
    """An epoch that no leader here has had is not returned."""
    offsets = of_topic(
        kept(partition=1, offset=5, epoch=LEADER_EPOCH, metadata="m"),
        kept(partition=2, offset=6, epoch=LEADER_EPOCH + 1),
        NotFetched(Partition(3), ErrorCode.UNSTABLE_OFFSET_COMMIT),
    )
    payload, error = write((Group(group_id=GroupId("g"), topics=(offsets,)),), version)

    _, response = decode_response(payload[4:], 9, version)

    assert error == ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert isinstance(response, OffsetFetchResponse)
    (topic,) = response.groups[0].topics if version >= 8 else response.topics
    epoch = LEADER_EPOCH if version >= 5 else -1
    assert [
        (
            each.partition_index,
            each.committed_offset,
            each.committed_leader_epoch,
            each.metadata,
            each.error_code,
        )
        for each in topic.partitions
    ] == [(1, 5, epoch, "m", 0), (2, 6, -1, "", 0), (3, -1, -1, "", error)]
