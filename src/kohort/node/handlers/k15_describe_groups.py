"""DescribeGroups: state, protocol and members of the requested groups."""

from typing import Final

from kohort.coordinator import replies
from kohort.coordinator.commands import DescribeGroups
from kohort.coordinator.replies import GroupsDescribed, Reply, RequestRefused
from kohort.node.authorized_operations import GROUP_OPERATIONS, NOT_REQUESTED
from kohort.node.broker import Broker
from kohort.node.request import PARKED, Request
from kohort.types import ErrorCode, Millis
from kohort.wire.api.k15_describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

_MISSING_GROUP_ERROR_SINCE: Final = 6
"""The first version in which a missing group is an error with a message."""


def handle(broker: Broker, request: Request, now: Millis) -> object:
    body: DescribeGroupsRequest = request.body
    command = DescribeGroups(
        ticket=broker.park(request, _respond),
        group_ids=body.groups,
        knows_missing_group=request.version >= _MISSING_GROUP_ERROR_SINCE,
    )
    broker.groups.submit(command, now)
    return PARKED


def _respond(request: Request, reply: Reply) -> DescribeGroupsResponse:
    body: DescribeGroupsRequest = request.body
    operations = GROUP_OPERATIONS if body.include_authorized_operations else NOT_REQUESTED
    has_message = request.version >= _MISSING_GROUP_ERROR_SINCE
    match reply:
        case RequestRefused():
            groups = [DescribedGroup(group_id=each, error_code=reply.error) for each in body.groups]
        case GroupsDescribed():
            groups = [_group(each, operations, has_message=has_message) for each in reply.groups]
        case _:
            raise AssertionError(f"unexpected reply to describe: {reply}")
    return DescribeGroupsResponse(groups=tuple(groups))


def _group(
    group: replies.GroupDescription, operations: int, *, has_message: bool
) -> DescribedGroup:
    is_missing = group.error is ErrorCode.GROUP_ID_NOT_FOUND
    message = f"Group {group.group_id} not found." if is_missing and has_message else None
    return DescribedGroup(
        error_code=group.error,
        error_message=message,
        group_id=group.group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol,
        members=tuple(
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata,
                member_assignment=member.assignment,
            )
            for member in group.members
        ),
        authorized_operations=operations if not group.error else NOT_REQUESTED,
    )
