"""DescribeGroups: state, protocol and members of each group that was named."""

from typing import Final

from kohort.coordinator import replies
from kohort.coordinator.commands import DescribeGroups
from kohort.coordinator.replies import GroupsDescribed, Refused, Reply
from kohort.node.broker import Broker
from kohort.node.request import Request
from kohort.types import ErrorCode, GroupId, Millis
from kohort.wire.api.k15_describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

# Read, delete, describe, describe and alter configs: all that can be done to a group, since
# nobody is kept from anything here.
_ALL_OPERATIONS: Final = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
_NOT_ASKED: Final = -(2**31)


def handle(broker: Broker, request: Request, now: Millis) -> None:
    body: DescribeGroupsRequest = request.body
    operations = _ALL_OPERATIONS if body.include_authorized_operations else _NOT_ASKED
    is_explained = request.version >= 6

    def deliver(reply: Reply) -> None:
        groups = _described(reply, body.groups, operations, is_explained=is_explained)
        request.answer(DescribeGroupsResponse(groups=groups))

    command = DescribeGroups(
        ticket=broker.groups.issue(deliver),
        group_ids=body.groups,
        knows_missing_group=is_explained,
    )
    broker.groups.submit(command, now)


def _described(
    reply: Reply, group_ids: tuple[GroupId, ...], operations: int, *, is_explained: bool
) -> tuple[DescribedGroup, ...]:
    match reply:
        case Refused():
            return tuple(
                DescribedGroup(group_id=group_id, error_code=reply.error) for group_id in group_ids
            )
        case GroupsDescribed():
            return tuple(
                _group(each, operations, is_explained=is_explained) for each in reply.groups
            )
        case _:
            raise AssertionError(f"a describe cannot be answered with {reply}")


def _group(group: replies.DescribedGroup, operations: int, *, is_explained: bool) -> DescribedGroup:
    is_missing = group.error is ErrorCode.GROUP_ID_NOT_FOUND
    message = f"Group {group.group_id} not found." if is_missing and is_explained else None
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
        authorized_operations=operations if not group.error else _NOT_ASKED,
    )
