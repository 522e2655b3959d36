"""Members of a group, from what the coordinator writes down of them, and what befell between two
generations. Pure.
"""

from collections.abc import Iterable, Mapping
from sys import intern

from kohort.admin.picture.values import Member, Participant, Party, Rebalance, Removal
from kohort.client.topic_partition import TopicPartition
from kohort.types import Generation, InstanceId, MemberId, Millis, Partition, Topic, Uuid
from kohort.wire.consumer_offsets import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    GroupMetadataValue,
    MemberMetadata,
)
from kohort.wire.embedded import decode_assignment, decode_subscription
from kohort.wire.errors import WireError

CONSUMERS = "consumer"
"""The protocol type of groups whose assignments a consumer can read."""

Holds = tuple[TopicPartition, ...] | None


def members_of(kept: GroupMetadataValue) -> tuple[Member, ...]:
    return tuple(_member(each, kept) for each in kept.members)


def _member(told: MemberMetadata, kept: GroupMetadataValue) -> Member:
    is_consumer = kept.protocol_type == CONSUMERS
    return Member(
        party=_party(told.member_id, told.group_instance_id, told.client_id, told.client_host),
        is_leader=told.member_id == kept.leader,
        session_timeout_ms=told.session_timeout,
        rebalance_timeout_ms=None if told.rebalance_timeout < 0 else told.rebalance_timeout,
        topics=_topics(told.subscription) if is_consumer else (),
        holds=_holds(told.assignment) if is_consumer else None,
    )


def _party(
    member_id: MemberId, instance_id: InstanceId | None, client_id: str, client_host: str
) -> Party:
    # Thousands of members share a few programs and hosts.
    return Party(
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


def _holds(assignment: bytes) -> Holds:
    if not assignment:
        return ()
    try:
        told = decode_assignment(assignment).assigned_partitions
    except WireError:
        return None
    return tuple(
        sorted(
            TopicPartition(Topic(intern(some.topic)), number)
            for some in told
            for number in some.partitions
        )
    )


def modern_member(
    member_id: MemberId,
    told: ConsumerGroupMemberMetadataValue,
    current: ConsumerGroupCurrentMemberAssignmentValue | None,
    names: Mapping[Uuid, Topic],
) -> Member:
    """A member of KIP-848's protocol: the broker assigns, so there is no leader."""
    classic = told.classic_member_metadata
    return Member(
        party=_party(member_id, told.instance_id, told.client_id, told.client_host),
        is_leader=False,
        session_timeout_ms=None if not classic else classic.session_timeout_ms or None,
        rebalance_timeout_ms=None if told.rebalance_timeout_ms < 0 else told.rebalance_timeout_ms,
        topics=tuple(told.subscribed_topic_names),
        holds=() if current is None else named_partitions(_pairs(current), names),
    )


def _pairs(
    told: ConsumerGroupCurrentMemberAssignmentValue,
) -> Iterable[tuple[Uuid, tuple[Partition, ...]]]:
    return ((each.topic_id, each.partitions) for each in told.assigned_partitions)


def named_partitions(
    pairs: Iterable[tuple[Uuid, tuple[Partition, ...]]], names: Mapping[Uuid, Topic]
) -> tuple[TopicPartition, ...]:
    """A topic whose name is not known yet, or not any more, goes by its id."""
    return tuple(
        sorted(
            TopicPartition(names.get(topic, Topic(str(topic))), number)
            for topic, numbers in pairs
            for number in numbers
        )
    )


def difference(
    *,
    generation_before: Generation | None,
    before: tuple[Member, ...] | None,
    generation: Generation,
    after: tuple[Member, ...],
    at_ms: Millis,
    protocol: str,
    leader: MemberId | None,
) -> Rebalance:
    """A rebalance as the difference of two generations: what came of it, not how it came about.

    Without a generation before, all that is known is that this one was formed.
    """
    had = {} if before is None else {each.party.member_id: each.holds for each in before}
    stayed = {each.party.member_id for each in after}
    return Rebalance(
        key=str(at_ms),
        is_exact=False,
        generation_before=generation_before,
        generation=generation,
        started_ms=None,
        joined_ms=None,
        ended_ms=at_ms,
        trigger=None,
        culprit=None,
        client_reason=None,
        state_before=None,
        join_ended_by=None,
        ending="stable" if after else "empty",
        protocol=protocol or None,
        leader=leader,
        waited_for=(),
        participants=tuple(
            Participant(
                party=each.party,
                join_took_ms=None,
                sync_took_ms=None,
                had=None if before is None else had.get(each.party.member_id, ()),
                got=each.holds,
            )
            for each in after
        ),
        removals=tuple(
            Removal(party=each.party, departure=None)
            for each in before or ()
            if each.party.member_id not in stayed
        ),
        newcomers=()
        if before is None
        else tuple(each.party.member_id for each in after if each.party.member_id not in had),
    )
