"""CommitFrame recognises frames that differ only in numbers, and no others."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kohort.node.repeated_commits import CommitFrame
from kohort.wire.api.k08_offset_commit import OffsetCommitRequest
from kohort.wire.envelope import decode_request, encode_request
from tests.wire.strategies import values

int64s = st.integers(-(2**63), 2**63 - 1)
int32s = st.integers(-(2**31), 2**31 - 1)


def renumbered(body: Any, numbers: list[tuple[int, int]]) -> Any:
    """The same commit with other offsets and epochs, in turn."""
    source = iter(numbers)
    topics = []
    for topic in body.topics:
        partitions = []
        for partition in topic.partitions:
            offset, epoch = next(source)
            changed = {"committed_offset": offset, "committed_leader_epoch": epoch}
            partitions.append(replace(partition, **changed))
        topics.append(replace(topic, partitions=tuple(partitions)))
    return replace(body, topics=tuple(topics))


def count(body: OffsetCommitRequest) -> int:
    return sum(len(topic.partitions) for topic in body.topics)


def frame_of(body: OffsetCommitRequest, version: int, number: int = 0) -> bytes:
    return encode_request(body, version, number, "client")[4:]


def frame_template_of(body: OffsetCommitRequest, version: int) -> CommitFrame:
    low = frame_of(renumbered(body, [(0, 0)] * count(body)), version)
    high = frame_of(renumbered(body, [(-1, -1)] * count(body)), version)
    return CommitFrame(low, high, "qi" if version >= 6 else "q")


@st.composite
def bodies(draw: st.DrawFn) -> tuple[int, OffsetCommitRequest]:
    version = draw(st.integers(2, 10))
    return version, draw(values(OffsetCommitRequest, version))


@given(bodies(), st.data())
def test_numbers_equal_those_of_the_decoder(
    case: tuple[int, OffsetCommitRequest], data: st.DataObject
) -> None:
    version, body = case
    frame_template = frame_template_of(body, version)
    epochs = int32s if version >= 6 else st.just(-1)
    pairs = data.draw(
        st.lists(st.tuples(int64s, epochs), min_size=count(body), max_size=count(body))
    )
    frame = frame_of(renumbered(body, pairs), version, data.draw(int32s))

    numbers = frame_template.find_numbers(frame)

    decoded = [each for topic in decode_request(frame)[1].topics for each in topic.partitions]
    assert numbers is not None
    if version >= 6:
        found = [*zip(numbers[::2], numbers[1::2], strict=True)]
    else:
        found = [(number, -1) for number in numbers]
    assert found == [(each.committed_offset, each.committed_leader_epoch) for each in decoded]


@given(bodies(), st.data())
def test_frame_with_another_difference_is_not_recognised(
    case: tuple[int, OffsetCommitRequest], data: st.DataObject
) -> None:
    version, body = case
    frame_template = frame_template_of(body, version)
    low = frame_of(renumbered(body, [(0, 0)] * count(body)), version)
    high = frame_of(renumbered(body, [(-1, -1)] * count(body)), version, -1)
    fixed = [at for at, (one, other) in enumerate(zip(low, high, strict=True)) if one == other]
    at = data.draw(st.sampled_from(fixed))
    changed = bytearray(low)
    changed[at] ^= data.draw(st.integers(1, 255))

    assert frame_template.find_numbers(low) is not None
    assert frame_template.find_numbers(bytes(changed)) is None


@given(bodies(), st.binary(min_size=1, max_size=8))
def test_frame_of_another_length_is_not_recognised(
    case: tuple[int, OffsetCommitRequest], more: bytes
) -> None:
    version, body = case
    frame_template = frame_template_of(body, version)
    frame = frame_of(body, version)

    assert frame_template.find_numbers(frame + more) is None
    assert frame_template.find_numbers(frame[:-1]) is None
    assert frame_template.find_numbers(bytes(len(more)) + frame) is None
