"""Request and response frames: length, header and body."""

from collections.abc import Generator
from typing import Any

import pytest

from kohort.types import ErrorCode, GroupId, Millis
from kohort.wire.api import all_apis
from kohort.wire.api.k12_heartbeat import HeartbeatRequest, HeartbeatResponse
from kohort.wire.api.k18_api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from kohort.wire.envelope import (
    decode_request,
    decode_request_header,
    decode_response,
    encode_large_response,
    encode_request,
    encode_response,
    frame_response,
    peek_request,
)
from kohort.wire.errors import MalformedMessage, UnencodableMessage, UnsupportedVersion
from kohort.wire.header import RequestHeader, request_header_version, response_header_version
from kohort.wire.message_codec import encode
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
def test_frames_match_the_oracles(message: Message, oracle: Oracle, client_id: str | None) -> None:
    for version in message.versions:
        if oracle.knows(message.cls, version):
            value = oracle.clamp(build(message.cls, version, FULL), version)

            ours = encode_frame(value, version, client_id)

            assert ours.hex() == oracle.frame(value, version, 77, client_id).hex(), version
            assert int.from_bytes(ours[:4], "big") == len(ours) - 4


@pytest.mark.parametrize(
    "message", [message for message in MESSAGES if message.kind == "response"], ids=str
)
def test_frame_response_matches_encode_response(message: Message) -> None:
    for version in message.versions:
        body = build(message.cls, version, FULL)
        encoded = encode(body, version)

        framed = frame_response(message.cls, version, 77, [encoded[:3], encoded[3:]])

        assert framed == encode_response(body, version, 77), version


@every_client_id
@every_request
def test_request_round_trip_with_header(message: Message, client_id: str | None) -> None:
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
def test_response_round_trip_with_correlation_id(api: Any) -> None:
    for version in api.versions:
        body = build(api.response, version, FULL)
        payload = encode_response(body, version, 2**31 - 1)[4:]

        assert decode_response(payload, api.key, version) == (2**31 - 1, body)


def test_header_of_a_flexible_message_has_tags() -> None:
    for api in all_apis():
        for version in api.versions:
            is_flexible = api.flexible_since is not None and version >= api.flexible_since
            is_flexible_response = is_flexible and api.name != "ApiVersions"
            assert request_header_version(api.request, version) == 1 + is_flexible
            assert response_header_version(api.response, version) == 0 + is_flexible_response


def test_client_id_has_two_length_bytes_in_the_flexible_header() -> None:
    frame = encode_request(HeartbeatRequest(), 4, 1, "me")

    assert frame[4:18] == bytes.fromhex("000c 0004 00000001 0002") + b"me" + b"\x00" + b"\x01"


def test_api_versions_response_has_header_version_0() -> None:
    flexible = encode_response(HeartbeatResponse(error_code=1), 4, 9)
    plain = encode_response(ApiVersionsResponse(error_code=1), 4, 9)

    assert flexible[4:11] == bytes.fromhex("00000009 00 0000")
    assert plain[4:10] == bytes.fromhex("00000009 0001")


@pytest.mark.parametrize("asked", [0, 1, 2, 3, 4, 5, 99])
def test_unsupported_api_versions_response_is_decoded_as_version_0(asked: int) -> None:
    decode_error = ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=(ApiVersion(api_key=18, min_version=0, max_version=3),),
    )
    payload = encode_response(decode_error, 0, 4)[4:]

    assert decode_response(payload, 18, asked) == (4, decode_error)


def test_other_api_versions_error_is_decoded_in_the_requested_version() -> None:
    answer = ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, throttle_time_ms=Millis(5))

    assert decode_response(encode_response(answer, 3, 4)[4:], 18, 3) == (4, answer)


def test_header_of_a_future_api_versions_request_is_decoded() -> None:
    future = encode_request(ApiVersionsRequest(client_software_name="new"), 4, 8, "me")[4:]
    future = future[:2] + (99).to_bytes(2, "big") + future[4:] + b"unheard of"

    assert peek_request(future) == (18, 99)
    assert decode_request_header(future) == RequestHeader(
        request_api_key=18, request_api_version=99, correlation_id=8, client_id="me"
    )
    with pytest.raises(UnsupportedVersion) as error:
        decode_request(future)
    assert (error.value.api_key, error.value.name, error.value.version) == (
        18,
        "ApiVersions",
        99,
    )


@pytest.mark.parametrize(
    ("key", "version"), [(4, 0), (999, 0), (-1, 0), (8, 1), (8, 11), (12, -1), (12, 5)]
)
def test_unknown_key_or_version_is_unsupported(key: int, version: int) -> None:
    start = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True)
    request = start + bytes(40)

    for _ in range(2):
        with pytest.raises(UnsupportedVersion) as error:
            decode_request(request)
        assert (error.value.api_key, error.value.version) == (key, version)
    with pytest.raises(UnsupportedVersion):
        decode_response(bytes(40), key, version)


def test_encoding_an_unsupported_version_fails() -> None:
    with pytest.raises(UnsupportedVersion):
        encode_request(HeartbeatRequest(group_id=GroupId("g")), 5, 1, None)
    with pytest.raises(UnsupportedVersion):
        encode_response(HeartbeatResponse(), 5, 1)


def test_large_response_has_a_limit() -> None:
    keys = tuple(ApiVersion(api_key=number) for number in range(2_000))
    response = ApiVersionsResponse(api_keys=keys)
    size = len(encode_response(response, 0, 1))

    (payload,) = _run(encode_large_response(response, 0, 1, size))
    with pytest.raises(UnencodableMessage, match=f"more than {size // 2} bytes"):
        _run(encode_large_response(response, 0, 1, size // 2))

    assert payload == encode_response(response, 0, 1)


def _run(steps: Generator[None, Any, bytes]) -> list[bytes]:
    def finish() -> Generator[None, Any, None]:
        finished.append((yield from steps))

    finished: list[bytes] = []
    for _ in finish():
        pass
    return finished


def test_correlation_id_above_32_bits_is_unencodable() -> None:
    with pytest.raises(UnencodableMessage, match="RequestHeader v2: correlation_id"):
        encode_request(HeartbeatRequest(), 4, 2**31, None)
    with pytest.raises(UnencodableMessage, match="ResponseHeader: correlation_id"):
        encode_response(HeartbeatResponse(), 4, 2**31)


@every_request
def test_request_truncated_at_any_byte_is_malformed(message: Message) -> None:
    version = message.versions[-1]
    payload = encode_request(build(message.cls, version, FULL), version, 1, "client")[4:]

    for length in range(len(payload)):
        with pytest.raises(MalformedMessage) as error:
            decode_request(payload[:length])
        assert 0 <= error.value.position <= length


def test_bytes_after_a_request_are_ignored_as_in_kafka() -> None:
    request = encode_request(HeartbeatRequest(), 4, 1, None)[4:]

    assert decode_request(request + b"xyz") == decode_request(request)


def test_bytes_after_a_response_are_malformed() -> None:
    response = encode_response(HeartbeatResponse(), 4, 1)[4:]

    with pytest.raises(MalformedMessage, match="HeartbeatResponse v4: end at byte 12: 1 bytes"):
        decode_response(response + b"x", 12, 4)
