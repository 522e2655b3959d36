"""Metadata, API key 3: the brokers, the topics, and the leader of each partition.

Clients request it first, and again after a leader change. A group leader uses it for assignments.

Version notes:
 0   an empty list of topics requests all
 1   null requests all topics and an empty list none; racks, the controller, internal topics
 2   the cluster's id (KIP-78)
 3   the response has the throttle time (KIP-124)
 4   the client can disable topic auto-creation
 5   offline replicas (KIP-112)
 6   the broker responds before it throttles (KIP-219)
 7   leader epochs (KIP-320)
 8   authorized operations, if requested (KIP-430)
 9   flexible (KIP-482)
 10  topic ids in the response (KIP-516)
 11  the cluster's authorized operations move to DescribeCluster (KIP-700)
 12  topics can be requested by id (KIP-516)
 13  an error for the whole response: REBOOTSTRAP_REQUIRED (KIP-1102)
"""

from kohort.types import BrokerId, Millis, Partition, Topic, Uuid
from kohort.wire.schema import array, boolean, int16, int32, message, part, string, uuid


@part
class MetadataRequestTopic:
    topic_id: Uuid = uuid(since=10, ignorable=True)
    name: Topic | None = string(nullable_since=10)


@message(api_key=3, versions=(0, 13), flexible_since=9)
class MetadataRequest:
    # Null requests all topics. Version 0 has no null; there an empty list does.
    topics: tuple[MetadataRequestTopic, ...] | None = array(MetadataRequestTopic, nullable_since=1)
    allow_auto_topic_creation: bool = boolean(since=4, default=True)
    include_cluster_authorized_operations: bool = boolean(since=8, until=10)
    include_topic_authorized_operations: bool = boolean(since=8)


@part
class MetadataResponseBroker:
    node_id: BrokerId = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(since=1, nullable_since=1, default=None, ignorable=True)


@part
class MetadataResponsePartition:
    error_code: int = int16()
    partition_index: Partition = int32()
    # -1 if there is no leader.
    leader_id: BrokerId = int32()
    leader_epoch: int = int32(since=7, default=-1, ignorable=True)
    replica_nodes: tuple[BrokerId, ...] = array("int32")
    isr_nodes: tuple[BrokerId, ...] = array("int32")
    offline_replicas: tuple[BrokerId, ...] = array("int32", since=5, ignorable=True)


@part
class MetadataResponseTopic:
    error_code: int = int16()
    # Null if the requested topic id is unknown.
    name: Topic | None = string(nullable_since=12)
    topic_id: Uuid = uuid(since=10, ignorable=True)
    is_internal: bool = boolean(since=1, ignorable=True)
    partitions: tuple[MetadataResponsePartition, ...] = array(MetadataResponsePartition)
    # The minimum int32 if not requested.
    topic_authorized_operations: int = int32(since=8, default=-2147483648)


@message(api_key=3, versions=(0, 13), flexible_since=9)
class MetadataResponse:
    throttle_time_ms: Millis = int32(since=3, ignorable=True)
    brokers: tuple[MetadataResponseBroker, ...] = array(MetadataResponseBroker)
    cluster_id: str | None = string(since=2, nullable_since=2, default=None, ignorable=True)
    controller_id: BrokerId = int32(since=1, default=-1, ignorable=True)
    topics: tuple[MetadataResponseTopic, ...] = array(MetadataResponseTopic)
    cluster_authorized_operations: int = int32(since=8, until=10, default=-2147483648)
    error_code: int = int16(since=13, ignorable=True)
