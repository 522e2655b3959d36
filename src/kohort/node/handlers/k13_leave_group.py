"""LeaveGroup: one member or many; before version 3 the one member's error is the request's."""

from kohort.coordinator.commands import LeaveGroup, LeavingMember
from kohort.coordinator.replies import LeaveAnswered, Reply, RequestRefused
from kohort.node.broker import Broker
from kohort.node.request import PARKED, Request
from kohort.types import Millis
from kohort.wire.api.k13_leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse


def handle(broker: Broker, request: Request, now: Millis) -> object:
    body: LeaveGroupRequest = request.body
    if request.version < 3:
        leavers: tuple[LeavingMember, ...] = (LeavingMember(member_id=body.member_id),)
    else:
        leavers = tuple(
            LeavingMember(
                member_id=member.member_id,
                instance_id=member.group_instance_id,
                reason=member.reason,
            )
            for member in body.members
        )
    ticket = broker.park(request, _respond)
    command = LeaveGroup(ticket=ticket, group_id=body.group_id, members=leavers)
    broker.groups.submit(command, now)
    return PARKED


def _respond(request: Request, reply: Reply) -> LeaveGroupResponse:
    match reply:
        case RequestRefused():
            return LeaveGroupResponse(error_code=reply.error)
        case LeaveAnswered() if request.version < 3:
            return LeaveGroupResponse(error_code=reply.members[0].error)
        case LeaveAnswered():
            return LeaveGroupResponse(
                members=tuple(
                    MemberResponse(
                        member_id=left.member_id,
                        group_instance_id=left.instance_id,
                        error_code=left.error,
                    )
                    for left in reply.members
                )
            )
        case _:
            raise AssertionError(f"unexpected reply to leave: {reply}")
