"""The response to a request that is refused as a whole, for every served API.

The places of the error are those of Kafka's `AbstractRequest.getErrorResponse`: the top level, or
every topic, partition, group or resource that the request names. Nothing is decided here.

Two kinds of request have no place for an error: Metadata before version 13 for all topics, and
DescribeLogDirs before version 3. As in Kafka, their response is empty then.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from kohort.node.dispatch import SERVED
from kohort.types import BrokerId, ErrorCode, Offset, ProducerEpoch, Topic, value
from kohort.wire.api import (
    k00_produce,
    k01_fetch,
    k02_list_offsets,
    k03_metadata,
    k08_offset_commit,
    k09_offset_fetch,
    k10_find_coordinator,
    k11_join_group,
    k12_heartbeat,
    k13_leave_group,
    k14_sync_group,
    k15_describe_groups,
    k16_list_groups,
    k18_api_versions,
    k19_create_topics,
    k20_delete_topics,
    k21_delete_records,
    k22_init_producer_id,
    k23_offset_for_leader_epoch,
    k32_describe_configs,
    k35_describe_log_dirs,
    k37_create_partitions,
    k42_delete_groups,
    k44_incremental_alter_configs,
    k47_offset_delete,
    k60_describe_cluster,
    k75_describe_topic_partitions,
)
from kohort.wire.header import API_VERSIONS_KEY

_NO_OFFSET: Final = Offset(-1)
_NO_BROKER: Final = BrokerId(-1)
_ACKS_NONE: Final = 0

_ERRORS_OF_FETCH: Final = frozenset(
    (
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.UNSUPPORTED_VERSION,
    )
)
"""Errors of a whole fetch. All others are errors of partitions: clients ignore the partitions of a
response with an error at the top level, and only repeat the request."""


def make_error_response(
    api_key: int, body: Any, version: int, error: int, message: str | None = None
) -> object | None:
    """The response with the error in each place; None if the connection must be closed instead.

    That is so for a producer with acks=0, which expects no response. `message` is sent where the
    response has a place for it.
    """
    return _MAKERS[api_key](body, _Refused(version=version, error=error, message=message))


@value
class _Refused:
    """The version of the request, and the error it gets."""

    version: int
    error: int
    message: str | None


# Partitions and topics


def _produce(
    body: k00_produce.ProduceRequest, refused: _Refused
) -> k00_produce.ProduceResponse | None:
    if body.acks == _ACKS_NONE:
        return None
    return k00_produce.ProduceResponse(
        responses=tuple(
            k00_produce.TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=tuple(
                    k00_produce.PartitionProduceResponse(
                        index=each.index,
                        error_code=refused.error,
                        base_offset=_NO_OFFSET,
                        error_message=refused.message,
                    )
                    for each in topic.partition_data
                ),
            )
            for topic in body.topic_data
        )
    )


def _fetch(body: k01_fetch.FetchRequest, refused: _Refused) -> k01_fetch.FetchResponse:
    # DEVIATION: Kafka's getErrorResponse always sets the top level, because Kafka uses it only for
    # errors of the whole fetch. Its handler reports all others in the partitions.
    is_of_fetch = refused.error in _ERRORS_OF_FETCH or not body.topics
    if is_of_fetch and refused.version >= 13:
        return k01_fetch.FetchResponse(error_code=refused.error, session_id=body.session_id)
    return k01_fetch.FetchResponse(
        error_code=refused.error if is_of_fetch else 0,
        session_id=body.session_id if refused.version >= 7 else 0,
        responses=tuple(
            k01_fetch.FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=tuple(
                    k01_fetch.PartitionData(
                        partition_index=each.partition,
                        error_code=refused.error,
                        high_watermark=_NO_OFFSET,
                        records=b"",
                    )
                    for each in topic.partitions
                ),
            )
            for topic in body.topics
        ),
    )


def _list_offsets(
    body: k02_list_offsets.ListOffsetsRequest, refused: _Refused
) -> k02_list_offsets.ListOffsetsResponse:
    return k02_list_offsets.ListOffsetsResponse(
        topics=tuple(
            k02_list_offsets.ListOffsetsTopicResponse(
                name=topic.name,
                partitions=tuple(
                    k02_list_offsets.ListOffsetsPartitionResponse(
                        partition_index=each.partition_index, error_code=refused.error
                    )
                    for each in topic.partitions
                ),
            )
            for topic in body.topics
        )
    )


def _metadata(
    body: k03_metadata.MetadataRequest, refused: _Refused
) -> k03_metadata.MetadataResponse:
    return k03_metadata.MetadataResponse(
        error_code=refused.error,
        topics=tuple(
            k03_metadata.MetadataResponseTopic(
                error_code=refused.error, name=each.name or Topic(""), topic_id=each.topic_id
            )
            for each in body.topics or ()
        ),
    )


def _create_topics(
    body: k19_create_topics.CreateTopicsRequest, refused: _Refused
) -> k19_create_topics.CreateTopicsResponse:
    return k19_create_topics.CreateTopicsResponse(
        topics=tuple(
            k19_create_topics.CreatableTopicResult(
                name=each.name, error_code=refused.error, error_message=refused.message
            )
            for each in body.topics
        )
    )


def _delete_topics(
    body: k20_delete_topics.DeleteTopicsRequest, refused: _Refused
) -> k20_delete_topics.DeleteTopicsResponse:
    asked: Iterable[k20_delete_topics.DeleteTopicState] = body.topics
    if refused.version < 6:
        asked = (k20_delete_topics.DeleteTopicState(name=name) for name in body.topic_names)
    return k20_delete_topics.DeleteTopicsResponse(
        responses=tuple(
            k20_delete_topics.DeletableTopicResult(
                name=each.name,
                topic_id=each.topic_id,
                error_code=refused.error,
                error_message=refused.message,
            )
            for each in asked
        )
    )


def _delete_records(
    body: k21_delete_records.DeleteRecordsRequest, refused: _Refused
) -> k21_delete_records.DeleteRecordsResponse:
    return k21_delete_records.DeleteRecordsResponse(
        topics=tuple(
            k21_delete_records.DeleteRecordsTopicResult(
                name=topic.name,
                partitions=tuple(
                    k21_delete_records.DeleteRecordsPartitionResult(
                        partition_index=each.partition_index,
                        low_watermark=_NO_OFFSET,
                        error_code=refused.error,
                    )
                    for each in topic.partitions
                ),
            )
            for topic in body.topics
        )
    )


def _offset_for_leader_epoch(
    body: k23_offset_for_leader_epoch.OffsetForLeaderEpochRequest, refused: _Refused
) -> k23_offset_for_leader_epoch.OffsetForLeaderEpochResponse:
    return k23_offset_for_leader_epoch.OffsetForLeaderEpochResponse(
        topics=tuple(
            k23_offset_for_leader_epoch.OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=tuple(
                    k23_offset_for_leader_epoch.EpochEndOffset(
                        error_code=refused.error, partition=each.partition
                    )
                    for each in topic.partitions
                ),
            )
            for topic in body.topics
        )
    )


def _create_partitions(
    body: k37_create_partitions.CreatePartitionsRequest, refused: _Refused
) -> k37_create_partitions.CreatePartitionsResponse:
    return k37_create_partitions.CreatePartitionsResponse(
        results=tuple(
            k37_create_partitions.CreatePartitionsTopicResult(
                name=each.name, error_code=refused.error, error_message=refused.message
            )
            for each in body.topics
        )
    )


def _describe_topic_partitions(
    body: k75_describe_topic_partitions.DescribeTopicPartitionsRequest, refused: _Refused
) -> k75_describe_topic_partitions.DescribeTopicPartitionsResponse:
    return k75_describe_topic_partitions.DescribeTopicPartitionsResponse(
        topics=tuple(
            k75_describe_topic_partitions.DescribeTopicPartitionsResponseTopic(
                error_code=refused.error, name=each.name
            )
            for each in body.topics
        )
    )


# Groups


def _offset_commit(
    body: k08_offset_commit.OffsetCommitRequest, refused: _Refused
) -> k08_offset_commit.OffsetCommitResponse:
    return k08_offset_commit.OffsetCommitResponse(
        topics=tuple(
            k08_offset_commit.OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    k08_offset_commit.OffsetCommitResponsePartition(
                        partition_index=each.partition_index, error_code=refused.error
                    )
                    for each in topic.partitions
                ),
            )
            for topic in body.topics
        )
    )


def _offset_fetch(
    body: k09_offset_fetch.OffsetFetchRequest, refused: _Refused
) -> k09_offset_fetch.OffsetFetchResponse:
    if refused.version >= 8:
        return k09_offset_fetch.OffsetFetchResponse(
            groups=tuple(
                k09_offset_fetch.OffsetFetchResponseGroup(
                    group_id=each.group_id, error_code=refused.error
                )
                for each in body.groups
            )
        )
    if refused.version >= 2:
        return k09_offset_fetch.OffsetFetchResponse(error_code=refused.error)
    return k09_offset_fetch.OffsetFetchResponse(
        topics=tuple(
            k09_offset_fetch.OffsetFetchResponseTopic(
                name=topic.name,
                partitions=tuple(
                    k09_offset_fetch.OffsetFetchResponsePartition(
                        partition_index=index, committed_offset=_NO_OFFSET, error_code=refused.error
                    )
                    for index in topic.partition_indexes
                ),
            )
            for topic in body.topics or ()
        )
    )


def _find_coordinator(
    body: k10_find_coordinator.FindCoordinatorRequest, refused: _Refused
) -> k10_find_coordinator.FindCoordinatorResponse:
    if refused.version < 4:
        return k10_find_coordinator.FindCoordinatorResponse(
            error_code=refused.error, error_message=refused.message, node_id=_NO_BROKER, port=-1
        )
    return k10_find_coordinator.FindCoordinatorResponse(
        coordinators=tuple(
            k10_find_coordinator.Coordinator(
                key=key,
                node_id=_NO_BROKER,
                port=-1,
                error_code=refused.error,
                error_message=refused.message,
            )
            for key in body.coordinator_keys
        )
    )


def _join_group(
    body: k11_join_group.JoinGroupRequest, refused: _Refused
) -> k11_join_group.JoinGroupResponse:
    return k11_join_group.JoinGroupResponse(
        error_code=refused.error,
        protocol_name=None if refused.version >= 7 else "",
        member_id=body.member_id,
    )


def _heartbeat(_: object, refused: _Refused) -> k12_heartbeat.HeartbeatResponse:
    return k12_heartbeat.HeartbeatResponse(error_code=refused.error)


def _leave_group(_: object, refused: _Refused) -> k13_leave_group.LeaveGroupResponse:
    return k13_leave_group.LeaveGroupResponse(error_code=refused.error)


def _sync_group(_: object, refused: _Refused) -> k14_sync_group.SyncGroupResponse:
    return k14_sync_group.SyncGroupResponse(error_code=refused.error)


def _describe_groups(
    body: k15_describe_groups.DescribeGroupsRequest, refused: _Refused
) -> k15_describe_groups.DescribeGroupsResponse:
    return k15_describe_groups.DescribeGroupsResponse(
        groups=tuple(
            k15_describe_groups.DescribedGroup(
                error_code=refused.error,
                error_message=refused.message if refused.version >= 6 else None,
                group_id=group_id,
            )
            for group_id in body.groups
        )
    )


def _list_groups(_: object, refused: _Refused) -> k16_list_groups.ListGroupsResponse:
    return k16_list_groups.ListGroupsResponse(error_code=refused.error)


def _delete_groups(
    body: k42_delete_groups.DeleteGroupsRequest, refused: _Refused
) -> k42_delete_groups.DeleteGroupsResponse:
    return k42_delete_groups.DeleteGroupsResponse(
        results=tuple(
            k42_delete_groups.DeletableGroupResult(group_id=group_id, error_code=refused.error)
            for group_id in body.groups_names
        )
    )


def _offset_delete(_: object, refused: _Refused) -> k47_offset_delete.OffsetDeleteResponse:
    return k47_offset_delete.OffsetDeleteResponse(error_code=refused.error)


# The cluster


def _api_versions(_: object, refused: _Refused) -> k18_api_versions.ApiVersionsResponse:
    if refused.error != ErrorCode.UNSUPPORTED_VERSION:
        return k18_api_versions.ApiVersionsResponse(error_code=refused.error)
    versions = SERVED[API_VERSIONS_KEY]
    itself = k18_api_versions.ApiVersion(
        api_key=API_VERSIONS_KEY, min_version=versions[0], max_version=versions[-1]
    )
    return k18_api_versions.ApiVersionsResponse(error_code=refused.error, api_keys=(itself,))


def _init_producer_id(_: object, refused: _Refused) -> k22_init_producer_id.InitProducerIdResponse:
    return k22_init_producer_id.InitProducerIdResponse(
        error_code=refused.error, producer_epoch=ProducerEpoch(-1)
    )


def _describe_configs(
    body: k32_describe_configs.DescribeConfigsRequest, refused: _Refused
) -> k32_describe_configs.DescribeConfigsResponse:
    return k32_describe_configs.DescribeConfigsResponse(
        results=tuple(
            k32_describe_configs.DescribeConfigsResult(
                error_code=refused.error,
                error_message=refused.message,
                resource_type=each.resource_type,
                resource_name=each.resource_name,
            )
            for each in body.resources
        )
    )


def _describe_log_dirs(
    _: object, refused: _Refused
) -> k35_describe_log_dirs.DescribeLogDirsResponse:
    return k35_describe_log_dirs.DescribeLogDirsResponse(
        error_code=refused.error if refused.version >= 3 else 0
    )


def _incremental_alter_configs(
    body: k44_incremental_alter_configs.IncrementalAlterConfigsRequest, refused: _Refused
) -> k44_incremental_alter_configs.IncrementalAlterConfigsResponse:
    return k44_incremental_alter_configs.IncrementalAlterConfigsResponse(
        responses=tuple(
            k44_incremental_alter_configs.AlterConfigsResourceResponse(
                error_code=refused.error,
                error_message=refused.message,
                resource_type=each.resource_type,
                resource_name=each.resource_name,
            )
            for each in body.resources
        )
    )


def _describe_cluster(_: object, refused: _Refused) -> k60_describe_cluster.DescribeClusterResponse:
    return k60_describe_cluster.DescribeClusterResponse(
        error_code=refused.error, error_message=refused.message
    )


_MAKERS: Final[dict[int, Callable[[Any, _Refused], object | None]]] = {
    0: _produce,
    1: _fetch,
    2: _list_offsets,
    3: _metadata,
    8: _offset_commit,
    9: _offset_fetch,
    10: _find_coordinator,
    11: _join_group,
    12: _heartbeat,
    13: _leave_group,
    14: _sync_group,
    15: _describe_groups,
    16: _list_groups,
    18: _api_versions,
    19: _create_topics,
    20: _delete_topics,
    21: _delete_records,
    22: _init_producer_id,
    23: _offset_for_leader_epoch,
    32: _describe_configs,
    35: _describe_log_dirs,
    37: _create_partitions,
    42: _delete_groups,
    44: _incremental_alter_configs,
    47: _offset_delete,
    60: _describe_cluster,
    75: _describe_topic_partitions,
}
