"""ApiVersions, and requests with an unsupported version or API key.

Only versions of APIs that both brokers serve are compared.
"""

import struct
from dataclasses import replace
from typing import Any

from kohort.node.dispatch import SERVED
from kohort.wire.api.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.contract.conversations.conversation import conversation
from tests.contract.conversations.session import Session

NAMED = ApiVersionsRequest(client_software_name="conversation", client_software_version="1.0")


def common(answer: ApiVersionsResponse) -> Any:
    """Sorted by key; the order has no meaning."""
    keys = sorted(answer.api_keys, key=lambda each: each.api_key)
    return replace(answer, api_keys=tuple(each for each in keys if each.api_key in SERVED))


def frame(key: int, version: int, rest: bytes = b"") -> bytes:
    """A request with a version 1 header, for versions without a schema."""
    message = struct.pack(">hhih", key, version, 7, -1) + rest
    return struct.pack(">i", len(message)) + message


@conversation(vary=ApiVersionsRequest)
def both_serve_the_same_versions_of_common_apis(session: Session) -> None:
    a = session.client("a")

    if session.version_of(ApiVersionsRequest) < 3:
        a.ask(ApiVersionsRequest(), transform=common)
        return
    with session.deviates(
        "the list of features is empty", "answer.supported_features", "answer.final*"
    ):
        a.ask(NAMED, transform=common)


@conversation(vary=ApiVersionsRequest, since=3)
def client_software_name_must_be_valid(session: Session) -> None:
    a = session.client("a")

    for name, version in (("", ""), ("-", "1"), ("x y", "1"), ("x", ""), ("x", "1."), ("x", "_")):
        a.ask(ApiVersionsRequest(client_software_name=name, client_software_version=version))


@conversation()
def an_unknown_api_versions_version_is_answered_with_version_0(session: Session) -> None:
    session.client("a").send_raw(frame(18, 99, b"\0"))


@conversation()
def an_unsupported_version_closes_the_connection(session: Session) -> None:
    for name, key, version in (("join", 11, 99), ("commit", 8, 1), ("produce", 0, 2)):
        session.client(name).send_raw(frame(key, version))


@conversation()
def an_unknown_api_key_closes_the_connection(session: Session) -> None:
    session.client("a").send_raw(frame(999, 0))
    session.client("b").send_raw(frame(-1, 0))


@conversation()
def a_truncated_request_closes_the_connection(session: Session) -> None:
    session.client("a").send_raw(frame(11, 0))
    session.client("b").send_raw(struct.pack(">ih", 2, 11))


@conversation()
def an_empty_frame_closes_the_connection(session: Session) -> None:
    session.client("a").send_raw(struct.pack(">i", -1))
    session.client("b").send_raw(struct.pack(">i", 0))
    session.client("c").send_raw(struct.pack(">i", 2**31 - 1))
