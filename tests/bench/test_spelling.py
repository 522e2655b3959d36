"""What scripted members send is what the wire says it is, and the generation alone changes."""

from collections.abc import Callable
from typing import Any

import pytest

from bench.kit import spelling
from kohort.types import ErrorCode, Generation, MemberId
from kohort.wire.api.k11_join_group import JoinGroupResponse
from kohort.wire.api.k12_heartbeat import HeartbeatResponse
from kohort.wire.api.k14_sync_group import SyncGroupResponse
from kohort.wire.embedded import decode_subscription
from kohort.wire.envelope import decode_request, encode_response


def read(frame: bytes | bytearray) -> tuple[Any, Any]:
    assert spelling.INT32.unpack_from(frame)[0] == len(frame) - 4
    return decode_request(bytes(frame[4:]))


def test_a_join_offers_one_real_subscription() -> None:
    frame = spelling.join("group", "member", spelling.subscription("orders", "returns"))

    header, body = read(frame)
    assert header.request_api_key == spelling.JOIN_KEY
    assert (body.group_id, body.member_id) == ("group", "member")
    assert decode_subscription(body.protocols[0].metadata).topics == ("orders", "returns")


def test_a_leader_hands_out_shares() -> None:
    shares = {"one": b"1", "two": b"2"}

    _, body = read(spelling.sync("group", "one", 3, shares))

    assert {each.member_id: each.assignment for each in body.assignments} == shares


def test_a_commit_names_every_partition_once() -> None:
    frame = spelling.commit("group", "member", 3, topic="orders", partitions=4, offset=99)

    (topic,) = read(frame)[1].topics
    assert [each.partition_index for each in topic.partitions] == [0, 1, 2, 3]
    assert {each.committed_offset for each in topic.partitions} == {99}


def test_offsets_of_many_groups_are_one_request() -> None:
    _, body = read(spelling.fetch_offsets(["a", "b"]))

    assert [(each.group_id, each.topics) for each in body.groups] == [("a", None), ("b", None)]


@pytest.mark.parametrize(
    "spell",
    [
        lambda generation: spelling.heartbeat("group", "member", generation),
        lambda generation: spelling.sync("group", "member", generation, {}),
        lambda generation: spelling.sync("group", "member", generation, {"member": b"all"}),
    ],
)
def test_a_form_is_filled_with_any_generation(spell: Callable[[int], bytes]) -> None:
    form = spelling.Form(spell)

    for generation in (0, 1, 2**31 - 1):
        assert form.fill(generation) == spell(generation)


def test_a_number_must_be_there_once() -> None:
    packed = spelling.INT32.pack(7)

    assert spelling.find_number(b"--" + packed, 7) == 2
    for frame in (b"nothing", packed + packed):
        with pytest.raises(ValueError, match="exactly once"):
            spelling.find_number(frame, 7)


@pytest.mark.parametrize(
    ("body", "version"),
    [
        (
            JoinGroupResponse(
                error_code=27, protocol_name="", leader=MemberId("l"), member_id=MemberId("m")
            ),
            spelling.JOIN_VERSION,
        ),
        (SyncGroupResponse(error_code=27, assignment=b""), spelling.SYNC_VERSION),
        (HeartbeatResponse(error_code=27), spelling.HEARTBEAT_VERSION),
    ],
)
def test_an_error_is_found_without_decoding(body: object, version: int) -> None:
    answer = encode_response(body, version, 12_345)

    assert spelling.error_of(answer) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_generation_is_found_without_decoding() -> None:
    joined = JoinGroupResponse(
        error_code=0,
        generation_id=Generation(77),
        protocol_name="range",
        leader=MemberId("leader"),
        member_id=MemberId("member"),
    )

    answer = encode_response(joined, spelling.JOIN_VERSION, 1)

    assert spelling.error_of(answer) == 0
    assert spelling.generation_of(answer) == 77
