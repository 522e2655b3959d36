"""The leader's part of a rebalance: what everyone wants is read, dealt out, checked and written.

Pure functions; what is wrong is a BadAssignment that says who is to blame.
"""

from collections.abc import Iterable, Mapping, Sequence

from kohort.client.assignors import (
    COOPERATIVE_STICKY,
    Assignment,
    Assignor,
    RebalanceProtocol,
    Subscriber,
)
from kohort.client.errors import BadAssignment
from kohort.client.topic_partition import TopicPartition
from kohort.types import Generation, MemberId, Partition, Topic
from kohort.wire.api.k11_join_group import JoinGroupResponseMember
from kohort.wire.embedded import Assignment as WireAssignment
from kohort.wire.embedded import (
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
        raise BadAssignment(
            f"the subscription of member {member.member_id!r} cannot be read: {error}"
        ) from error
    return Subscriber(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        topics=frozenset(subscription.topics),
        owned=tuple(flat(subscription.owned_partitions)),
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
    """What a member tells the leader; and what it was last assigned, and when."""
    try:
        user_data = assignor.user_data(assigned, generation)
    except Exception as error:
        raise BadAssignment(f"assignor {assignor.name!r} failed: {error!r}") from error
    return encode_subscription(
        Subscription(
            topics=tuple(sorted(mine.topics)),
            user_data=user_data,
            owned_partitions=grouped(mine.owned),
            generation_id=mine.generation,
            rack_id=mine.rack,
        )
    )


def topics_of(subscribers: Iterable[Subscriber]) -> frozenset[Topic]:
    return frozenset[Topic]().union(*(each.topics for each in subscribers))


def deal(
    assignor: Assignor,
    protocol: RebalanceProtocol,
    partitions: Mapping[Topic, int],
    subscribers: Sequence[Subscriber],
) -> dict[MemberId, bytes]:
    """What each member is to be handed, by the assignor's word and within its rights."""
    try:
        dealt = assignor.assign(partitions, subscribers)
        _check(assignor, dealt, partitions, subscribers)
        if protocol is RebalanceProtocol.COOPERATIVE and assignor.name != COOPERATIVE_STICKY.name:
            _check_cooperation(assignor, dealt, subscribers)
        return {
            each.member_id: write_assignment(dealt.get(each.member_id, ())) for each in subscribers
        }
    except BadAssignment:
        raise
    except Exception as error:
        raise BadAssignment(f"assignor {assignor.name!r} failed: {error!r}") from error


def _check(
    assignor: Assignor,
    dealt: Assignment,
    partitions: Mapping[Topic, int],
    subscribers: Sequence[Subscriber],
) -> None:
    wanted = {each.member_id: each.topics for each in subscribers}
    owners: dict[TopicPartition, MemberId] = {}
    for member_id, given in dealt.items():
        if member_id not in wanted:
            raise BadAssignment(
                f"assignor {assignor.name!r} gave to {member_id!r}, which is not in the group"
            )
        for topic, partition in given:
            wrong = f"assignor {assignor.name!r} gave {topic}-{partition} to {member_id!r}"
            if topic not in wanted[member_id]:
                raise BadAssignment(f"{wrong}, which has not subscribed to it")
            if not 0 <= partition < partitions.get(topic, 0):
                raise BadAssignment(f"{wrong}, but there is no such partition")
            other = owners.setdefault(TopicPartition(topic, partition), member_id)
            if other != member_id:
                raise BadAssignment(f"{wrong} and to {other!r}")


def _check_cooperation(
    assignor: Assignor, dealt: Assignment, subscribers: Sequence[Subscriber]
) -> None:
    """What somebody owns must be given up in one rebalance before another gets it in the next.

    Ours sees to that by itself, and knows stale claims from fresh ones as this check does not.
    """
    added: set[TopicPartition] = set()
    revoked: set[TopicPartition] = set()
    for each in subscribers:
        given, owned = set(dealt.get(each.member_id, ())), set(each.owned)
        added |= given - owned
        revoked |= owned - given
    if added & revoked:
        moved = ", ".join(f"{topic}-{partition}" for topic, partition in sorted(added & revoked))
        raise BadAssignment(
            f"assignor {assignor.name!r} calls itself cooperative, but gave {moved} to one member "
            "while another owns it"
        )


# The bytes


def flat(grouped: Iterable[TopicPartitions]) -> list[TopicPartition]:
    return [TopicPartition(each.topic, number) for each in grouped for number in each.partitions]


def grouped(partitions: Iterable[TopicPartition]) -> tuple[TopicPartitions, ...]:
    by_topic: dict[Topic, list[Partition]] = {}
    for topic, partition in sorted(partitions):
        by_topic.setdefault(topic, []).append(partition)
    return tuple(
        TopicPartitions(topic=topic, partitions=tuple(numbers))
        for topic, numbers in by_topic.items()
    )


def write_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    return encode_assignment(WireAssignment(assigned_partitions=grouped(partitions)))


def read_assignment(data: bytes) -> frozenset[TopicPartition]:
    if not data:
        raise BadAssignment("the group's leader has left this member out of its assignment")
    try:
        return frozenset(flat(decode_assignment(data).assigned_partitions))
    except WireError as error:
        raise BadAssignment(
            f"the assignment of the group's leader cannot be read: {error}"
        ) from error
