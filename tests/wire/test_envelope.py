"""Frames: length, header and body, byte for byte as others make them."""

from typing import Any

import pytest

from kohort.types import ErrorCode, GroupId, Millis
from kohort.wire.api import all_apis
from kohort.wire.api.k12_heartbeat import HeartbeatRequest, HeartbeatResponse
from kohort.wire.api.k18_api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from kohort.wire.compiler import encode
from kohort.wire.envelope import (
    decode_request,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
    frame_response,
    peek_request,
)
from kohort.wire.errors import MalformedMessage, UnencodableMessage, UnsupportedVersion
from kohort.wire.header import RequestHeader, request_header_version, response_header_version
from tests.wire.oracles import ORACLES, Oracle
from tests.wire.strategies import MESSAGES, VARIANTS, Message, build

FULL = VARIANTS[0]

every_oracle = pytest.mark.parametrize("oracle", ORACLES, ids=repr)
every_message = pytest.mark.parametrize("message", MESSAGES, ids=str)
every_request = pytest.mark.parametrize(
    "message", [message for message in MESSAGES if message.kind == "request"], ids=str
)
every_client_id = pytest.mark.parametrize("client_id", [None, "", "client", "\N{SNOWMAN}" * 100])


def encode_frame(value: Any, version: int, client_id: str | None) -> bytes:
    if type(value).__name__.endswith("Request"):
        return encode_request(value, version, 77, client_id)
    return encode_response(value, version, 77)


@every_oracle
@every_message
@every_client_id
def test_frames_are_those_of_others(
    message: Message, oracle: Oracle, client_id: str | None
) -> None:
    for version in message.versions:
        if oracle.knows(message.cls, version):
            value = oracle.tame(build(message.cls, version, FULL), version)

            ours = encode_frame(value, version, client_id)

            assert ours.hex() == oracle.frame(value, version, 77, client_id).hex(), version
            assert int.from_bytes(ours[:4], "big") == len(ours) - 4


@pytest.mark.parametrize(
    "message", [message for message in MESSAGES if message.kind == "response"], ids=str
)
def test_a_body_that_is_encoded_already_gets_the_same_frame(message: Message) -> None:
    for version in message.versions:
        body = build(message.cls, version, FULL)
        encoded = encode(body, version)

        framed = frame_response(message.cls, version, 77, [encoded[:3], encoded[3:]])

        assert framed == encode_response(body, version, 77), version


@every_client_id
@every_request
def test_a_request_is_read_back_with_its_header(message: Message, client_id: str | None) -> None:
    for version in message.versions:
        body = build(message.cls, version, FULL)
        payload = encode_request(body, version, -5, client_id)[4:]

        header = RequestHeader(
            request_api_key=message.key,
            request_api_version=version,
            correlation_id=-5,
            client_id=client_id,
        )
        assert decode_request(payload) == (header, body)
        assert decode_request_header(payload) == header
        assert peek_request(payload) == (message.key, version)


@pytest.mark.parametrize("api", all_apis(), ids=lambda api: api.name)
def test_a_response_is_read_back_with_its_correlation_id(api: Any) -> None:
    for version in api.versions:
        body = build(api.response, version, FULL)
        payload = encode_response(body, version, 2**31 - 1)[4:]

        assert decode_response(payload, api.key, version) == (2**31 - 1, body)


def test_a_header_has_tags_where_its_message_is_flexible() -> None:
    for api in all_apis():
        for version in api.versions:
            is_flexible = api.flexible_since is not None and version >= api.flexible_since
            is_flexible_response = is_flexible and api.name != "ApiVersions"
            assert request_header_version(api.request, version) == 1 + is_flexible
            assert response_header_version(api.response, version) == 0 + is_flexible_response


def test_the_client_id_keeps_two_bytes_of_length_in_the_flexible_header() -> None:
    frame = encode_request(HeartbeatRequest(), 4, 1, "me")

    assert frame[4:18] == bytes.fromhex("000c 0004 00000001 0002") + b"me" + b"\x00" + b"\x01"


