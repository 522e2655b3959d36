"""Committed offset, log end offset, lag and owner of every partition of a group."""

from collections.abc import Mapping

from kohort.admin import lag, offsets
from kohort.admin.cluster_connection import Cluster
from kohort.admin.groups import ConsumerGroupDescription, GroupMemberDescription
from kohort.admin.offsets import CommittedOffset
from kohort.types import GroupId, Offset, TopicPartition, value


@value
class PartitionAssignmentState:
    lag: lag.PartitionLag
    leader_epoch: int | None
    metadata: str
    owner: GroupMemberDescription | None
    """None if the partition is not assigned."""


def describe_offsets(
    cluster: Cluster, groups: Mapping[GroupId, ConsumerGroupDescription]
) -> dict[GroupId, tuple[PartitionAssignmentState, ...]]:
    """For all groups with one request per broker; sorted by partition."""
    committed = offsets.list_group_offsets(cluster, groups)
    owners = {group_id: _owners(group) for group_id, group in groups.items()}
    partitions: set[TopicPartition] = set()
    for group_id in groups:
        partitions.update(committed[group_id], owners[group_id])
    ends = offsets.list_offsets(cluster, partitions, "latest")
    return {
        group_id: assignment_states(committed[group_id], ends, owners[group_id])
        for group_id in groups
    }


def assignment_states(
    committed: Mapping[TopicPartition, CommittedOffset],
    ends: Mapping[TopicPartition, Offset],
    owners: Mapping[TopicPartition, GroupMemberDescription],
) -> tuple[PartitionAssignmentState, ...]:
    """Pure."""
    found = []
    for partition in sorted({*committed, *owners}):
        commit = committed.get(partition)
        offset = None if commit is None else commit.offset
        found.append(
            PartitionAssignmentState(
                lag=lag.partition_lag(partition, offset, ends.get(partition)),
                leader_epoch=None if commit is None else commit.leader_epoch,
                metadata="" if commit is None else commit.metadata,
                owner=owners.get(partition),
            )
        )
    return tuple(found)


def _owners(group: ConsumerGroupDescription) -> dict[TopicPartition, GroupMemberDescription]:
    return {partition: member for member in group.members for partition in member.partitions}
