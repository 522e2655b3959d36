"""CreatePartitions, API key 37: adds partitions to topics (KIP-195).

Groups that read the topics rebalance after their next metadata update.

Version notes:
 1  the broker responds before it throttles (KIP-219)
 2  flexible (KIP-482)
 3  the error THROTTLING_QUOTA_EXCEEDED (KIP-599)
"""

from kohort.types import BrokerId, Millis, Topic
from kohort.wire.schema import array, boolean, int16, int32, message, part, string


@part
class CreatePartitionsAssignment:
    broker_ids: tuple[BrokerId, ...] = array("int32")


@part
class CreatePartitionsTopic:
    name: Topic = string()
    # The new total, not the number of added partitions.
    count: int = int32()
    # Null to let the brokers assign replicas.
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
