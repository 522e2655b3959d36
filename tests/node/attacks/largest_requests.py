"""Attacks with the largest requests that a node accepts and carries out."""

from collections.abc import Callable

from kohort.types import BrokerId, GroupId, Millis, Partition, Topic, TransactionalId, Uuid
from kohort.wire.api.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kohort.wire.api.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kohort.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic
from kohort.wire.api.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kohort.wire.api.k10_find_coordinator import FindCoordinatorRequest
from kohort.wire.api.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kohort.wire.api.k14_sync_group import SyncGroupRequest
from kohort.wire.api.k15_describe_groups import DescribeGroupsRequest
from kohort.wire.api.k18_api_versions import ApiVersionsRequest
from kohort.wire.api.k19_create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kohort.wire.api.k22_init_producer_id import InitProducerIdRequest
from kohort.wire.compression import Codec
from tests.node.attacks import bulk_requests, hostile_batches
from tests.node.attacks.arena import Arena
from tests.node.attacks.attack import Attack, create_large, create_target, do_nothing, one_request
from tests.node.attacks.bulk_requests import GROUP, TOPIC
from tests.node.attacks.wire_client import WireClient

_TIMEOUT_MS = Millis(200_000)


def all_offsets(count: int) -> OffsetFetchRequest:
    """All offsets of one group, again and again."""
    return OffsetFetchRequest(
        groups=(OffsetFetchRequestGroup(group_id=GROUP, topics=None),) * count
    )


def list_offsets_of_topics(count: int) -> ListOffsetsRequest:
    partition = ListOffsetsPartition(partition_index=Partition(0), timestamp=Millis(-1))
    topics = tuple(
        ListOffsetsTopic(name=Topic(f"n{each:x}"), partitions=(partition,)) for each in range(count)
    )
    return ListOffsetsRequest(replica_id=BrokerId(-1), topics=topics)


def unknown_topics(count: int) -> MetadataRequest:
    topics = tuple(MetadataRequestTopic(name=Topic(f"u{each:x}")) for each in range(count))
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False)


def metadata_by_id(count: int) -> MetadataRequest:
    """In version 11 topic ids are refused, one by one."""
    topics = tuple(
        MetadataRequestTopic(name=None, topic_id=Uuid(each.to_bytes(16, "big")))
        for each in range(1, count + 1)
    )
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False)


def empty_keys(count: int) -> FindCoordinatorRequest:
    """One byte for each key, so that a request of 64 KiB has many."""
    return FindCoordinatorRequest(coordinator_keys=("",) * count)


def same_group(count: int) -> DescribeGroupsRequest:
    return DescribeGroupsRequest(groups=(GROUP,) * count)


def join_with_metadata(size: int, group: GroupId = GROUP) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=Millis(10_000),
        rebalance_timeout_ms=Millis(10_000),
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=bytes(size)),),
    )


def long_client_name(size: int) -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name="a" * size + "_", client_software_version="1")


def long_transactional_id(size: int) -> InitProducerIdRequest:
    name = TransactionalId("x" * size)
    return InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=Millis(1))


def create_topics(count: int) -> CreateTopicsRequest:
    topics = tuple(
        CreatableTopic(name=Topic(f"c{each:x}"), num_partitions=1, replication_factor=1)
        for each in range(count)
    )
    return CreateTopicsRequest(topics=topics, timeout_ms=_TIMEOUT_MS)


def create_with_configs(count: int) -> CreateTopicsRequest:
    """One topic with many settings, none of which exists."""
    configs = tuple(CreatableTopicConfig(name=f"n{each:x}", value="1") for each in range(count))
    topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1, configs=configs)
    return CreateTopicsRequest(topics=(topic,), timeout_ms=_TIMEOUT_MS)


def produce_to_all(first: int, end: int, batch: bytes) -> ProduceRequest:
    """One batch to each of the partitions."""
    data = tuple(PartitionProduceData(index=each, records=batch) for each in range(first, end))
    topic = TopicProduceData(name=TOPIC, partition_data=data)
    return ProduceRequest(acks=1, timeout_ms=_TIMEOUT_MS, topic_data=(topic,))


def _delete_written(arena: Arena) -> None:
    """A deleted topic whose partitions have directories, which are removed later."""
    create_large(arena)
    batch = hostile_batches.batch(hostile_batches.RECORD, 1, Codec.NONE)
    count = arena.scaled(10_000, 2)
    with WireClient(arena.port) as client:
        for first in range(0, count, 500):
            end = min(first + 500, count)
            answer = client.ask(produce_to_all(first, end, batch), 9)
            errors = {each.error_code for each in answer.responses[0].partition_responses}
            assert errors == {0}, errors
        client.ask(bulk_requests.delete_topic(), 5)


