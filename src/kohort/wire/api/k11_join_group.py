"""JoinGroup, API key 11: a member joins the next generation of a group.

The coordinator responds to all members together, when all have joined or the timeout is over.

Version notes:
 1  a rebalance timeout; in version 0 the session timeout is used for both (KIP-62)
 2  the response has the throttle time (KIP-124)
 3  the broker responds before it throttles (KIP-219)
 4  a member without an id gets one and must join again with it (KIP-394)
 5  the instance id of a static member (KIP-345)
 6  flexible (KIP-482)
 7  the response has the protocol type, and the protocol may be null (KIP-559)
 8  the reason why the member joins (KIP-800)
 9  the leader can be told to skip the assignment (KIP-814)
"""

from kohort.types import Generation, GroupId, InstanceId, MemberId, Millis
from kohort.wire.schema import array, blob, boolean, int16, int32, message, part, string


@part
class JoinGroupRequestProtocol:
    name: str = string()
    metadata: bytes = blob()


@message(api_key=11, versions=(0, 9), flexible_since=6)
class JoinGroupRequest:
    group_id: GroupId = string()
    session_timeout_ms: Millis = int32()
    # -1 in version 0, where the session timeout is used instead.
    rebalance_timeout_ms: Millis = int32(since=1, default=-1, ignorable=True)
    # Empty if the member has none yet.
    member_id: MemberId = string()
    group_instance_id: InstanceId | None = string(since=5, nullable_since=5, default=None)
    protocol_type: str = string()
    # In the member's order of preference.
    protocols: tuple[JoinGroupRequestProtocol, ...] = array(JoinGroupRequestProtocol)
    reason: str | None = string(since=8, nullable_since=8, default=None, ignorable=True)


@part
class JoinGroupResponseMember:
    member_id: MemberId = string()
    group_instance_id: InstanceId | None = string(
        since=5, nullable_since=5, default=None, ignorable=True
    )
    metadata: bytes = blob()


@message(api_key=11, versions=(0, 9), flexible_since=6)
class JoinGroupResponse:
    throttle_time_ms: Millis = int32(since=2, ignorable=True)
    error_code: int = int16()
    generation_id: Generation = int32(default=-1)
    protocol_type: str | None = string(since=7, nullable_since=7, default=None, ignorable=True)
    # With an error: null since version 7, empty before.
    protocol_name: str | None = string(nullable_since=7)
    leader: MemberId = string()
    # True for a static leader that rejoined while the group stayed stable.
    skip_assignment: bool = boolean(since=9)
    member_id: MemberId = string()
    # Only for the leader; empty for all other members.
    members: tuple[JoinGroupResponseMember, ...] = array(JoinGroupResponseMember)
