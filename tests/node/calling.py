"""A client over a real socket that says exactly what it is told to say, and nothing else.

It blocks, keeps no state of its own but a counter, and shows answers as the wire decodes them.
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
"""No answer takes as long; longer is a failure, not patience."""


class HungUp(Exception):
    """The node has closed the connection."""


@dataclass(frozen=True, slots=True)
class Asked:
    api_key: int
    version: int
    correlation_id: int


class Caller:
    """One connection. Ask and be answered, or send and receive apart, in the same order."""

    def __init__(self, address: Address, *, deadline_s: float = DEADLINE_S) -> None:
        self.socket = socket.create_connection((address.host, address.port), deadline_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = FrameReader()
        self._frames: list[bytes] = []
        self._correlation_ids = itertools.count(1)

    def ask(self, body: object, version: int) -> Any:
        return self.receive(self.send(body, version))

    def send(self, body: object, version: int) -> Asked:
        asked, frame = self.encode(body, version)
        self.socket.sendall(frame)
        return asked

    def encode(self, body: object, version: int) -> tuple[Asked, bytes]:
        api_key = schema_of(type(body)).api_key
        assert api_key is not None
        asked = Asked(api_key, version, next(self._correlation_ids))
        return asked, encode_request(body, version, asked.correlation_id, "caller")

    def receive(self, asked: Asked) -> Any:
        correlation_id, body = decode_response(self.receive_frame(), asked.api_key, asked.version)
        assert correlation_id == asked.correlation_id, "answers come in the order of questions"
        return body

    def receive_frame(self) -> bytes:
        while not self._frames:
            try:
                data = self.socket.recv(1 << 20)
            except ConnectionError as error:
                raise HungUp from error
            if not data:
                raise HungUp
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


# Groups, as far as a test needs them


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


def join_first(caller: Caller, group: str, *, session_ms: int = 30_000) -> JoinGroupResponse:
    """The answer to the first member of a group, which has yet to ask for its assignment.

    A group that has nobody yet may be cleaned up between its two joins, in Kafka as well; as any
    client, it then begins again.
    """
    told = caller.ask(join_request(group, session_ms=session_ms), 9)
    assert told.error_code == ErrorCode.MEMBER_ID_REQUIRED
    joined: JoinGroupResponse
    joined = caller.ask(join_request(group, told.member_id, session_ms=session_ms), 9)
    if joined.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
        return join_first(caller, group, session_ms=session_ms)
    assert joined.error_code == 0, ErrorCode(joined.error_code).name
    return joined


def join_alone(caller: Caller, group: str, *, session_ms: int = 30_000) -> Membership:
    """The only member of a group, from the first join to its assignment."""
    joined = join_first(caller, group, session_ms=session_ms)
    share = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"all")
    synced = caller.ask(
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
