"""JoinGroup, API key 11: a member asks to be in the group's next generation.

The coordinator answers all members at once, when everyone has come or the time is up.

Version notes:
 1  the rebalance timeout is the member's own; before, the session timeout served as both (KIP-62)
 2  the response tells the throttle time (KIP-124)
 3  the broker answers first and throttles afterwards (KIP-219)
 4  a member without an id is given one and asked to come back with it (KIP-394)
 5  a static member gives its instance id (KIP-345)
 6  flexible (KIP-482)
 7  the response tells the protocol type, and the protocol may be null (KIP-559)
 8  the member may say why it joins (KIP-800)
 9  a leader may be told to leave the assignment as it is (KIP-814)
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
    # -1 stands for version 0, where the session timeout counts instead.
    rebalance_timeout_ms: Millis = int32(since=1, default=-1, ignorable=True)
    # Empty from a member that has none yet.
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
    # Null beside an error since version 7, empty before.
    protocol_name: str | None = string(nullable_since=7)
    leader: MemberId = string()
    # Set for a static leader that came back while the group stayed stable.
    skip_assignment: bool = boolean(since=9)
    member_id: MemberId = string()
    # Told to the leader; empty for everyone else.
    members: tuple[JoinGroupResponseMember, ...] = array(JoinGroupResponseMember)
