"""The group leader's part of a rebalance: decode subscriptions, assign, check, encode.

Pure functions. An InvalidAssignmentError names the assignor or member that caused it.
"""

from collections.abc import Iterable, Mapping, Sequence

from kohort.assignors import (
    COOPERATIVE_STICKY,
    Assignment,
    Assignor,
    RebalanceProtocol,
    Subscriber,
)
from kohort.client.errors import InvalidAssignmentError
from kohort.types import Generation, MemberId, Partition, Topic, TopicPartition
from kohort.wire.api.k11_join_group import JoinGroupResponseMember
from kohort.wire.consumer_protocol import Assignment as WireAssignment
from kohort.wire.consumer_protocol import (
    Subscription,
    TopicPartitions,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kohort.wire.errors import WireError


def read_subscribers(members: Iterable[JoinGroupResponseMember]) -> tuple[Subscriber, ...]:
    return tuple(_subscriber(member) for member in members)


def _subscriber(member: JoinGroupResponseMember) -> Subscriber:
    try:
        subscription = decode_subscription(member.metadata)
    except WireError as error:
        raise InvalidAssignmentError(
            f"the subscription of member {member.member_id!r} cannot be decoded: {error}"
        ) from error
    return Subscriber(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        topics=frozenset(subscription.topics),
        owned=tuple(flatten(subscription.owned_partitions)),
        generation=subscription.generation_id,
        rack=subscription.rack_id or None,
        user_data=subscription.user_data,
    )


def write_subscription(
    assignor: Assignor,
    mine: Subscriber,
    assigned: Iterable[TopicPartition],
    generation: Generation,
) -> bytes:
    """The subscription that the leader gets, with the last assignment and its generation."""
    try:
        user_data = assignor.user_data(assigned, generation)
    except Exception as error:
        raise InvalidAssignmentError(f"assignor {assignor.name!r} failed: {error!r}") from error
    return encode_subscription(
        Subscription(
            topics=tuple(sorted(mine.topics)),
            user_data=user_data,
            owned_partitions=group_by_topic(mine.owned),
            generation_id=mine.generation,
            rack_id=mine.rack,
        )
    )


def topics_of(subscribers: Iterable[Subscriber]) -> frozenset[Topic]:
    return frozenset[Topic]().union(*(each.topics for each in subscribers))


def compute_assignments(
    assignor: Assignor,
    protocol: RebalanceProtocol,
    partitions: Mapping[Topic, int],
    subscribers: Sequence[Subscriber],
) -> dict[MemberId, bytes]:
    """The encoded assignment of each member, after the assignor's result is checked."""
    try:
        assignment = assignor.assign(partitions, subscribers)
        _check(assignor, assignment, partitions, subscribers)
        if protocol is RebalanceProtocol.COOPERATIVE and assignor.name != COOPERATIVE_STICKY.name:
            _check_cooperation(assignor, assignment, subscribers)
        return {
            each.member_id: write_assignment(assignment.get(each.member_id, ()))
            for each in subscribers
        }
    except InvalidAssignmentError:
        raise
    except Exception as error:
        raise InvalidAssignmentError(f"assignor {assignor.name!r} failed: {error!r}") from error


def _check(
    assignor: Assignor,
    assignment: Assignment,
    partitions: Mapping[Topic, int],
    subscribers: Sequence[Subscriber],
) -> None:
    wanted = {each.member_id: each.topics for each in subscribers}
    owners: dict[TopicPartition, MemberId] = {}
    for member_id, given in assignment.items():
        if member_id not in wanted:
            raise InvalidAssignmentError(
                f"assignor {assignor.name!r} assigned partitions to {member_id!r}, "
                "which is not a member of the group"
            )
        for topic, partition in given:
            problem = f"assignor {assignor.name!r} assigned {topic}-{partition} to {member_id!r}"
            if topic not in wanted[member_id]:
                raise InvalidAssignmentError(f"{problem}, which has not subscribed to it")
            if not 0 <= partition < partitions.get(topic, 0):
                raise InvalidAssignmentError(f"{problem}, but the partition does not exist")
            other = owners.setdefault(TopicPartition(topic, partition), member_id)
            if other != member_id:
                raise InvalidAssignmentError(f"{problem} and to {other!r}")


def _check_cooperation(
    assignor: Assignor, assignment: Assignment, subscribers: Sequence[Subscriber]
) -> None:
    """A member must revoke a partition in one rebalance before another gets it in the next.

    Our cooperative-sticky assignor is exempt: it guarantees this, and it can distinguish outdated
    ownership from current ownership, which this check cannot.
    """
    added: set[TopicPartition] = set()
    revoked: set[TopicPartition] = set()
    for each in subscribers:
        given, owned = set(assignment.get(each.member_id, ())), set(each.owned)
        added |= given - owned
        revoked |= owned - given
    if added & revoked:
        moved = ", ".join(f"{topic}-{partition}" for topic, partition in sorted(added & revoked))
        raise InvalidAssignmentError(
            f"assignor {assignor.name!r} is cooperative but assigned {moved} while another "
            "member still owns it"
        )


# Encoding


def flatten(group_by_topic: Iterable[TopicPartitions]) -> list[TopicPartition]:
    return [
        TopicPartition(each.topic, number) for each in group_by_topic for number in each.partitions
    ]


def group_by_topic(partitions: Iterable[TopicPartition]) -> tuple[TopicPartitions, ...]:
    by_topic: dict[Topic, list[Partition]] = {}
    for topic, partition in sorted(partitions):
        by_topic.setdefault(topic, []).append(partition)
    return tuple(
        TopicPartitions(topic=topic, partitions=tuple(numbers))
        for topic, numbers in by_topic.items()
    )


def write_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    return encode_assignment(WireAssignment(assigned_partitions=group_by_topic(partitions)))


def read_assignment(data: bytes) -> frozenset[TopicPartition]:
    if not data:
        raise InvalidAssignmentError("the group leader's assignment does not include this member")
    try:
        return frozenset(flatten(decode_assignment(data).assigned_partitions))
    except WireError as error:
        raise InvalidAssignmentError(
            f"the group leader's assignment cannot be decoded: {error}"
        ) from error
