"""A blocking client over a real socket that sends exactly the given requests.

Its only state is the correlation id. Responses are decoded messages.
"""

import itertools
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from kohort.node.broker import Address
from kohort.types import ErrorCode, Generation, GroupId, InstanceId, MemberId, Millis
from kohort.wire.api.k11_join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kohort.wire.api.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kohort.wire.envelope import decode_response, encode_request
from kohort.wire.frame import FrameReader
from kohort.wire.schema import schema_of

DEADLINE_S = 20.0
"""The timeout of every response."""


class Disconnected(Exception):
    """The broker has closed the connection."""


@dataclass(frozen=True, slots=True)
class SentRequest:
    api_key: int
    version: int
    correlation_id: int


class RawClient:
    """One connection. `ask` sends and receives; `send` and `receive` allow pipelining."""

    def __init__(self, address: Address, *, deadline_s: float = DEADLINE_S) -> None:
        self.socket = socket.create_connection((address.host, address.port), deadline_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = FrameReader()
        self._frames: list[bytes] = []
        self._correlation_ids = itertools.count(1)

    def ask(self, body: object, version: int) -> Any:
        return self.receive(self.send(body, version))

    def send(self, body: object, version: int) -> SentRequest:
        asked, frame = self.encode(body, version)
        self.socket.sendall(frame)
        return asked

    def encode(self, body: object, version: int) -> tuple[SentRequest, bytes]:
        api_key = schema_of(type(body)).api_key
        assert api_key is not None
        asked = SentRequest(api_key, version, next(self._correlation_ids))
        return asked, encode_request(body, version, asked.correlation_id, "client")

    def receive(self, asked: SentRequest) -> Any:
        correlation_id, body = decode_response(self.receive_frame(), asked.api_key, asked.version)
        assert correlation_id == asked.correlation_id, "responses are not in request order"
        return body

    def receive_frame(self) -> bytes:
        while not self._frames:
            try:
                data = self.socket.recv(1 << 20)
            except ConnectionError as error:
                raise Disconnected from error
            if not data:
                raise Disconnected
            self._frames = self._reader.feed(data)
        return self._frames.pop(0)

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


# Groups


@dataclass(frozen=True, slots=True)
class Membership:
    group_id: GroupId
    member_id: MemberId
    generation: Generation


def join_request(
    group: str,
    member_id: str = "",
    *,
    session_ms: int = 30_000,
    instance: str | None = None,
) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=GroupId(group),
        session_timeout_ms=Millis(session_ms),
        rebalance_timeout_ms=Millis(session_ms),
        member_id=MemberId(member_id),
        group_instance_id=None if instance is None else InstanceId(instance),
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b"any"),),
    )


def join_first(client: RawClient, group: str, *, session_ms: int = 30_000) -> JoinGroupResponse:
    """Join as the first member and return the response; the sync is left to the caller.

    An empty group may be removed between the two joins, in Kafka as well; the client then starts
    over.
    """
    returned = client.ask(join_request(group, session_ms=session_ms), 9)
    assert returned.error_code == ErrorCode.MEMBER_ID_REQUIRED
    joined: JoinGroupResponse
    joined = client.ask(join_request(group, returned.member_id, session_ms=session_ms), 9)
    if joined.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
        return join_first(client, group, session_ms=session_ms)
    assert joined.error_code == 0, ErrorCode(joined.error_code).name
    return joined


def join_alone(client: RawClient, group: str, *, session_ms: int = 30_000) -> Membership:
    """Join and sync as the only member of a group."""
    joined = join_first(client, group, session_ms=session_ms)
    share = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"all")
    synced = client.ask(
        SyncGroupRequest(
            group_id=GroupId(group),
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=(share,),
        ),
        5,
    )
    assert synced.error_code == 0, ErrorCode(synced.error_code).name
    return Membership(GroupId(group), joined.member_id, joined.generation_id)


def errors_in(answer: object, path: Sequence[str]) -> list[str]:
    """The names of the error codes at the end of a path of repeated fields."""
    found: list[Any] = [answer]
    for name in path:
        found = [each for one in found for each in getattr(one, name)]
    return [ErrorCode(one.error_code).name for one in found]
