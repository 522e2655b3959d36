"""The session: version negotiation, matching of responses, deadlines and failures."""

from typing import Any

import pytest

from kohort.protocol.errors import (
    ConnectFailed,
    Disconnected,
    ProtocolError,
    UnencodableRequest,
    UnsupportedByBroker,
)
from kohort.protocol.session import (
    IN_FLIGHT_MAX,
    Completed,
    PendingRequest,
    Session,
    SessionState,
)
from kohort.protocol.versions import VERSIONS, find_version
from kohort.types import ErrorCode, GroupId, MemberId, Millis
from kohort.wire.api import all_apis, find_api
from kohort.wire.api.k10_find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kohort.wire.api.k12_heartbeat import HeartbeatRequest, HeartbeatResponse
from kohort.wire.api.k18_api_versions import ApiVersion, ApiVersionsResponse
from kohort.wire.envelope import decode_request, encode_response
from kohort.wire.frame import FrameReader

HEARTBEAT = HeartbeatRequest(group_id=GroupId("g"), member_id=MemberId("m"))

ALL = ApiVersionsResponse(
    api_keys=tuple(
        ApiVersion(api_key=each.key, min_version=each.versions[0], max_version=each.versions[-1])
        for each in all_apis()
    )
)


def new_session(**options: Any) -> Session:
    session = Session("client", ready_by=Millis(1_000), **options)
    session.connected()
    return session


def ready_session(**options: Any) -> Session:
    session = new_session(**options)
    (asked,) = sent(session)
    assert respond(session, asked, ALL) == []
    assert session.is_ready
    return session


def sent(session: Session) -> list[tuple[Any, Any]]:
    """Headers and bodies of the requests that the session wants to send."""
    frames = FrameReader().feed(bytes(session.outgoing))
    session.outgoing.clear()
    return [decode_request(frame) for frame in frames]


def respond(session: Session, asked: tuple[Any, Any], body: object) -> list[Completed]:
    header = asked[0]
    version = header.request_api_version
    return receive(session, encode_response(body, version, header.correlation_id))


def receive(session: Session, data: bytes) -> list[Completed]:
    with session.receive_space() as space:
        space[: len(data)] = data
    return list(session.received(len(data)))


def pending(body: object = HEARTBEAT, *, deadline: int = 5_000, **fields: Any) -> PendingRequest:
    return PendingRequest(body=body, deadline=Millis(deadline), **fields)


# Versions


def test_the_table_names_only_versions_that_the_wire_has() -> None:
    for key, (oldest, newest) in VERSIONS.items():
        api = find_api(key)
        assert api is not None
        assert oldest in api.versions
        assert newest in api.versions


@pytest.mark.parametrize(
    ("ours", "theirs", "version_max", "chosen"),
    [
        ((4, 9), (0, 12), None, 9),
        ((4, 9), (0, 6), None, 6),
        ((4, 9), (0, 12), 5, 5),
        ((4, 9), (0, 3), None, None),
        ((4, 9), (10, 12), None, None),
        ((4, 9), (0, 12), 3, None),
        ((4, 9), None, None, None),
    ],
)
def test_the_newest_common_version_is_chosen(
    ours: tuple[int, int],
    theirs: tuple[int, int] | None,
    version_max: int | None,
    chosen: int | None,
) -> None:
    assert find_version(ours, theirs, version_max) == chosen


def test_a_broker_that_does_not_know_our_version_is_asked_in_its_own() -> None:
    session = new_session()
    ((header, _),) = sent(session)
    refused = ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=(ApiVersion(api_key=18, min_version=0, max_version=2),),
    )
    receive(session, encode_response(refused, 0, header.correlation_id))

    (again,) = sent(session)
    assert again[0].request_api_version == 2
    respond(session, again, ALL)
    assert session.is_ready


def test_a_broker_that_refuses_twice_is_unreachable() -> None:
    session = new_session()
    refused = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    ((header, _),) = sent(session)
    receive(session, encode_response(refused, 0, header.correlation_id))
    ((header, _),) = sent(session)

    with pytest.raises(ConnectFailed, match="negotiation failed: ApiVersions returned error 35"):
        receive(session, encode_response(refused, 0, header.correlation_id))


def test_requests_wait_for_version_negotiation() -> None:
    session = new_session()
    request = pending()
    session.send(request)
    (asked,) = sent(session)
    assert asked[0].request_api_key == 18

    respond(session, asked, ALL)

    ((header, body),) = sent(session)
    assert body == HEARTBEAT
    assert header.client_id == "client"
    assert header.request_api_version == VERSIONS[12][1]


