"""CreatePartitions, API key 37: an administrator adds partitions to topics (KIP-195).

Groups that read them notice at their next look at the metadata, and rebalance.

Version notes:
 1  the broker answers first and throttles afterwards (KIP-219)
 2  flexible (KIP-482)
 3  THROTTLING_QUOTA_EXCEEDED may be answered (KIP-599)
"""

from kohort.types import BrokerId, Millis, Topic
from kohort.wire.schema import array, boolean, int16, int32, message, part, string


@part
class CreatePartitionsAssignment:
    broker_ids: tuple[BrokerId, ...] = array("int32")


@part
class CreatePartitionsTopic:
    name: Topic = string()
    # How many there shall be, not how many more.
    count: int = int32()
    # Null leaves the placing to the brokers.
    assignments: tuple[CreatePartitionsAssignment, ...] | None = array(
        CreatePartitionsAssignment, nullable_since=0
    )


@message(api_key=37, versions=(0, 3), flexible_since=2)
class CreatePartitionsRequest:
    topics: tuple[CreatePartitionsTopic, ...] = array(CreatePartitionsTopic)
    timeout_ms: Millis = int32()
    validate_only: bool = boolean()


@part
class CreatePartitionsTopicResult:
    name: Topic = string()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0, default=None)


@message(api_key=37, versions=(0, 3), flexible_since=2)
class CreatePartitionsResponse:
    throttle_time_ms: Millis = int32()
    results: tuple[CreatePartitionsTopicResult, ...] = array(CreatePartitionsTopicResult)
