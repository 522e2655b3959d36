"""ConsumerGroupHeartbeat, API key 68: join, heartbeat, assignment and leave (KIP-848).

It is the only API of the newer group protocol. Both sides omit fields that have not changed.

Version notes:
 0  flexible from the start (KIP-482)
 1  subscription by regular expression; the member generates its own id (KIP-1082)
"""

from kohort.types import GroupId, InstanceId, MemberId, Millis, Partition, Topic, Uuid
from kohort.wire.schema import array, int16, int32, message, part, string, struct, uuid


@part
class TopicPartitions:
    topic_id: Uuid = uuid()
    partitions: tuple[Partition, ...] = array("int32")


@message(api_key=68, versions=(0, 1), flexible_since=0)
class ConsumerGroupHeartbeatRequest:
    group_id: GroupId = string()
    member_id: MemberId = string()
    # 0 joins, -1 leaves, -2 is a static member that leaves and will return.
    member_epoch: int = int32()
    # From here on, null or -1 means: not set, or unchanged since the last heartbeat.
    instance_id: InstanceId | None = string(nullable_since=0, default=None)
    rack_id: str | None = string(nullable_since=0, default=None)
    rebalance_timeout_ms: Millis = int32(default=-1)
    subscribed_topic_names: tuple[Topic, ...] | None = array(
        "string", nullable_since=0, default=None
    )
    subscribed_topic_regex: str | None = string(since=1, nullable_since=1, default=None)
    server_assignor: str | None = string(nullable_since=0, default=None)
    topic_partitions: tuple[TopicPartitions, ...] | None = array(
        TopicPartitions, nullable_since=0, default=None
    )


@part
class Assignment:
    topic_partitions: tuple[TopicPartitions, ...] = array(TopicPartitions)


@message(api_key=68, versions=(0, 1), flexible_since=0)
class ConsumerGroupHeartbeatResponse:
    throttle_time_ms: Millis = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0, default=None)
    member_id: MemberId | None = string(nullable_since=0, default=None)
    member_epoch: int = int32()
    heartbeat_interval_ms: Millis = int32()
    # Null if unchanged. An empty assignment revokes all partitions.
    assignment: Assignment | None = struct(Assignment, nullable_since=0, default=None)
