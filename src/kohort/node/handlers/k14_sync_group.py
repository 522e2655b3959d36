"""SyncGroup: parked until the leader's assignment is stored, or answered with the current one."""

from kohort.coordinator.commands import MemberAssignment, SyncGroup
from kohort.coordinator.replies import Reply, RequestRefused, Synced
from kohort.node.broker import Broker
from kohort.node.request import PARKED, Request
from kohort.types import ErrorCode, Millis
from kohort.wire.api.k14_sync_group import SyncGroupRequest, SyncGroupResponse


def handle(broker: Broker, request: Request, now: Millis) -> object:
    body: SyncGroupRequest = request.body
    if request.version >= 5 and (body.protocol_type is None or body.protocol_name is None):
        # Both are mandatory since version 5, although the schema allows null.
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    command = SyncGroup(
        ticket=broker.park(request, _respond),
        group_id=body.group_id,
        member_id=body.member_id,
        instance_id=body.group_instance_id,
        generation=body.generation_id,
        protocol_type=body.protocol_type,
        protocol=body.protocol_name,
        assignments=tuple(
            [MemberAssignment(each.member_id, each.assignment) for each in body.assignments]
        ),
    )
    broker.groups.submit(command, now)
    return PARKED


def _respond(_: Request, reply: Reply) -> SyncGroupResponse:
    match reply:
        case RequestRefused():
            return SyncGroupResponse(error_code=reply.error)
        case Synced():
            return SyncGroupResponse(
                protocol_type=reply.protocol_type,
                protocol_name=reply.protocol,
                assignment=reply.assignment,
            )
        case _:
            raise AssertionError(f"unexpected reply to sync: {reply}")