def test_an_api_that_the_broker_lacks_fails_one_request_only() -> None:
    kept = tuple(each for each in ALL.api_keys if each.api_key != 10)
    session = new_session()
    early = pending(FindCoordinatorRequest(coordinator_keys=("g",)))
    session.send(early)
    session.send(pending())
    (asked, *_) = sent(session)
    ((failed, error),) = respond(session, asked, ApiVersionsResponse(api_keys=kept))

    assert failed is early
    assert isinstance(error, UnsupportedByBroker)
    assert "FindCoordinator is needed in versions 4 to 5" in str(error)
    assert len(sent(session)) == 1
    with pytest.raises(UnsupportedByBroker, match="not at all"):
        session.send(early)


def test_a_value_that_cannot_be_encoded_fails_one_request_only() -> None:
    session = ready_session()

    with pytest.raises(UnencodableRequest, match="group_id"):
        session.send(pending(HeartbeatRequest(group_id=GroupId("\ud800"), member_id=MemberId(""))))
    session.send(pending())

    assert len(sent(session)) == 1


def test_a_session_can_be_limited_to_older_versions() -> None:
    session = ready_session(versions={12: (3, 3)})
    session.send(pending())

    ((header, _),) = sent(session)
    assert header.request_api_version == 3


# Responses


def test_responses_are_matched_in_order() -> None:
    session = ready_session()
    first, second = pending(), pending(FindCoordinatorRequest(coordinator_keys=("g",)))
    session.send(first)
    session.send(second)
    one, two = sent(session)

    data = encode_response(HeartbeatResponse(), 4, one[0].correlation_id)
    data += encode_response(FindCoordinatorResponse(), 5, two[0].correlation_id)

    assert receive(session, data) == [
        (first, HeartbeatResponse()),
        (second, FindCoordinatorResponse()),
    ]
    assert session.pending() == []


def test_no_more_requests_than_the_limit_are_in_flight() -> None:
    session = ready_session()
    for _ in range(IN_FLIGHT_MAX + 2):
        session.send(pending())
    asked = sent(session)
    assert len(asked) == IN_FLIGHT_MAX

    respond(session, asked[0], HeartbeatResponse())

    assert len(sent(session)) == 1


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the broker closed the connection"),
        (b"\x7f\xff\xff\xff", "malformed response: Frame"),
        (encode_response(HeartbeatResponse(), 4, 99), "correlation id 99, expected 2"),
        (b"\0\0\0\5\0\0\0\2\0", "malformed response"),
    ],
)
def test_anything_but_the_expected_response_ends_the_session(data: bytes, reason: str) -> None:
    session = ready_session()
    session.send(pending())

    with pytest.raises(Disconnected, match=reason):
        receive(session, data)


def test_a_response_without_a_request_ends_the_session() -> None:
    session = ready_session()

    with pytest.raises(Disconnected, match="without a request"):
        receive(session, encode_response(HeartbeatResponse(), 4, 2))


# Deadlines and states


def test_requests_expire_at_their_deadline() -> None:
    session = ready_session()
    late, later = pending(deadline=500), pending(deadline=800)
    session.send(later)
    session.send(late)

    assert session.next_deadline() == 500
    assert session.expired(Millis(499)) == []
    assert session.expired(Millis(500)) == [late]
    assert session.close() == [later, late]
    assert session.next_deadline() is not None


def test_a_session_that_is_not_ready_in_time_is_unreachable() -> None:
    session = new_session()

    assert session.next_deadline() == 1_000
    with pytest.raises(ConnectFailed, match="version negotiation failed: timed out"):
        session.expired(Millis(1_000))


@pytest.mark.parametrize(
    ("state", "kind", "text"),
    [
        (SessionState.CONNECTING, ConnectFailed, "Connection refused"),
        (
            SessionState.NEGOTIATING_VERSIONS,
            ConnectFailed,
            "version negotiation failed: Connection refused",
        ),
        (SessionState.READY, Disconnected, "Connection refused"),
    ],
)
def test_an_error_says_which_step_failed(
    state: SessionState, kind: type[ProtocolError], text: str
) -> None:
    session = Session("client", ready_by=Millis(0))
    session.state = state

    error = session.failure("Connection refused")

    assert type(error) is kind
    assert str(error) == text
