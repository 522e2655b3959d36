"""Every served API in every version has a response for a request that is refused as a whole."""

from collections.abc import Iterator
from typing import Any

import pytest

from kohort.node.dispatch import SERVED
from kohort.node.error_responses import make_error_response
from kohort.node.response_errors import ERROR_FINDERS
from kohort.types import ErrorCode
from kohort.wire.api import find_api
from kohort.wire.api.k00_produce import ProduceRequest
from kohort.wire.api.k01_fetch import FetchRequest
from kohort.wire.api.k03_metadata import MetadataRequest
from kohort.wire.api.k09_offset_fetch import OffsetFetchRequest
from kohort.wire.api.k11_join_group import JoinGroupRequest, JoinGroupResponse
from kohort.wire.api.k18_api_versions import ApiVersionsRequest
from kohort.wire.envelope import decode_response, encode_response
from kohort.wire.schema import schema_of
from tests.wire.strategies import VARIANTS, build

CASES = [(key, version) for key, versions in SERVED.items() for version in versions]
WITHOUT_A_PLACE = {(35, 1), (35, 2)}
"""DescribeLogDirs has an error of the whole response since version 3."""

ERROR = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
FULL, EMPTY = VARIANTS[0], VARIANTS[3]


def refuse(key: int, version: int, error: ErrorCode = ERROR) -> Any:
    api = find_api(key)
    assert api is not None
    body = build(api.request, version, FULL)
    return sent(key, version, make_error_response(key, body, version, error, "the reason"))


def sent(key: int, version: int, response: object) -> Any:
    """What a client decodes."""
    _, decoded = decode_response(encode_response(response, version, 5)[4:], key, version)
    return decoded


def codes_in(message: Any) -> Iterator[int]:
    """All error codes of a message, at any depth, but for the one of a topic's settings."""
    for field in schema_of(type(message)).fields:
        found = getattr(message, field.name)
        if field.name == "error_code":
            yield found
        elif isinstance(found, tuple):
            for each in found:
                if hasattr(type(each), "__dataclass_fields__"):
                    yield from codes_in(each)


@pytest.mark.parametrize(("key", "version"), CASES)
def test_response_has_the_error_in_every_version(key: int, version: int) -> None:
    response = refuse(key, version)

    found = ERROR_FINDERS[type(response)](response)
    assert found == (0 if (key, version) in WITHOUT_A_PLACE else ERROR)


@pytest.mark.parametrize(("key", "version"), CASES)
def test_request_without_items_has_a_response_too(key: int, version: int) -> None:
    api = find_api(key)
    assert api is not None
    body = build(api.request, version, EMPTY)

    response = make_error_response(key, body, version, ERROR)

    is_produce_without_acks = key == 0
    assert (response is None) is is_produce_without_acks
    assert response is None or isinstance(sent(key, version, response), api.response)


@pytest.mark.parametrize("key", [0, 2, 8, 20, 21, 23, 42, 44])
def test_every_item_of_the_request_has_the_error(key: int) -> None:
    codes = list(codes_in(refuse(key, SERVED[key][-1])))

    assert len(codes) >= 2
    assert set(codes) == {ERROR}


def test_producer_without_acks_expects_no_response() -> None:
    assert make_error_response(0, ProduceRequest(acks=0), 9, ERROR) is None


@pytest.mark.parametrize("version", range(4, 19))
def test_error_of_partitions_leaves_the_top_level_of_a_fetch_alone(version: int) -> None:
    response = refuse(1, version, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    assert response.error_code == 0
    assert {code for topic in response.responses for code in codes_in(topic)} == {
        ErrorCode.NOT_LEADER_OR_FOLLOWER
    }


@pytest.mark.parametrize("version", range(7, 19))
def test_error_of_a_fetch_session_is_at_the_top_level(version: int) -> None:
    response = refuse(1, version, ErrorCode.FETCH_SESSION_ID_NOT_FOUND)

    assert response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert bool(response.responses) == (version < 13)


def test_fetch_without_partitions_has_the_error_at_the_top_level() -> None:
    response = make_error_response(1, FetchRequest(session_id=7, session_epoch=3), 12, ERROR)

    assert sent(1, 12, response).error_code == ERROR


def test_metadata_of_all_topics_has_a_place_for_the_error_since_version_13() -> None:
    asked = MetadataRequest(topics=None)

    responses = [sent(3, each, make_error_response(3, asked, each, ERROR)) for each in (12, 13)]

    assert [each.error_code for each in responses] == [0, ERROR]
    assert responses[0].topics == ()


@pytest.mark.parametrize(("version", "is_null"), [(6, False), (7, True)])
def test_refused_join_has_the_member_id_of_the_request(version: int, *, is_null: bool) -> None:
    body = build(JoinGroupRequest, version, FULL)

    response = sent(11, version, make_error_response(11, body, version, ERROR))

    assert isinstance(response, JoinGroupResponse)
    assert (response.member_id, response.generation_id) == (body.member_id, -1)
    assert (response.protocol_name is None) is is_null


def test_offset_fetch_has_the_error_where_its_version_has_it() -> None:
    first, second, last = (refuse(9, version) for version in (1, 2, 10))

    asked = build(OffsetFetchRequest, 10, FULL)
    assert {each.error_code for topic in first.topics for each in topic.partitions} == {ERROR}
    assert (second.error_code, second.topics) == (ERROR, ())
    assert [(each.group_id, each.error_code) for each in last.groups] == [
        (each.group_id, ERROR) for each in asked.groups
    ]


def test_unsupported_version_lists_the_versions_of_api_versions() -> None:
    response = make_error_response(18, ApiVersionsRequest(), 0, ErrorCode.UNSUPPORTED_VERSION)

    (itself,) = sent(18, 0, response).api_keys
    assert (itself.api_key, itself.min_version, itself.max_version) == (18, 0, 4)
