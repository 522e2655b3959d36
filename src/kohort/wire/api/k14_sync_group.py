"""SyncGroup, API key 14: the leader sends all assignments, and each member receives its own.

The responses to the other members wait for the leader's request.

Version notes:
 1  the response has the throttle time (KIP-124)
 2  the broker responds before it throttles (KIP-219)
 3  the instance id of a static member (KIP-345)
 4  flexible (KIP-482)
 5  protocol type and protocol in request and response; they must match (KIP-559)
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
    # Only from the leader; empty from all other members.
    assignments: tuple[SyncGroupRequestAssignment, ...] = array(SyncGroupRequestAssignment)


@message(api_key=14, versions=(0, 5), flexible_since=4)
class SyncGroupResponse:
    throttle_time_ms: Millis = int32(since=1, ignorable=True)
    error_code: int = int16()
    protocol_type: str | None = string(since=5, nullable_since=5, default=None, ignorable=True)
    protocol_name: str | None = string(since=5, nullable_since=5, default=None, ignorable=True)
    assignment: bytes = blob()
