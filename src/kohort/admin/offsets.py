"""Committed offsets of groups, and log start and end offsets, in batches."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

from kohort.admin import lag
from kohort.admin.cluster_connection import Cluster
from kohort.admin.errors import AdminError, NoSuchGroup, error_from_code
from kohort.admin.router import COORDINATOR_RETRIABLE
from kohort.types import (
    BrokerId,
    ErrorCode,
    GroupId,
    MemberId,
    Millis,
    Offset,
    Topic,
    TopicPartition,
    value,
)
from kohort.wire.api.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kohort.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kohort.wire.api.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
)
from kohort.wire.api.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)

OffsetSpec: TypeAlias = Literal["earliest", "latest"] | Millis
"""The log start offset, the log end offset, or the first record since a timestamp."""


_CONSUMER: Final = BrokerId(-1)
"""The replica id of a consumer."""
_TIMESTAMPS: Final[Mapping[str, Millis]] = {"earliest": Millis(-2), "latest": Millis(-1)}
_NO_METADATA: Final[Mapping[TopicPartition, str]] = {}


@value
class CommittedOffset:
    offset: Offset
    """The offset of the next record to read."""
    leader_epoch: int | None
    metadata: str


def list_group_offsets(
    cluster: Cluster, group_ids: Iterable[GroupId]
) -> dict[GroupId, dict[TopicPartition, CommittedOffset]]:
    """The committed offsets of each group; empty if the group does not exist."""
    ids = sorted(set(group_ids))
    responses = cluster.router.send_to_coordinators(
        ids,
        _fetch_all,
        lambda response: ((each.group_id, each.error_code, each) for each in response.groups),
    )
    found: dict[GroupId, dict[TopicPartition, CommittedOffset]] = {}
    for group_id in ids:
        response = responses[group_id]
        if response.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
            found[group_id] = {}
        elif response.error_code != ErrorCode.NONE or response.body is None:
            what = f"committed offsets of group {group_id!r} cannot be read"
            raise error_from_code(response.error_code, what, response.error_message)
        else:
            found[group_id] = _read_group(response.body)
    return found


def list_offsets(
    cluster: Cluster, partitions: Iterable[TopicPartition], which: OffsetSpec
) -> dict[TopicPartition, Offset]:
    """Log start or end offsets, or the offsets of the first records since a timestamp.

    Partitions are left out that do not exist, have no leader now, or no record since then.
    """
    timestamp = _TIMESTAMPS[which] if isinstance(which, str) else which
    responses = cluster.router.send_to_leaders(
        partitions, lambda chunk: _list_offsets(chunk, timestamp), _split_offsets
    )
    found: dict[TopicPartition, Offset] = {}
    for partition in sorted(responses):
        response = responses[partition]
        if response.error_code in (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.LEADER_NOT_AVAILABLE,
        ):
            continue
        if response.error_code != ErrorCode.NONE or response.body is None:
            what = f"offsets of {partition.topic}:{partition.partition} cannot be listed"
            raise error_from_code(response.error_code, what)
        if response.body.offset >= 0:
            found[partition] = response.body.offset
    return found


def group_lags(cluster: Cluster, group_ids: Iterable[GroupId]) -> dict[GroupId, lag.GroupLag]:
    """The lag of each group, with one request per broker."""
    per_group = list_group_offsets(cluster, group_ids)
    latest = list_offsets(
        cluster, {each for found in per_group.values() for each in found}, "latest"
    )
    return {
        group_id: lag.group_lag(
            group_id, {each: committed.offset for each, committed in found.items()}, latest
        )
        for group_id, found in per_group.items()
    }


# Write


def alter_offsets(
    cluster: Cluster,
    group_id: GroupId,
    offsets: Mapping[TopicPartition, Offset],
    *,
    metadata: Mapping[TopicPartition, str] = _NO_METADATA,
) -> None:
    """Commit offsets for a group without members. Errors name the partition that failed.

    `metadata` is the metadata string of each committed offset.
    """
    if not offsets:
        return
    request = _commit(group_id, offsets, metadata)
    responses = cluster.router.send_to_coordinators(
        [group_id],
        lambda _: request,
        lambda response: [(group_id, _retriable_code(response), response)],
    )
    response = responses[group_id]
    if response.error_code != ErrorCode.NONE or response.body is None:
        what = f"offsets of group {group_id!r} cannot be changed"
        raise error_from_code(response.error_code, what, response.error_message)
    for topic in response.body.topics:
        for each in topic.partitions:
            if each.error_code != ErrorCode.NONE:
                place = f"offset of {topic.name}:{each.partition_index}"
                what = f"{place} cannot be changed for group {group_id!r}"
                raise error_from_code(_commit_code(each.error_code), what)


def delete_offsets(
    cluster: Cluster, group_id: GroupId, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, AdminError | None]:
    """The error of each partition; None if its offset was deleted."""
    by_topic: defaultdict[Topic, list[OffsetDeleteRequestPartition]] = defaultdict(list)
    for topic, number in sorted(set(partitions)):
        by_topic[topic].append(OffsetDeleteRequestPartition(partition_index=number))
    topics = tuple(
        OffsetDeleteRequestTopic(name=topic, partitions=tuple(numbers))
        for topic, numbers in by_topic.items()
    )
    responses = cluster.router.send_to_coordinators(
        [group_id],
        lambda _: OffsetDeleteRequest(group_id=group_id, topics=topics),
        lambda response: [(group_id, response.error_code, response)],
    )
    response = responses[group_id]
    what = f"offsets of group {group_id!r} cannot be deleted"
    if response.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        raise NoSuchGroup(f"there is no group {group_id!r}")
    if response.error_code != ErrorCode.NONE or response.body is None:
        raise error_from_code(response.error_code, what, response.error_message)
    return {
        TopicPartition(topic.name, each.partition_index): _delete_error(topic.name, each)
        for topic in response.body.topics
        for each in topic.partitions
    }


def _delete_error(topic: Topic, result: Any) -> AdminError | None:
    if result.error_code == ErrorCode.NONE:
        return None
    what = f"offset of {topic}:{result.partition_index} cannot be deleted"
    return error_from_code(result.error_code, what)


# Messages


def _commit(
    group_id: GroupId,
    offsets: Mapping[TopicPartition, Offset],
    metadata: Mapping[TopicPartition, str],
) -> OffsetCommitRequest:
    by_topic: defaultdict[Topic, list[OffsetCommitRequestPartition]] = defaultdict(list)
    for each, offset in sorted(offsets.items()):
        by_topic[each.topic].append(
            OffsetCommitRequestPartition(
                partition_index=each.partition,
                committed_offset=offset,
                committed_metadata=metadata.get(each, ""),
            )
        )
    topics = tuple(
        OffsetCommitRequestTopic(name=topic, partitions=tuple(partitions))
        for topic, partitions in by_topic.items()
    )
    return OffsetCommitRequest(group_id=group_id, member_id=MemberId(""), topics=topics)


def _retriable_code(response: OffsetCommitResponse) -> int:
    """OffsetCommit has error codes per partition; a coordinator error concerns all of them."""
    codes = {each.error_code for topic in response.topics for each in topic.partitions}
    return min(codes & COORDINATOR_RETRIABLE, default=ErrorCode.NONE)


def _commit_code(code: int) -> int:
    """A group with members rejects the empty member id of an admin commit."""
    return ErrorCode.NON_EMPTY_GROUP if code == ErrorCode.UNKNOWN_MEMBER_ID else code


def _fetch_all(ids: tuple[GroupId, ...]) -> OffsetFetchRequest:
    groups = tuple(OffsetFetchRequestGroup(group_id=each, topics=None) for each in ids)
    return OffsetFetchRequest(groups=groups, require_stable=False)


def _read_group(group: OffsetFetchResponseGroup) -> dict[TopicPartition, CommittedOffset]:
    return {
        TopicPartition(topic.name, each.partition_index): CommittedOffset(
            offset=each.committed_offset,
            leader_epoch=None if each.committed_leader_epoch < 0 else each.committed_leader_epoch,
            metadata=each.metadata or "",
        )
        for topic in group.topics
        for each in topic.partitions
        if each.committed_offset >= 0
    }


def _list_offsets(partitions: tuple[TopicPartition, ...], timestamp: Millis) -> ListOffsetsRequest:
    by_topic: defaultdict[Topic, list[ListOffsetsPartition]] = defaultdict(list)
    for topic, number in partitions:
        by_topic[topic].append(ListOffsetsPartition(partition_index=number, timestamp=timestamp))
    topics = tuple(
        ListOffsetsTopic(name=topic, partitions=tuple(ids)) for topic, ids in by_topic.items()
    )
    return ListOffsetsRequest(replica_id=_CONSUMER, topics=topics)


def _split_offsets(
    response: ListOffsetsResponse,
) -> Iterator[tuple[TopicPartition, int, ListOffsetsPartitionResponse]]:
    for topic in response.topics:
        for each in topic.partitions:
            yield TopicPartition(topic.name, each.partition_index), each.error_code, each
