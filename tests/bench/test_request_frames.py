"""Prebuilt request frames decode to the intended requests; only the generation field varies."""

from collections.abc import Callable
from typing import Any

import pytest

from bench.kit import request_frames
from kohort.types import ErrorCode, Generation, MemberId
from kohort.wire.api.k11_join_group import JoinGroupResponse
from kohort.wire.api.k12_heartbeat import HeartbeatResponse
from kohort.wire.api.k14_sync_group import SyncGroupResponse
from kohort.wire.consumer_protocol import decode_subscription
from kohort.wire.envelope import decode_request, encode_response


def read(frame: bytes | bytearray) -> tuple[Any, Any]:
    assert request_frames.INT32.unpack_from(frame)[0] == len(frame) - 4
    return decode_request(bytes(frame[4:]))


def test_a_join_frame_contains_a_subscription() -> None:
    frame = request_frames.join("group", "member", request_frames.subscription("orders", "returns"))

    header, body = read(frame)
    assert header.request_api_key == request_frames.JOIN_KEY
    assert (body.group_id, body.member_id) == ("group", "member")
    assert decode_subscription(body.protocols[0].metadata).topics == ("orders", "returns")


def test_a_sync_frame_contains_the_assignments() -> None:
    assignments = {"one": b"1", "two": b"2"}

    _, body = read(request_frames.sync("group", "one", 3, assignments))

    assert {each.member_id: each.assignment for each in body.assignments} == assignments


def test_a_commit_frame_names_every_partition_once() -> None:
    frame = request_frames.commit("group", "member", 3, topic="orders", partitions=4, offset=99)

    (topic,) = read(frame)[1].topics
    assert [each.partition_index for each in topic.partitions] == [0, 1, 2, 3]
    assert {each.committed_offset for each in topic.partitions} == {99}


def test_offsets_of_many_groups_are_fetched_with_one_request() -> None:
    _, body = read(request_frames.fetch_offsets(["a", "b"]))

    assert [(each.group_id, each.topics) for each in body.groups] == [("a", None), ("b", None)]


@pytest.mark.parametrize(
    "build",
    [
        lambda generation: request_frames.heartbeat("group", "member", generation),
        lambda generation: request_frames.sync("group", "member", generation, {}),
        lambda generation: request_frames.sync("group", "member", generation, {"member": b"all"}),
    ],
)
def test_a_frame_template_accepts_any_generation(build: Callable[[int], bytes]) -> None:
    template = request_frames.Form(build)

    for generation in (0, 1, 2**31 - 1):
        assert template.fill(generation) == build(generation)


def test_the_template_value_must_occur_exactly_once() -> None:
    packed = request_frames.INT32.pack(7)

    assert request_frames.find_number(b"--" + packed, 7) == 2
    for frame in (b"nothing", packed + packed):
        with pytest.raises(ValueError, match="exactly once"):
            request_frames.find_number(frame, 7)


@pytest.mark.parametrize(
    ("body", "version"),
    [
        (
            JoinGroupResponse(
                error_code=27, protocol_name="", leader=MemberId("l"), member_id=MemberId("m")
            ),
            request_frames.JOIN_VERSION,
        ),
        (SyncGroupResponse(error_code=27, assignment=b""), request_frames.SYNC_VERSION),
        (HeartbeatResponse(error_code=27), request_frames.HEARTBEAT_VERSION),
    ],
)
def test_an_error_is_found_without_decoding(body: object, version: int) -> None:
    answer = encode_response(body, version, 12_345)

    assert request_frames.error_of(answer) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_generation_is_found_without_decoding() -> None:
    joined = JoinGroupResponse(
        error_code=0,
        generation_id=Generation(77),
        protocol_name="range",
        leader=MemberId("leader"),
        member_id=MemberId("member"),
    )

    answer = encode_response(joined, request_frames.JOIN_VERSION, 1)

    assert request_frames.error_of(answer) == 0
    assert request_frames.generation_of(answer) == 77