def test_the_answer_to_api_versions_has_the_plain_header() -> None:
    flexible = encode_response(HeartbeatResponse(error_code=1), 4, 9)
    plain = encode_response(ApiVersionsResponse(error_code=1), 4, 9)

    assert flexible[4:11] == bytes.fromhex("00000009 00 0000")
    assert plain[4:10] == bytes.fromhex("00000009 0001")


@pytest.mark.parametrize("asked", [0, 1, 2, 3, 4, 5, 99])
def test_a_refused_api_versions_request_is_answered_in_version_0(asked: int) -> None:
    refusal = ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=(ApiVersion(api_key=18, min_version=0, max_version=3),),
    )
    payload = encode_response(refusal, 0, 4)[4:]

    assert decode_response(payload, 18, asked) == (4, refusal)


def test_another_error_in_api_versions_is_read_in_the_version_asked() -> None:
    answer = ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, throttle_time_ms=Millis(5))

    assert decode_response(encode_response(answer, 3, 4)[4:], 18, 3) == (4, answer)


def test_the_header_of_a_future_api_versions_request_can_be_read() -> None:
    future = encode_request(ApiVersionsRequest(client_software_name="new"), 4, 8, "me")[4:]
    future = future[:2] + (99).to_bytes(2, "big") + future[4:] + b"unheard of"

    assert peek_request(future) == (18, 99)
    assert decode_request_header(future) == RequestHeader(
        request_api_key=18, request_api_version=99, correlation_id=8, client_id="me"
    )
    with pytest.raises(UnsupportedVersion) as refused:
        decode_request(future)
    assert (refused.value.api_key, refused.value.name, refused.value.version) == (
        18,
        "ApiVersions",
        99,
    )


@pytest.mark.parametrize(
    ("key", "version"), [(4, 0), (999, 0), (-1, 0), (8, 1), (8, 11), (12, -1), (12, 5)]
)
def test_a_key_or_version_that_is_not_spoken_is_unsupported(key: int, version: int) -> None:
    start = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True)
    request = start + bytes(40)

    for _ in range(2):
        with pytest.raises(UnsupportedVersion) as refused:
            decode_request(request)
        assert (refused.value.api_key, refused.value.version) == (key, version)
    with pytest.raises(UnsupportedVersion):
        decode_response(bytes(40), key, version)


def test_a_version_that_is_not_spoken_cannot_be_written() -> None:
    with pytest.raises(UnsupportedVersion):
        encode_request(HeartbeatRequest(group_id=GroupId("g")), 5, 1, None)
    with pytest.raises(UnsupportedVersion):
        encode_response(HeartbeatResponse(), 5, 1)


def test_a_correlation_id_beyond_32_bits_cannot_be_written() -> None:
    with pytest.raises(UnencodableMessage, match="RequestHeader v2: correlation_id"):
        encode_request(HeartbeatRequest(), 4, 2**31, None)
    with pytest.raises(UnencodableMessage, match="ResponseHeader: correlation_id"):
        encode_response(HeartbeatResponse(), 4, 2**31)


@every_request
def test_a_request_cut_at_any_byte_is_malformed(message: Message) -> None:
    version = message.versions[-1]
    payload = encode_request(build(message.cls, version, FULL), version, 1, "client")[4:]

    for length in range(len(payload)):
        with pytest.raises(MalformedMessage) as refused:
            decode_request(payload[:length])
        assert 0 <= refused.value.position <= length


def test_bytes_behind_a_request_are_let_be_as_kafka_does() -> None:
    request = encode_request(HeartbeatRequest(), 4, 1, None)[4:]

    assert decode_request(request + b"xyz") == decode_request(request)


def test_bytes_behind_a_response_are_malformed() -> None:
    response = encode_response(HeartbeatResponse(), 4, 1)[4:]

    with pytest.raises(MalformedMessage, match="HeartbeatResponse v4: end at byte 12: 1 bytes"):
        decode_response(response + b"x", 12, 4)