def _commit_large(arena: Arena) -> None:
    create_large(arena)
    with WireClient(arena.port) as client:
        answer = client.ask(bulk_requests.offset_commit(arena.scaled(10_000, 2)), 8)
        assert {each.error_code for each in answer.topics[0].partitions} == {0}


def _join_large(arena: Arena) -> None:
    """A member with large metadata, which DescribeGroups returns of a stable group."""
    with WireClient(arena.port) as client:
        joined = client.ask(join_with_metadata(arena.scaled(500_000)), 3)
        synced = SyncGroupRequest(
            group_id=GROUP, generation_id=joined.generation_id, member_id=joined.member_id
        )
        assert client.ask(synced, 3).error_code == 0


def largest(
    name: str,
    what: str,
    make: Callable[[int], object],
    count: int,
    version: int,
    *,
    prepare: Callable[[Arena], None] = do_nothing,
    expected: tuple[str, ...] = (),
) -> Attack:
    return one_request(
        name,
        what,
        lambda arena: make(arena.scaled(count, 2)),
        version,
        prepare=prepare,
        expected=expected,
    )


LARGEST_REQUESTS = (
    one_request(
        "create-topics",
        "CreateTopics of 10,000 topics",
        lambda arena: create_topics(arena.scaled(10_000, 2)),
        7,
        prepare=do_nothing,
    ),
    one_request(
        "create-again",
        "CreateTopics of a topic that was deleted with 10,000 written partitions",
        lambda _: bulk_requests.create_topic(1),
        7,
        prepare=_delete_written,
        expected=("NONE",),
    ),
    largest(
        "metadata-accepted",
        "Metadata that names 200,000 unknown topics",
        unknown_topics,
        200_000,
        9,
        expected=("UNKNOWN_TOPIC_OR_PARTITION x 200, NONE",),
    ),
    largest(
        "metadata-ids",
        "Metadata of version 11 with 240,000 topic ids",
        metadata_by_id,
        240_000,
        11,
        expected=("INVALID_REQUEST x 240, NONE",),
    ),
    largest(
        "offset-commit-accepted",
        "OffsetCommit of 10,000 offsets",
        bulk_requests.offset_commit,
        10_000,
        8,
        prepare=create_large,
        expected=("NONE x 10",),
    ),
    largest(
        "offset-commit-large",
        "OffsetCommit of 24,000 offsets, of which 14,000 are unknown",
        bulk_requests.offset_commit,
        24_000,
        8,
        prepare=create_large,
        expected=("UNKNOWN_TOPIC_OR_PARTITION x 14, NONE x 10",),
    ),
    largest(
        "offset-fetch-all",
        "OffsetFetch that names a group with 10,000 offsets 12,000 times",
        all_offsets,
        12_000,
        8,
        prepare=_commit_large,
    ),
    largest(
        "offset-delete-accepted",
        "OffsetDelete of 10,000 offsets",
        bulk_requests.offset_delete,
        10_000,
        0,
        prepare=_commit_large,
        expected=("NONE x 11",),
    ),
    largest(
        "list-offsets-topics",
        "ListOffsets of 120,000 topics",
        list_offsets_of_topics,
        120_000,
        7,
        expected=("UNKNOWN_TOPIC_OR_PARTITION x 120",),
    ),
    largest(
        "describe-same-group",
        "DescribeGroups that names a group with metadata of 500 KB 9,000 times",
        same_group,
        9_000,
        5,
        prepare=_join_large,
    ),
    largest(
        "describe-configs-large",
        "DescribeConfigs that names a topic 240,000 times",
        bulk_requests.describe_configs,
        240_000,
        4,
        prepare=create_target,
    ),
    largest(
        "find-coordinator-small",
        "FindCoordinator with 65,000 keys in 64 KiB",
        empty_keys,
        65_000,
        4,
        expected=("NONE x 66",),
    ),
    largest(
        "delete-groups-accepted",
        "DeleteGroups of 9,900 groups",
        bulk_requests.delete_groups,
        9_900,
        2,
        expected=("GROUP_ID_NOT_FOUND x 9",),
    ),
    largest(
        "create-configs",
        "CreateTopics of a topic with 240,000 settings",
        create_with_configs,
        240_000,
        7,
        expected=("INVALID_CONFIG",),
    ),
    largest(
        "join-metadata",
        "JoinGroup with metadata of 100 MB",
        join_with_metadata,
        100_000_000,
        3,
    ),
    largest(
        "api-versions-long",
        "ApiVersions with a client name of 100 MB",
        long_client_name,
        100_000_000,
        3,
    ),
    largest(
        "producer-id-long",
        "InitProducerId with a transactional id of 100 MB",
        long_transactional_id,
        100_000_000,
        4,
    ),
)
