"""LeaveGroup, API key 13: a member leaves without waiting for its session to end.

Tools use it to remove members that will not return.

Version notes:
 1  the response has the throttle time (KIP-124)
 2  the broker responds before it throttles (KIP-219)
 3  several members per request, static ones by instance id; an error per member (KIP-345)
 4  flexible (KIP-482)
 5  the reason why the member leaves (KIP-800)
"""

from kohort.types import GroupId, InstanceId, MemberId, Millis
from kohort.wire.schema import array, int16, int32, message, part, string


@part
class MemberIdentity:
    # Empty if a tool removes a static member by its instance id.
    member_id: MemberId = string(since=3)
    group_instance_id: InstanceId | None = string(since=3, nullable_since=3, default=None)
    reason: str | None = string(since=5, nullable_since=5, default=None, ignorable=True)


@message(api_key=13, versions=(0, 5), flexible_since=4)
class LeaveGroupRequest:
    group_id: GroupId = string()
    member_id: MemberId = string(until=2)
    members: tuple[MemberIdentity, ...] = array(MemberIdentity, since=3)


@part
class MemberResponse:
    member_id: MemberId = string(since=3)
    group_instance_id: InstanceId | None = string(since=3, nullable_since=3)
    error_code: int = int16(since=3)


@message(api_key=13, versions=(0, 5), flexible_since=4)
class LeaveGroupResponse:
    throttle_time_ms: Millis = int32(since=1, ignorable=True)
    # Up to version 2 the error of the member, since then an error of the whole request.
    error_code: int = int16()
    members: tuple[MemberResponse, ...] = array(MemberResponse, since=3)
