"""ApiVersions, and what becomes of requests in a version or of a kind that nobody speaks.

Of the versions told, only those of APIs that both brokers serve are looked at.
"""

import struct
from dataclasses import replace
from typing import Any

from kohort.node.dispatch import SERVED
from kohort.wire.api.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.contract.conversations.conversation import conversation
from tests.contract.conversations.talking import Talk

NAMED = ApiVersionsRequest(client_software_name="conversation", client_software_version="1.0")


def common(answer: ApiVersionsResponse) -> Any:
    """In the order of their keys, which says nothing."""
    keys = sorted(answer.api_keys, key=lambda each: each.api_key)
    return replace(answer, api_keys=tuple(each for each in keys if each.api_key in SERVED))


def frame(key: int, version: int, rest: bytes = b"") -> bytes:
    """A request with a plain header, which is all that can be said in a version nobody knows."""
    message = struct.pack(">hhih", key, version, 7, -1) + rest
    return struct.pack(">i", len(message)) + message


@conversation(vary=ApiVersionsRequest)
def both_speak_the_same_versions_of_what_both_serve(talk: Talk) -> None:
    a = talk.speaker("a")

    if talk.version_of(ApiVersionsRequest) < 3:
        a.ask(ApiVersionsRequest(), through=common)
        return
    with talk.deviates("there are no features", "answer.supported_features", "answer.final*"):
        a.ask(NAMED, through=common)


@conversation(vary=ApiVersionsRequest, since=3)
def software_needs_a_proper_name(talk: Talk) -> None:
    a = talk.speaker("a")

    for name, version in (("", ""), ("-", "1"), ("x y", "1"), ("x", ""), ("x", "1."), ("x", "_")):
        a.ask(ApiVersionsRequest(client_software_name=name, client_software_version=version))


@conversation()
def an_unknown_version_of_the_first_question_is_answered_in_the_oldest(talk: Talk) -> None:
    talk.speaker("a").provoke_with(frame(18, 99, b"\0"))


@conversation()
def a_version_that_nobody_speaks_ends_the_connection(talk: Talk) -> None:
    for name, key, version in (("join", 11, 99), ("commit", 8, 1), ("produce", 0, 2)):
        talk.speaker(name).provoke_with(frame(key, version))


@conversation()
def an_api_that_nobody_knows_ends_the_connection(talk: Talk) -> None:
    talk.speaker("a").provoke_with(frame(999, 0))
    talk.speaker("b").provoke_with(frame(-1, 0))


@conversation()
def a_request_that_ends_too_early_ends_the_connection(talk: Talk) -> None:
    talk.speaker("a").provoke_with(frame(11, 0))
    talk.speaker("b").provoke_with(struct.pack(">ih", 2, 11))


@conversation()
def a_frame_without_a_size_ends_the_connection(talk: Talk) -> None:
    talk.speaker("a").provoke_with(struct.pack(">i", -1))
    talk.speaker("b").provoke_with(struct.pack(">i", 0))
    talk.speaker("c").provoke_with(struct.pack(">i", 2**31 - 1))
