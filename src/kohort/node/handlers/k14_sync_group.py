"""SyncGroup: parked until the leader's assignment is kept, or answered from what stands."""

from typing import Final

from kohort.coordinator.commands import MemberAssignment, SyncGroup
from kohort.coordinator.replies import Refused, Reply, Synced
from kohort.node.broker import Broker
from kohort.node.request import Request
from kohort.types import ErrorCode, Millis, maker
from kohort.wire.api.k14_sync_group import SyncGroupRequest, SyncGroupResponse

_make_assignment: Final = maker(MemberAssignment)


def handle(broker: Broker, request: Request, now: Millis) -> None:
    body: SyncGroupRequest = request.body
    if request.version >= 5 and (body.protocol_type is None or body.protocol_name is None):
        # From version 5 on both are mandatory, though the format still lets them be null.
        request.answer(SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        return
    command = SyncGroup(
        ticket=broker.groups.issue(lambda reply: request.answer(_respond(reply))),
        group_id=body.group_id,
        member_id=body.member_id,
        instance_id=body.group_instance_id,
        generation=body.generation_id,
        protocol_type=body.protocol_type,
        protocol=body.protocol_name,
        assignments=tuple(
            [_make_assignment(each.member_id, each.assignment) for each in body.assignments]
        ),
    )
    broker.groups.submit(command, now)


def _respond(reply: Reply) -> SyncGroupResponse:
    match reply:
        case Refused():
            return SyncGroupResponse(error_code=reply.error)
        case Synced():
            return SyncGroupResponse(
                protocol_type=reply.protocol_type,
                protocol_name=reply.protocol,
                assignment=reply.assignment,
            )
        case _:
            raise AssertionError(f"a sync cannot be answered with {reply}")
