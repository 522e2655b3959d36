"""JoinGroup: becomes a command whose ticket may stay parked for the whole join phase."""

from typing import Any, Final

from kohort.coordinator.commands import NO_MEMBER, JoinGroup, Protocol
from kohort.coordinator.replies import Joined, Refused
from kohort.node.broker import Broker
from kohort.node.request import Request
from kohort.types import ErrorCode, MemberId, Millis, maker
from kohort.wire.api.k11_join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)

_make_protocol: Final = maker(Protocol)
_make_member: Final = maker(JoinGroupResponseMember)


def handle(broker: Broker, request: Request, now: Millis) -> None:
    body: JoinGroupRequest = request.body
    version, client_id = request.version, request.client_id
    # An instance may have an empty name, and is one all the same.
    instance_id = body.group_instance_id
    name = client_id if instance_id is None else instance_id
    is_new = body.member_id == NO_MEMBER
    command = JoinGroup(
        ticket=broker.groups.issue(lambda reply: request.answer(_respond(reply, version))),
        group_id=body.group_id,
        member_id=body.member_id,
        # Who has an id already needs no other.
        fresh_member_id=MemberId(f"{name}-{broker.fresh_uuid()}") if is_new else NO_MEMBER,
        instance_id=body.group_instance_id,
        client_id=client_id,
        client_host=request.client_host,
        session_timeout_ms=body.session_timeout_ms,
        # Version 0 knows one timeout for both.
        rebalance_timeout_ms=(
            body.rebalance_timeout_ms if version >= 1 else body.session_timeout_ms
        ),
        protocol_type=body.protocol_type,
        protocols=tuple([_make_protocol(each.name, each.metadata) for each in body.protocols]),
        reason=body.reason,
        knows_member_id_required=version >= 4,
        knows_skip_assignment=version >= 9,
    )
    broker.groups.submit(command, now)


def _respond(reply: Any, version: int) -> JoinGroupResponse:
    match reply:
        case Refused():
            return JoinGroupResponse(
                error_code=reply.error,
                member_id=reply.member_id,
                protocol_name=None if version >= 7 else "",
            )
        case Joined():
            return JoinGroupResponse(
                error_code=ErrorCode.NONE,
                generation_id=reply.generation,
                protocol_type=reply.protocol_type,
                protocol_name=reply.protocol,
                leader=reply.leader,
                skip_assignment=reply.skip_assignment,
                member_id=reply.member_id,
                members=tuple(
                    [
                        _make_member(member.member_id, member.instance_id, member.metadata)
                        for member in reply.members
                    ]
                ),
            )
        case _:
            raise AssertionError(f"a join cannot be answered with {reply}")
