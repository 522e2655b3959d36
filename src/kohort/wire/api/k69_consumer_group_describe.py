"""ConsumerGroupDescribe, API key 69: epochs, members and assignments of KIP-848 groups, for tools.

It corresponds to DescribeGroups for classic groups.

Version notes:
 0  flexible from the start (KIP-482)
 1  whether a member uses the classic or the consumer protocol (KIP-1099)
"""

from kohort.types import GroupId, InstanceId, MemberId, Millis, Partition, Topic, Uuid
from kohort.wire.schema import (
    array,
    boolean,
    int8,
    int16,
    int32,
    message,
    part,
    string,
    struct,
    uuid,
)


@message(api_key=69, versions=(0, 1), flexible_since=0)
class ConsumerGroupDescribeRequest:
    group_ids: tuple[GroupId, ...] = array("string")
    include_authorized_operations: bool = boolean()


@part
class TopicPartitions:
    topic_id: Uuid = uuid()
    topic_name: Topic = string()
    partitions: tuple[Partition, ...] = array("int32")


@part
class Assignment:
    topic_partitions: tuple[TopicPartitions, ...] = array(TopicPartitions)


@part
class Member:
    member_id: MemberId = string()
    instance_id: InstanceId | None = string(nullable_since=0, default=None)
    rack_id: str | None = string(nullable_since=0, default=None)
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: tuple[Topic, ...] = array("string")
    subscribed_topic_regex: str | None = string(nullable_since=0, default=None)
    assignment: Assignment = struct(Assignment)
    target_assignment: Assignment = struct(Assignment)
    # -1 unknown, 0 classic, 1 consumer.
    member_type: int = int8(since=1, default=-1, ignorable=True)


@part
class DescribedGroup:
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0, default=None)
    group_id: GroupId = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    assignor_name: str = string()
    members: tuple[Member, ...] = array(Member)
    # The minimum int32 if not requested.
    authorized_operations: int = int32(default=-2147483648)


@message(api_key=69, versions=(0, 1), flexible_since=0)
class ConsumerGroupDescribeResponse:
    throttle_time_ms: Millis = int32()
    groups: tuple[DescribedGroup, ...] = array(DescribedGroup)
