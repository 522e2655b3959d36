"""A consumer group at one time: its state, members, assignments and progress. Pure.

As JSON it is the result of the control operation `wait`.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kohort.events.schema import EventMember
from kohort.types import (
    Generation,
    GroupId,
    InstanceId,
    MemberId,
    Millis,
    Offset,
    Partition,
    Topic,
    TopicPartition,
    value,
)

STATES: Final = (
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Dead",
    "Empty",
    "Assigning",
    "Reconciling",
)
"""Of classic groups, and the last two of KIP-848 groups."""

STABLE: Final = "Stable"

DEAD: Final = "Dead"
"""The state of a group that does not exist, as in DescribeGroups."""

COOPERATIVE: Final = "cooperative-sticky"
"""The assignor with which a member rejoins after it has revoked partitions (KIP-429)."""


@value
class MemberSnapshot:
    party: EventMember
    assignment: tuple[TopicPartition, ...]
    """Sorted. Empty while the group rebalances."""


@value
class PartitionProgress:
    partition: TopicPartition
    start: Offset
    """The log start offset."""
    end: Offset
    """The log end offset."""
    committed: Offset | None

    @property
    def lag(self) -> int:
        """The records that exist and are not committed. Without a commit, all of them."""
        first = self.start if self.committed is None else max(self.start, self.committed)
        return max(0, self.end - first)


@value
class GroupSnapshot:
    group_id: GroupId
    state: str
    """Dead if the group does not exist."""
    state_age_ms: Millis | None
    """The time since the state was entered, by the node's clock; None if it is not known."""
    generation: Generation | None
    """The epoch of a KIP-848 group; None if it is not known."""
    protocol_type: str
    protocol: str | None
    """The assignor; None if there is none, or if it is not known."""
    members: tuple[MemberSnapshot, ...]
    unsynced: tuple[MemberId, ...] = ()
    """The members that have not been answered their SyncGroup of this generation."""
    revoking: tuple[MemberId, ...] = ()
    """The members that have to revoke partitions and rejoin, with a cooperative assignor."""
    joining: int = 0
    """Member ids that were issued and have not been used in a join yet (KIP-394)."""
    partitions: tuple[PartitionProgress, ...] = ()
    """Sorted: all partitions of the topics that lag is about."""

    @property
    def lag(self) -> int | None:
        """None if there is no partition that it could be about."""
        return sum(each.lag for each in self.partitions) if self.partitions else None

    @property
    def assigned(self) -> int:
        return sum(len(member.assignment) for member in self.members)

    @property
    def is_settled(self) -> bool:
        """Stable, every member has its assignment, and no rebalance is about to begin."""
        waits = self.unsynced or self.revoking or self.joining
        return self.state == STABLE and not waits

    def committed(self) -> dict[TopicPartition, Offset]:
        return {
            each.partition: each.committed for each in self.partitions if each.committed is not None
        }


def absent_group(group_id: GroupId) -> GroupSnapshot:
    """A group that does not exist."""
    return GroupSnapshot(
        group_id=group_id,
        state=DEAD,
        state_age_ms=None,
        generation=None,
        protocol_type="",
        protocol=None,
        members=(),
    )


def find_revoking(
    protocol: str | None,
    members: Iterable[tuple[MemberId, Iterable[TopicPartition], Iterable[TopicPartition]]],
) -> tuple[MemberId, ...]:
    """The members whose owned partitions, as they joined with them, are not all assigned to them.

    Each member comes with its owned and its assigned partitions.
    """
    if protocol != COOPERATIVE:
        return ()
    return tuple(
        member_id for member_id, owned, assigned in members if not set(owned) <= set(assigned)
    )


# JSON


def snapshot_to_json(group: GroupSnapshot) -> dict[str, Any]:
    return {
        "group": group.group_id,
        "state": group.state,
        "state_age_ms": group.state_age_ms,
        "generation": group.generation,
        "protocol_type": group.protocol_type,
        "protocol": group.protocol,
        "members": [_member_to_json(each) for each in group.members],
        "unsynced": list(group.unsynced),
        "revoking": list(group.revoking),
        "joining": group.joining,
        "assigned": group.assigned,
        "lag": group.lag,
        "partitions": [_progress_to_json(each) for each in group.partitions],
    }


def _member_to_json(member: MemberSnapshot) -> dict[str, Any]:
    party = member.party
    assignment: dict[Topic, list[Partition]] = {}
    for topic, partition in member.assignment:
        assignment.setdefault(topic, []).append(partition)
    return {
        "member_id": party.member_id,
        "instance_id": party.instance_id,
        "client_id": party.client_id,
        "client_host": party.client_host,
        "assignment": assignment,
    }


def _progress_to_json(each: PartitionProgress) -> dict[str, Any]:
    return {
        "topic": each.partition.topic,
        "partition": each.partition.partition,
        "start": each.start,
        "end": each.end,
        "committed": each.committed,
        "lag": each.lag,
    }


def snapshot_from_json(found: Mapping[str, Any]) -> GroupSnapshot:
    """The inverse of `snapshot_to_json`."""
    return GroupSnapshot(
        group_id=GroupId(found["group"]),
        state=found["state"],
        state_age_ms=found["state_age_ms"],
        generation=found["generation"],
        protocol_type=found["protocol_type"],
        protocol=found["protocol"],
        members=tuple(_member_from_json(each) for each in found["members"]),
        unsynced=tuple(MemberId(each) for each in found["unsynced"]),
        revoking=tuple(MemberId(each) for each in found["revoking"]),
        joining=found["joining"],
        partitions=tuple(_progress_from_json(each) for each in found["partitions"]),
    )


def _member_from_json(found: Mapping[str, Any]) -> MemberSnapshot:
    instance_id = found["instance_id"]
    return MemberSnapshot(
        party=EventMember(
            member_id=MemberId(found["member_id"]),
            instance_id=None if instance_id is None else InstanceId(instance_id),
            client_id=found["client_id"],
            client_host=found["client_host"],
        ),
        assignment=tuple(
            TopicPartition(Topic(topic), Partition(partition))
            for topic, partitions in found["assignment"].items()
            for partition in partitions
        ),
    )


def _progress_from_json(found: Mapping[str, Any]) -> PartitionProgress:
    return PartitionProgress(
        partition=TopicPartition(Topic(found["topic"]), Partition(found["partition"])),
        start=found["start"],
        end=found["end"],
        committed=found["committed"],
    )
