"""Snapshots of the coordinator's groups, with the progress of their partitions. Pure queries."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from kohort.conditions.group_snapshot import (
    GroupSnapshot,
    MemberSnapshot,
    PartitionProgress,
    absent_group,
    find_revoking,
)
from kohort.coordinator.groups.classic.classic_member import ClassicMember
from kohort.coordinator.groups.classic.group import CONSUMER, ClassicGroup
from kohort.coordinator.groups.classic.states import DEAD, STABLE
from kohort.coordinator.records import OffsetCommitted
from kohort.events.schema import EventMember
from kohort.node.topics import Topics
from kohort.types import GroupId, Millis, Partition, Topic, TopicPartition
from kohort.wire.consumer_protocol import (
    decode_assignment,
    decode_subscription,
    sorted_partitions,
)
from kohort.wire.errors import MalformedMessage

_DECODED_MAX: Final = 1024
"""Every iteration of the event loop may ask for them, and they rarely change."""


def describe_group(group_id: GroupId, group: ClassicGroup | None, now: Millis) -> GroupSnapshot:
    """Without `partitions`. `now` is the time of the node's wall clock."""
    if group is None or group.state is DEAD:
        return absent_group(group_id)
    members = tuple(group.members.values())
    is_current = group.state is STABLE and group.protocol_type == CONSUMER
    assigned = {
        each.member_id: _assigned(each.assignment) if is_current else () for each in members
    }
    owned = (
        (each.member_id, _owned(each.metadata(group.protocol)), assigned[each.member_id])
        for each in members
    )
    return GroupSnapshot(
        group_id=group_id,
        state=group.state.value,
        state_age_ms=_age(group, now),
        generation=group.generation,
        protocol_type=group.protocol_type or "",
        protocol=group.protocol,
        members=tuple(_member(each, assigned[each.member_id]) for each in members),
        unsynced=tuple(group.pending_sync_members),
        revoking=find_revoking(group.protocol, owned) if is_current else (),
        joining=len(group.pending_join_members),
    )


def find_progress(
    topics: Topics, group: ClassicGroup | None, only: Iterable[Topic]
) -> tuple[PartitionProgress, ...]:
    """Of all partitions of the topics that lag is about; `only` replaces those of the group."""
    names = set(only)
    if not names and group is not None:
        names = {*group.offsets.committed, *(group.subscribed_topics or ())}
    found = []
    for name in sorted(names):
        topic = topics.find(name)
        for number in range(0 if topic is None else topic.partition_count):
            log = topics.catalog.partition(name, number)
            assert log is not None, f"{name} has no partition {number}"
            commit = None if group is None else group.offsets.find(name, Partition(number))
            found.append(
                PartitionProgress(
                    partition=TopicPartition(name, Partition(number)),
                    start=log.start_offset,
                    end=log.end_offset,
                    committed=None if commit is None else commit.offset,
                )
            )
    return tuple(found)


def find_commits(group: ClassicGroup | None) -> dict[TopicPartition, OffsetCommitted]:
    """The last commit of each partition. Every commit is another object, even of the same offset.

    Offsets that are pending in a transaction are not among them.
    """
    if group is None:
        return {}
    return {TopicPartition(each.topic, each.partition): each for each in group.offsets}


def _age(group: ClassicGroup, now: Millis) -> Millis | None:
    """A group that only committed offsets never entered its state."""
    if group.state_since_ms <= 0:
        return None
    return Millis(max(0, now - group.state_since_ms))


def _member(member: ClassicMember, assignment: tuple[TopicPartition, ...]) -> MemberSnapshot:
    return MemberSnapshot(
        party=EventMember(
            member_id=member.member_id,
            instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
        ),
        assignment=assignment,
    )


@lru_cache(maxsize=_DECODED_MAX)
def _assigned(data: bytes) -> tuple[TopicPartition, ...]:
    """The leader may write any bytes. Empty if they are not in the consumer protocol."""
    try:
        return sorted_partitions(decode_assignment(data).assigned_partitions) if data else ()
    except MalformedMessage:
        return ()


@lru_cache(maxsize=_DECODED_MAX)
def _owned(data: bytes) -> tuple[TopicPartition, ...]:
    """The partitions that a member owned when it joined."""
    try:
        return sorted_partitions(decode_subscription(data).owned_partitions) if data else ()
    except MalformedMessage:
        return ()
