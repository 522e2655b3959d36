"""CreateTopics, API key 19: creates topics.

Version notes:
 0-1  removed in Kafka 4.0 (KIP-896)
 2    the response has the throttle time (KIP-124)
 3    the broker responds before it throttles (KIP-219)
 4    the broker's defaults for partitions and replicas (KIP-464)
 5    flexible (KIP-482); the topic's settings in the response (KIP-525)
 6    the error THROTTLING_QUOTA_EXCEEDED (KIP-599)
 7    the topic id in the response (KIP-516)
"""

from kohort.types import BrokerId, Millis, Partition, Topic, Uuid
from kohort.wire.schema import array, boolean, int8, int16, int32, message, part, string, uuid


@part
class CreatableReplicaAssignment:
    partition_index: Partition = int32()
    broker_ids: tuple[BrokerId, ...] = array("int32")


@part
class CreatableTopicConfig:
    name: str = string()
    value: str | None = string(nullable_since=0)


@part
class CreatableTopic:
    name: Topic = string()
    # -1 for the broker's default, or with an explicit assignment; the same below.
    num_partitions: int = int32()
    replication_factor: int = int16()
    assignments: tuple[CreatableReplicaAssignment, ...] = array(CreatableReplicaAssignment)
    configs: tuple[CreatableTopicConfig, ...] = array(CreatableTopicConfig)


@message(api_key=19, versions=(2, 7), flexible_since=5)
class CreateTopicsRequest:
    topics: tuple[CreatableTopic, ...] = array(CreatableTopic)
    timeout_ms: Millis = int32(default=60000)
    validate_only: bool = boolean(since=1)


@part
class CreatableTopicConfigs:
    name: str = string(since=5)
    value: str | None = string(since=5, nullable_since=5)
    read_only: bool = boolean(since=5)
    config_source: int = int8(since=5, default=-1, ignorable=True)
    is_sensitive: bool = boolean(since=5)


@part
class CreatableTopicResult:
    name: Topic = string()
    topic_id: Uuid = uuid(since=7, ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(since=1, nullable_since=0, ignorable=True)
    # The error if the settings below are null: the client may create the topic but not describe it.
    topic_config_error_code: int = int16(since=5, tag=0, ignorable=True)
    num_partitions: int = int32(since=5, default=-1, ignorable=True)
    replication_factor: int = int16(since=5, default=-1, ignorable=True)
    configs: tuple[CreatableTopicConfigs, ...] | None = array(
        CreatableTopicConfigs, since=5, nullable_since=5, ignorable=True
    )


@message(api_key=19, versions=(2, 7), flexible_since=5)
class CreateTopicsResponse:
    throttle_time_ms: Millis = int32(since=2, ignorable=True)
    topics: tuple[CreatableTopicResult, ...] = array(CreatableTopicResult)
