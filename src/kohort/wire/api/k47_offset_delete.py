"""OffsetDelete, API key 47: deletes committed offsets of a group (KIP-496).

Offsets of topics with a subscribed member are kept; the error is GROUP_SUBSCRIBED_TO_TOPIC.

Version notes:
 0  the only version so far; it never became flexible
"""

from kohort.types import GroupId, Millis, Partition, Topic
from kohort.wire.schema import array, int16, int32, message, part, string


@part
class OffsetDeleteRequestPartition:
    partition_index: Partition = int32()


@part
class OffsetDeleteRequestTopic:
    name: Topic = string()
    partitions: tuple[OffsetDeleteRequestPartition, ...] = array(OffsetDeleteRequestPartition)


@message(api_key=47, versions=(0, 0))
class OffsetDeleteRequest:
    group_id: GroupId = string()
    topics: tuple[OffsetDeleteRequestTopic, ...] = array(OffsetDeleteRequestTopic)


@part
class OffsetDeleteResponsePartition:
    partition_index: Partition = int32()
    error_code: int = int16()


@part
class OffsetDeleteResponseTopic:
    name: Topic = string()
    partitions: tuple[OffsetDeleteResponsePartition, ...] = array(OffsetDeleteResponsePartition)


@message(api_key=47, versions=(0, 0))
class OffsetDeleteResponse:
    # Unlike in other APIs, the error comes before the throttle time.
    error_code: int = int16()
    throttle_time_ms: Millis = int32(ignorable=True)
    topics: tuple[OffsetDeleteResponseTopic, ...] = array(OffsetDeleteResponseTopic)
