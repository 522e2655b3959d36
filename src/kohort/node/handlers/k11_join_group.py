"""JoinGroup: the request may be parked for the whole join phase."""

from kohort.coordinator.commands import NO_MEMBER, JoinGroup, Protocol
from kohort.coordinator.replies import Joined, Reply, RequestRefused
from kohort.node.broker import Broker
from kohort.node.request import PARKED, Request
from kohort.types import ErrorCode, MemberId, Millis
from kohort.wire.api.k11_join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)


def handle(broker: Broker, request: Request, now: Millis) -> object:
    body: JoinGroupRequest = request.body
    version, client_id = request.version, request.client_id
    # An empty instance id is still an instance id.
    instance_id = body.group_instance_id
    name = client_id if instance_id is None else instance_id
    is_new = body.member_id == NO_MEMBER
    command = JoinGroup(
        ticket=broker.park(request, _respond),
        group_id=body.group_id,
        member_id=body.member_id,
        # A member that has an id needs no new one.
        fresh_member_id=MemberId(f"{name}-{broker.fresh_uuid()}") if is_new else NO_MEMBER,
        instance_id=body.group_instance_id,
        client_id=client_id,
        client_host=request.client_host,
        session_timeout_ms=body.session_timeout_ms,
        # Version 0 has only the session timeout; it is used for both.
        rebalance_timeout_ms=(
            body.rebalance_timeout_ms if version >= 1 else body.session_timeout_ms
        ),
        protocol_type=body.protocol_type,
        protocols=tuple([Protocol(each.name, each.metadata) for each in body.protocols]),
        reason=body.reason,
        knows_member_id_required=version >= 4,
        knows_skip_assignment=version >= 9,
    )
    broker.groups.submit(command, now)
    return PARKED


def _respond(request: Request, reply: Reply) -> JoinGroupResponse:
    match reply:
        case RequestRefused():
            return JoinGroupResponse(
                error_code=reply.error,
                member_id=reply.member_id,
                protocol_name=None if request.version >= 7 else "",
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
                        JoinGroupResponseMember(
                            member_id=member.member_id,
                            group_instance_id=member.instance_id,
                            metadata=member.metadata,
                        )
                        for member in reply.members
                    ]
                ),
            )
        case _:
            raise AssertionError(f"unexpected reply to join: {reply}")
