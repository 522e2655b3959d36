"""LeaveGroup: one member or many; before version 3 the one member's error is the request's."""

from kohort.coordinator.commands import LeaveGroup, Leaver
from kohort.coordinator.replies import LeaveAnswered, Refused, Reply
from kohort.node.broker import Broker
from kohort.node.request import Request
from kohort.types import Millis
from kohort.wire.api.k13_leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse


def handle(broker: Broker, request: Request, now: Millis) -> None:
    body: LeaveGroupRequest = request.body
    if request.version < 3:
        leavers: tuple[Leaver, ...] = (Leaver(member_id=body.member_id),)
    else:
        leavers = tuple(
            Leaver(
                member_id=member.member_id,
                instance_id=member.group_instance_id,
                reason=member.reason,
            )
            for member in body.members
        )
    ticket = broker.groups.issue(lambda reply: request.answer(_respond(reply, request.version)))
    command = LeaveGroup(ticket=ticket, group_id=body.group_id, leavers=leavers)
    broker.groups.submit(command, now)


def _respond(reply: Reply, version: int) -> LeaveGroupResponse:
    match reply:
        case Refused():
            return LeaveGroupResponse(error_code=reply.error)
        case LeaveAnswered() if version < 3:
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
            raise AssertionError(f"a leave cannot be answered with {reply}")
