"""DescribeGroups: state, protocol and members of the requested groups."""

from typing import Final

from kohort.coordinator import replies
from kohort.coordinator.commands import DescribeGroups
from kohort.coordinator.replies import GroupsDescribed, Reply, RequestRefused
from kohort.node.authorized_operations import GROUP_OPERATIONS, NOT_REQUESTED
from kohort.node.broker import Broker
from kohort.node.request import ITEMS_PER_SLICE, PARKED, ParkedForMany, Request, SlicedWork
from kohort.types import ErrorCode, GroupId, Millis
from kohort.wire.api.k15_describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

_MISSING_GROUP_ERROR_SINCE: Final = 6
"""The first version in which a missing group is an error with a message."""


def handle(broker: Broker, request: Request, now: Millis) -> SlicedWork:
    body: DescribeGroupsRequest = request.body
    # Described once, although a small request may name a large group many times.
    distinct = tuple(dict.fromkeys(body.groups))
    chunks = [
        distinct[first : first + ITEMS_PER_SLICE]
        for first in range(0, len(distinct), ITEMS_PER_SLICE)
    ] or [()]
    request.context = chunks
    waiter = ParkedForMany(request, _respond, len(chunks))
    for index, group_ids in enumerate(chunks, 1):
        command = DescribeGroups(
            ticket=broker.groups.open(waiter),
            group_ids=group_ids,
            knows_missing_group=request.version >= _MISSING_GROUP_ERROR_SINCE,
        )
        broker.groups.submit(command, now)
        if index < len(chunks):
            now = yield
    return PARKED


def _respond(request: Request, replies: list[Reply]) -> SlicedWork:
    body: DescribeGroupsRequest = request.body
    operations = GROUP_OPERATIONS if body.include_authorized_operations else NOT_REQUESTED
    has_message = request.version >= _MISSING_GROUP_ERROR_SINCE
    groups: dict[GroupId, DescribedGroup] = {}
    chunks: list[tuple[GroupId, ...]] = request.context
    for reply, asked in zip(replies, chunks, strict=True):
        if groups:
            yield
        match reply:
            case RequestRefused():
                for each in asked:
                    groups[each] = DescribedGroup(group_id=each, error_code=reply.error)
            case GroupsDescribed():
                for each, described in zip(asked, reply.groups, strict=True):
                    groups[each] = _group(described, operations, has_message=has_message)
            case _:
                raise AssertionError(f"unexpected reply to describe: {reply}")
    if len(groups) < len(body.groups):
        # The response may be many times as large as the groups: encoded in slices, it is bounded.
        yield
    return DescribeGroupsResponse(groups=tuple([groups[each] for each in body.groups]))


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
