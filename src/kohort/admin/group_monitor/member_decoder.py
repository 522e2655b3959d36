"""Decodes the members of a group from the records of `__consumer_offsets`. Pure."""

from collections.abc import Iterable, Mapping
from sys import intern

from kohort.admin.group_monitor.views import MonitoredMember
from kohort.events.schema import EventMember
from kohort.types import (
    InstanceId,
    MemberId,
    Partition,
    Topic,
    TopicPartition,
    Uuid,
)
from kohort.wire.consumer_offsets import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    GroupMetadataValue,
    MemberMetadata,
)
from kohort.wire.consumer_protocol import decode_assignment, decode_subscription
from kohort.wire.errors import WireError

CONSUMER_PROTOCOL = "consumer"
"""The protocol type of groups whose assignments have the consumer protocol's format."""

Assigned = tuple[TopicPartition, ...] | None


def classic_members(group: GroupMetadataValue) -> tuple[MonitoredMember, ...]:
    return tuple(_member(each, group) for each in group.members)


def _member(member: MemberMetadata, group: GroupMetadataValue) -> MonitoredMember:
    is_consumer = group.protocol_type == CONSUMER_PROTOCOL
    return MonitoredMember(
        party=_party(
            member.member_id, member.group_instance_id, member.client_id, member.client_host
        ),
        is_leader=member.member_id == group.leader,
        session_timeout_ms=member.session_timeout,
        rebalance_timeout_ms=None if member.rebalance_timeout < 0 else member.rebalance_timeout,
        topics=_topics(member.subscription) if is_consumer else (),
        partitions=_assigned_partitions(member.assignment) if is_consumer else None,
    )


def _party(
    member_id: MemberId, instance_id: InstanceId | None, client_id: str, client_host: str
) -> EventMember:
    # Thousands of members share a few client ids and hosts.
    return EventMember(
        member_id=member_id,
        instance_id=instance_id,
        client_id=intern(client_id),
        client_host=intern(client_host),
    )


def _topics(subscription: bytes) -> tuple[Topic, ...]:
    try:
        return tuple(Topic(intern(each)) for each in decode_subscription(subscription).topics)
    except WireError:
        return ()


def _assigned_partitions(assignment: bytes) -> Assigned:
    if not assignment:
        return ()
    try:
        assigned = decode_assignment(assignment).assigned_partitions
    except WireError:
        return None
    return tuple(
        sorted(
            TopicPartition(Topic(intern(each.topic)), number)
            for each in assigned
            for number in each.partitions
        )
    )


def consumer_group_member(
    member_id: MemberId,
    metadata: ConsumerGroupMemberMetadataValue,
    current: ConsumerGroupCurrentMemberAssignmentValue | None,
    names: Mapping[Uuid, Topic],
) -> MonitoredMember:
    """A member of a KIP-848 group. The broker assigns partitions, so there is no leader."""
    classic = metadata.classic_member_metadata
    return MonitoredMember(
        party=_party(member_id, metadata.instance_id, metadata.client_id, metadata.client_host),
        is_leader=False,
        session_timeout_ms=None if not classic else classic.session_timeout_ms or None,
        rebalance_timeout_ms=None
        if metadata.rebalance_timeout_ms < 0
        else metadata.rebalance_timeout_ms,
        topics=tuple(metadata.subscribed_topic_names),
        partitions=() if current is None else named_partitions(_partitions_by_id(current), names),
    )


def _partitions_by_id(
    assignment: ConsumerGroupCurrentMemberAssignmentValue,
) -> Iterable[tuple[Uuid, tuple[Partition, ...]]]:
    return ((each.topic_id, each.partitions) for each in assignment.assigned_partitions)


def named_partitions(
    pairs: Iterable[tuple[Uuid, tuple[Partition, ...]]], names: Mapping[Uuid, Topic]
) -> tuple[TopicPartition, ...]:
    """A topic whose name is not known is shown by its id."""
    return tuple(
        sorted(
            TopicPartition(names.get(topic, Topic(str(topic))), number)
            for topic, numbers in pairs
            for number in numbers
        )
    )
