"""Requests with a large number of entries, one function for each API."""

from kohort.types import (
    BrokerId,
    Generation,
    GroupId,
    MemberId,
    Millis,
    Offset,
    Partition,
    Topic,
)
from kohort.wire.api.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kohort.wire.api.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kohort.wire.api.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kohort.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic
from kohort.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.api.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kohort.wire.api.k10_find_coordinator import FindCoordinatorRequest
from kohort.wire.api.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kohort.wire.api.k13_leave_group import LeaveGroupRequest, MemberIdentity
from kohort.wire.api.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kohort.wire.api.k15_describe_groups import DescribeGroupsRequest
from kohort.wire.api.k19_create_topics import CreatableTopic, CreateTopicsRequest
from kohort.wire.api.k20_delete_topics import DeleteTopicsRequest
from kohort.wire.api.k21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kohort.wire.api.k23_offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kohort.wire.api.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kohort.wire.api.k35_describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from kohort.wire.api.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kohort.wire.api.k42_delete_groups import DeleteGroupsRequest
from kohort.wire.api.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kohort.wire.api.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kohort.wire.api.k75_describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)

TOPIC = Topic("target")
GROUP = GroupId("target")
_TIMEOUT_MS = Millis(200_000)
_TOPIC_RESOURCE = 2


def produce(batch: bytes, topic: Topic = TOPIC, acks: int = -1) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=batch)
    return ProduceRequest(
        acks=acks,
        timeout_ms=_TIMEOUT_MS,
        topic_data=(TopicProduceData(name=topic, partition_data=(data,)),),
    )


def produce_empty(count: int) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=None)
    topic = TopicProduceData(name=TOPIC, partition_data=(data,) * count)
    return ProduceRequest(acks=-1, timeout_ms=_TIMEOUT_MS, topic_data=(topic,))


def fetch(count: int) -> FetchRequest:
    """One partition, named again and again."""
    asked = FetchPartition(
        partition=Partition(0), fetch_offset=Offset(0), partition_max_bytes=1 << 20
    )
    topic = FetchTopic(topic=TOPIC, partitions=(asked,) * count)
    return FetchRequest(max_wait_ms=Millis(0), min_bytes=0, topics=(topic,))


def list_offsets(count: int) -> ListOffsetsRequest:
    partitions = tuple(
        ListOffsetsPartition(partition_index=Partition(each), timestamp=Millis(-1))
        for each in range(count)
    )
    topic = ListOffsetsTopic(name=TOPIC, partitions=partitions)
    return ListOffsetsRequest(replica_id=BrokerId(-1), topics=(topic,))


def metadata(count: int, *, is_creating: bool = False) -> MetadataRequest:
    return MetadataRequest(
        topics=tuple(MetadataRequestTopic(name=Topic(f"n{each:x}")) for each in range(count)),
        allow_auto_topic_creation=is_creating,
    )


def offset_commit(count: int) -> OffsetCommitRequest:
    partitions = tuple(
        OffsetCommitRequestPartition(
            partition_index=Partition(each), committed_offset=Offset(1), committed_metadata=""
        )
        for each in range(count)
    )
    topic = OffsetCommitRequestTopic(name=TOPIC, partitions=partitions)
    return OffsetCommitRequest(group_id=GROUP, topics=(topic,))


def offset_fetch(count: int) -> OffsetFetchRequest:
    partitions = tuple(Partition(each) for each in range(count))
    topic = OffsetFetchRequestTopics(name=TOPIC, partition_indexes=partitions)
    group = OffsetFetchRequestGroup(group_id=GROUP, topics=(topic,))
    return OffsetFetchRequest(groups=(group,))


def find_coordinator(count: int) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(coordinator_keys=tuple(f"g{each:x}" for each in range(count)))


def join_group(count: int) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=Millis(10_000),
        rebalance_timeout_ms=Millis(10_000),
        protocol_type="consumer",
        protocols=tuple(
            JoinGroupRequestProtocol(name=f"p{each:x}", metadata=b"") for each in range(count)
        ),
    )


def leave_group(count: int) -> LeaveGroupRequest:
    members = tuple(MemberIdentity(member_id=MemberId(f"m{each:x}")) for each in range(count))
    return LeaveGroupRequest(group_id=GROUP, members=members)


def sync_group(count: int) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=GROUP,
        generation_id=Generation(1),
        member_id=MemberId("m"),
        assignments=tuple(
            SyncGroupRequestAssignment(member_id=MemberId(f"m{each:x}"), assignment=b"")
            for each in range(count)
        ),
    )


