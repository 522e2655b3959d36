"""SyncGroup, API key 14: the leader hands in all assignments, and each member is handed its own.

Members that come before the leader wait for it.

Version notes:
 1  the response tells the throttle time (KIP-124)
 2  the broker answers first and throttles afterwards (KIP-219)
 3  a static member gives its instance id (KIP-345)
 4  flexible (KIP-482)
 5  both sides name protocol type and protocol, and must agree (KIP-559)
"""

from kohort.types import Generation, GroupId, InstanceId, MemberId, Millis
from kohort.wire.schema import array, blob, int16, int32, message, part, string


@part
class SyncGroupRequestAssignment:
    member_id: MemberId = string()
    assignment: bytes = blob()


@message(api_key=14, versions=(0, 5), flexible_since=4)
class SyncGroupRequest:
    group_id: GroupId = string()
    generation_id: Generation = int32()
    member_id: MemberId = string()
    group_instance_id: InstanceId | None = string(since=3, nullable_since=3, default=None)
    protocol_type: str | None = string(since=5, nullable_since=5, default=None, ignorable=True)
    protocol_name: str | None = string(since=5, nullable_since=5, default=None, ignorable=True)
    # From the leader; empty from everyone else.
    assignments: tuple[SyncGroupRequestAssignment, ...] = array(SyncGroupRequestAssignment)


@message(api_key=14, versions=(0, 5), flexible_since=4)
class SyncGroupResponse:
    throttle_time_ms: Millis = int32(since=1, ignorable=True)
    error_code: int = int16()
    protocol_type: str | None = string(since=5, nullable_since=5, default=None, ignorable=True)
    protocol_name: str | None = string(since=5, nullable_since=5, default=None, ignorable=True)
    assignment: bytes = blob()
