"""Heartbeat, API key 12: keeps the session of a member alive and reports rebalances.

REBALANCE_IN_PROGRESS is the normal signal to send JoinGroup again.

Version notes:
 1  the response has the throttle time (KIP-124)
 2  the broker responds before it throttles (KIP-219)
 3  the instance id of a static member (KIP-345)
 4  flexible (KIP-482)
"""

from kohort.types import Generation, GroupId, InstanceId, MemberId, Millis
from kohort.wire.schema import int16, int32, message, string


@message(api_key=12, versions=(0, 4), flexible_since=4)
class HeartbeatRequest:
    group_id: GroupId = string()
    generation_id: Generation = int32()
    member_id: MemberId = string()
    group_instance_id: InstanceId | None = string(since=3, nullable_since=3, default=None)


@message(api_key=12, versions=(0, 4), flexible_since=4)
class HeartbeatResponse:
    throttle_time_ms: Millis = int32(since=1, ignorable=True)
    error_code: int = int16()