def describe_groups(count: int) -> DescribeGroupsRequest:
    return DescribeGroupsRequest(groups=tuple(GroupId(f"g{each:x}") for each in range(count)))


def create_topic(partitions: int, topic: Topic = TOPIC) -> CreateTopicsRequest:
    wanted = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
    return CreateTopicsRequest(topics=(wanted,), timeout_ms=_TIMEOUT_MS)


def create_invalid_topics(count: int) -> CreateTopicsRequest:
    """None has a valid name."""
    return CreateTopicsRequest(
        topics=tuple(
            CreatableTopic(name=Topic(f"?{each:x}"), num_partitions=1, replication_factor=1)
            for each in range(count)
        ),
        timeout_ms=_TIMEOUT_MS,
    )


def delete_topic(topic: Topic = TOPIC) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topic_names=(topic,), timeout_ms=_TIMEOUT_MS)


def delete_unknown_topics(count: int) -> DeleteTopicsRequest:
    names = tuple(Topic(f"n{each:x}") for each in range(count))
    return DeleteTopicsRequest(topic_names=names, timeout_ms=_TIMEOUT_MS)


def delete_records(count: int) -> DeleteRecordsRequest:
    partitions = tuple(
        DeleteRecordsPartition(partition_index=Partition(each), offset=Offset(0))
        for each in range(count)
    )
    topic = DeleteRecordsTopic(name=TOPIC, partitions=partitions)
    return DeleteRecordsRequest(topics=(topic,), timeout_ms=_TIMEOUT_MS)


def offset_for_leader_epoch(count: int) -> OffsetForLeaderEpochRequest:
    partitions = tuple(
        OffsetForLeaderPartition(partition=Partition(each), leader_epoch=0) for each in range(count)
    )
    topic = OffsetForLeaderTopic(topic=TOPIC, partitions=partitions)
    return OffsetForLeaderEpochRequest(replica_id=BrokerId(-1), topics=(topic,))


def describe_configs(count: int) -> DescribeConfigsRequest:
    """One topic with all its settings, named again and again."""
    one = DescribeConfigsResource(
        resource_type=_TOPIC_RESOURCE, resource_name=TOPIC, configuration_keys=None
    )
    return DescribeConfigsRequest(
        resources=(one,) * count, include_synonyms=True, include_documentation=True
    )


def describe_log_dirs(count: int) -> DescribeLogDirsRequest:
    one = DescribableLogDirTopic(topic=TOPIC, partitions=(Partition(0),))
    return DescribeLogDirsRequest(topics=(one,) * count)


def create_partitions(count: int) -> CreatePartitionsRequest:
    topics = tuple(
        CreatePartitionsTopic(name=Topic(f"n{each:x}"), count=2, assignments=None)
        for each in range(count)
    )
    return CreatePartitionsRequest(topics=topics, timeout_ms=_TIMEOUT_MS)


def grow_topic(partitions: int) -> CreatePartitionsRequest:
    wanted = CreatePartitionsTopic(name=TOPIC, count=partitions, assignments=None)
    return CreatePartitionsRequest(topics=(wanted,), timeout_ms=_TIMEOUT_MS)


def delete_groups(count: int) -> DeleteGroupsRequest:
    return DeleteGroupsRequest(groups_names=tuple(GroupId(f"g{each:x}") for each in range(count)))


def alter_configs(count: int) -> IncrementalAlterConfigsRequest:
    """Different topics, of which none exists."""
    change = AlterableConfig(name="retention.ms", config_operation=0, value="1000")
    return IncrementalAlterConfigsRequest(
        resources=tuple(
            AlterConfigsResource(
                resource_type=_TOPIC_RESOURCE, resource_name=f"n{each:x}", configs=(change,)
            )
            for each in range(count)
        )
    )


def offset_delete(count: int) -> OffsetDeleteRequest:
    partitions = tuple(
        OffsetDeleteRequestPartition(partition_index=Partition(each)) for each in range(count)
    )
    topic = OffsetDeleteRequestTopic(name=TOPIC, partitions=partitions)
    return OffsetDeleteRequest(group_id=GROUP, topics=(topic,))


def describe_topic_partitions(count: int) -> DescribeTopicPartitionsRequest:
    return DescribeTopicPartitionsRequest(
        topics=tuple(TopicRequest(name=Topic(f"n{each:x}")) for each in range(count))
    )
