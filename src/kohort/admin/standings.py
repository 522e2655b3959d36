"""How groups stand in every partition: what they committed, where logs end, and who has them."""

from collections.abc import Mapping

from kohort.admin import lag, offsets
from kohort.admin.cluster import Cluster
from kohort.admin.groups import Group, Member
from kohort.admin.offsets import Committed
from kohort.client.topic_partition import TopicPartition
from kohort.types import GroupId, Offset, value


@value
class Standing:
    lag: lag.PartitionLag
    leader_epoch: int | None
    metadata: str
    owner: Member | None
    """None where nobody has it now."""


def standings(
    cluster: Cluster, groups: Mapping[GroupId, Group]
) -> dict[GroupId, tuple[Standing, ...]]:
    """For all of them at once, in order of their partitions."""
    committed = offsets.committed(cluster, groups)
    owners = {group_id: _owners(group) for group_id, group in groups.items()}
    places: set[TopicPartition] = set()
    for group_id in groups:
        places.update(committed[group_id], owners[group_id])
    ends = offsets.ends(cluster, places, "latest")
    return {group_id: stand(committed[group_id], ends, owners[group_id]) for group_id in groups}


def stand(
    committed: Mapping[TopicPartition, Committed],
    ends: Mapping[TopicPartition, Offset],
    owners: Mapping[TopicPartition, Member],
) -> tuple[Standing, ...]:
    """Pure."""
    found = []
    for place in sorted({*committed, *owners}):
        told = committed.get(place)
        offset = None if told is None else told.offset
        found.append(
            Standing(
                lag=lag.partition_lag(place, offset, ends.get(place)),
                leader_epoch=None if told is None else told.leader_epoch,
                metadata="" if told is None else told.metadata,
                owner=owners.get(place),
            )
        )
    return tuple(found)


def _owners(group: Group) -> dict[TopicPartition, Member]:
    return {place: member for member in group.members for place in member.partitions}
