"""DescribeGroups, API key 15: the state, members and assignment of classic groups, for tools.

It must be sent to the coordinator of the group.

Version notes:
 1  the response has the throttle time (KIP-124)
 2  the broker responds before it throttles (KIP-219)
 3  authorized operations, if requested (KIP-430)
 4  the instance ids of static members (KIP-345)
 5  flexible (KIP-482)
 6  an unknown group is GROUP_ID_NOT_FOUND; before, its state was Dead (KIP-1043)
"""

from kohort.types import GroupId, InstanceId, MemberId, Millis
from kohort.wire.schema import array, blob, boolean, int16, int32, message, part, string


@message(api_key=15, versions=(0, 6), flexible_since=5)
class DescribeGroupsRequest:
    groups: tuple[GroupId, ...] = array("string")
    include_authorized_operations: bool = boolean(since=3)


@part
class DescribedGroupMember:
    member_id: MemberId = string()
    group_instance_id: InstanceId | None = string(
        since=4, nullable_since=4, default=None, ignorable=True
    )
    client_id: str = string()
    client_host: str = string()
    # Empty, like the assignment, unless the group is stable.
    member_metadata: bytes = blob()
    member_assignment: bytes = blob()


@part
class DescribedGroup:
    error_code: int = int16()
    error_message: str | None = string(since=6, nullable_since=6, default=None)
    group_id: GroupId = string()
    group_state: str = string()
    protocol_type: str = string()
    # The name of the chosen protocol; empty unless the group is stable.
    protocol_data: str = string()
    members: tuple[DescribedGroupMember, ...] = array(DescribedGroupMember)
    # The minimum int32 if not requested.
    authorized_operations: int = int32(since=3, default=-2147483648)


@message(api_key=15, versions=(0, 6), flexible_since=5)
class DescribeGroupsResponse:
    throttle_time_ms: Millis = int32(since=1, ignorable=True)
    groups: tuple[DescribedGroup, ...] = array(DescribedGroup)
