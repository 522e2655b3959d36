"""Lists, describes and deletes groups, and removes members."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from kohort.admin.cluster_connection import Cluster
from kohort.admin.errors import (
    AdminError,
    InvalidRequest,
    NoSuchGroup,
    UnsupportedCluster,
    error_from_code,
)
from kohort.admin.router import BrokerEndpoint, PartialResponse
from kohort.conditions.group_snapshot import STATES
from kohort.types import ErrorCode, GroupId, InstanceId, MemberId, Topic, TopicPartition, value
from kohort.wire.api import k15_describe_groups as classic_api
from kohort.wire.api import k69_consumer_group_describe as consumer_api
from kohort.wire.api.k13_leave_group import LeaveGroupRequest, MemberIdentity
from kohort.wire.api.k16_list_groups import ListGroupsRequest
from kohort.wire.api.k42_delete_groups import DeleteGroupsRequest
from kohort.wire.consumer_protocol import (
    decode_assignment,
    decode_subscription,
    sorted_partitions,
)
from kohort.wire.errors import WireError

TYPES: Final = ("Classic", "Consumer")

IDLE_STATES: Final = ("Empty", "Dead")
"""States without members, in which offsets may be changed."""

_CONSUMERS: Final = ("consumer", "")
"""Protocol types of consumer groups. It is empty if the group only committed offsets."""

_REMOVAL_REASON: Final = "removed by an administrator"


@value
class GroupListing:
    group_id: GroupId
    group_type: str
    """Classic or Consumer."""
    state: str
    protocol_type: str
    """`consumer`; empty if the group never had members."""


@value
class GroupMemberDescription:
    member_id: MemberId
    instance_id: InstanceId | None
    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...]
    """Its assignment, sorted. Empty while a classic group rebalances."""
    topics: tuple[Topic, ...]
    """Its subscription, if the broker reports it."""
    owned: tuple[TopicPartition, ...] = ()
    """What it owned when it joined, if it reports that (KIP-429). Only in classic groups."""
    epoch: int | None = None
    target: tuple[TopicPartition, ...] | None = None
    """Its target assignment. Like `epoch`, only in groups of type Consumer."""
    is_classic: bool | None = None
    """Whether a member of a Consumer group uses the classic protocol; None if not reported."""


@value
class ConsumerGroupDescription:
    group_id: GroupId
    group_type: str
    state: str
    protocol_type: str
    assignor: str
    """Empty unless the group is stable."""
    coordinator: BrokerEndpoint
    members: tuple[GroupMemberDescription, ...]
    epoch: int | None = None
    target_epoch: int | None = None

    @property
    def is_idle(self) -> bool:
        return self.state in IDLE_STATES


# Read


def list_groups(
    cluster: Cluster, *, states: Collection[str] = (), types: Collection[str] = ()
) -> tuple[GroupListing, ...]:
    """All consumer groups, sorted by id; filtered by state and type if given."""
    states, types = read_states(states), read_types(types)
    found: dict[GroupId, GroupListing] = {}
    for broker in cluster.router.brokers():
        # Older brokers cannot filter by type, so the filter is here.
        response = cluster.router.send(broker, ListGroupsRequest(states_filter=states))
        if response.error_code != ErrorCode.NONE:
            where = f"groups of broker {broker.broker_id} cannot be listed"
            raise error_from_code(response.error_code, where)
        for each in response.groups:
            listed = GroupListing(
                group_id=each.group_id,
                # A broker that reports no type has only classic groups.
                group_type=each.group_type.capitalize() or "Classic",
                state=each.group_state,
                protocol_type=each.protocol_type,
            )
            if listed.protocol_type in _CONSUMERS and listed.group_type in (types or TYPES):
                found[listed.group_id] = listed
    return tuple(found[group_id] for group_id in sorted(found))


def describe_groups(
    cluster: Cluster, group_ids: Iterable[GroupId]
) -> dict[GroupId, ConsumerGroupDescription]:
    """The groups that exist, sorted by id."""
    ids = sorted(set(group_ids))
    described: dict[GroupId, ConsumerGroupDescription] = {}
    others: list[GroupId] = []
    for group_id, response in cluster.router.send_to_coordinators(
        ids, _describe_classic, _split_classic
    ).items():
        group = _read_classic(group_id, response)
        if group is None:
            others.append(group_id)
        else:
            described[group_id] = group
    described |= _describe_consumer_groups(cluster, others)
    return {group_id: described[group_id] for group_id in ids if group_id in described}


def get_groups(
    cluster: Cluster, group_ids: Iterable[GroupId]
) -> dict[GroupId, ConsumerGroupDescription]:
    """Like `describe_groups`, but raises NoSuchGroup with the missing ids."""
    ids = tuple(group_ids)
    described = describe_groups(cluster, ids)
    missing = sorted({group_id for group_id in ids if group_id not in described})
    if missing:
        shown = ", ".join(repr(group_id) for group_id in missing)
        raise NoSuchGroup(f"there is no group {shown}")
    return described


def read_states(given: Collection[str]) -> tuple[str, ...]:
    """State names in the broker's spelling; the input may have any case."""
    return _read_words(given, STATES, "state")


def read_types(given: Collection[str]) -> tuple[str, ...]:
    return _read_words(given, TYPES, "type")


def _read_words(given: Collection[str], words: tuple[str, ...], what: str) -> tuple[str, ...]:
    by_lower = {word.lower(): word for word in words}
    for each in given:
        if each.strip().lower() not in by_lower:
            raise InvalidRequest(f"unknown {what} {each!r}; use one of {', '.join(words)}")
    return tuple(dict.fromkeys(by_lower[each.strip().lower()] for each in given))


# Write


def delete_groups(
    cluster: Cluster, group_ids: Iterable[GroupId]
) -> dict[GroupId, AdminError | None]:
    """The error of each group; None if it was deleted."""
    ids = sorted(set(group_ids))
    responses = cluster.router.send_to_coordinators(
        ids,
        lambda ids: DeleteGroupsRequest(groups_names=ids),
        lambda response: ((each.group_id, each.error_code, each) for each in response.results),
    )
    results: dict[GroupId, AdminError | None] = {}
    for group_id in ids:
        response = responses[group_id]
        what = f"group {group_id!r} cannot be deleted"
        code, detail = response.error_code, response.error_message
        results[group_id] = None if code == ErrorCode.NONE else error_from_code(code, what, detail)
    return results


def remove_members(
    cluster: Cluster,
    group_id: GroupId,
    *,
    member_ids: Iterable[MemberId] = (),
    instance_ids: Iterable[InstanceId] = (),
    reason: str = _REMOVAL_REASON,
) -> dict[str, AdminError | None]:
    """The error of each member, by the given id; None if removed. A live member rejoins."""
    identities = (
        *(MemberIdentity(member_id=each, reason=reason) for each in member_ids),
        *(
            MemberIdentity(member_id=MemberId(""), group_instance_id=each, reason=reason)
            for each in instance_ids
        ),
    )
    response = _only(
        cluster.router.send_to_coordinators(
            [group_id],
            lambda _: LeaveGroupRequest(group_id=group_id, members=identities),
            lambda response: [(group_id, response.error_code, response)],
        )
    )
    what = f"members of group {group_id!r} cannot be removed"
    if response.error_code != ErrorCode.NONE or response.body is None:
        raise error_from_code(response.error_code, what, response.error_message)
    return {
        each.group_instance_id or each.member_id: _member_error(group_id, each)
        for each in response.body.members
    }


def _member_error(group_id: GroupId, member: Any) -> AdminError | None:
    if member.error_code == ErrorCode.NONE:
        return None
    name = member.group_instance_id or member.member_id
    return error_from_code(member.error_code, f"{name!r} cannot be removed from group {group_id!r}")


def _only(responses: Mapping[GroupId, PartialResponse[Any]]) -> PartialResponse[Any]:
    (response,) = responses.values()
    return response


# Classic groups


def _describe_classic(ids: tuple[GroupId, ...]) -> classic_api.DescribeGroupsRequest:
    return classic_api.DescribeGroupsRequest(groups=ids)


def _split_classic(
    response: classic_api.DescribeGroupsResponse,
) -> Iterator[tuple[GroupId, int, classic_api.DescribedGroup]]:
    for each in response.groups:
        yield each.group_id, each.error_code, each


def _read_classic(
    group_id: GroupId, response: PartialResponse[classic_api.DescribedGroup]
) -> ConsumerGroupDescription | None:
    """None if the group does not exist or is not classic; brokers do not distinguish them."""
    group, coordinator = response.body, response.broker
    if response.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return None
    if response.error_code != ErrorCode.NONE or group is None or coordinator is None:
        raise error_from_code(
            response.error_code, f"group {group_id!r} cannot be described", response.error_message
        )
    if group.group_state == "Dead":
        return None
    is_consumers = group.protocol_type == "consumer"
    return ConsumerGroupDescription(
        group_id=group_id,
        group_type="Classic",
        state=group.group_state,
        protocol_type=group.protocol_type,
        assignor=group.protocol_data,
        coordinator=coordinator,
        members=tuple(_classic_member(each, is_consumers=is_consumers) for each in group.members),
    )


def _classic_member(
    member: classic_api.DescribedGroupMember, *, is_consumers: bool
) -> GroupMemberDescription:
    partitions: tuple[TopicPartition, ...] = ()
    topics: tuple[Topic, ...] = ()
    owned: tuple[TopicPartition, ...] = ()
    if is_consumers and member.member_assignment:
        partitions = _assigned(member.member_assignment)
    if is_consumers and member.member_metadata:
        topics, owned = _subscribed(member.member_metadata)
    return GroupMemberDescription(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        host=member.client_host,
        partitions=partitions,
        topics=topics,
        owned=owned,
    )


def _assigned(data: bytes) -> tuple[TopicPartition, ...]:
    """The leader may write any bytes. Empty if they are not in the consumer protocol."""
    try:
        return sorted_partitions(decode_assignment(data).assigned_partitions)
    except WireError:
        return ()


def _subscribed(data: bytes) -> tuple[tuple[Topic, ...], tuple[TopicPartition, ...]]:
    """Its topics, and the partitions that it owned when it joined."""
    try:
        subscription = decode_subscription(data)
    except WireError:
        return (), ()
    return tuple(sorted(subscription.topics)), sorted_partitions(subscription.owned_partitions)


# Consumer groups (KIP-848)


def _describe_consumer_groups(
    cluster: Cluster, group_ids: Iterable[GroupId]
) -> dict[GroupId, ConsumerGroupDescription]:
    try:
        responses = cluster.router.send_to_coordinators(
            group_ids,
            lambda ids: consumer_api.ConsumerGroupDescribeRequest(group_ids=ids),
            lambda response: ((each.group_id, each.error_code, each) for each in response.groups),
        )
    except UnsupportedCluster:
        # Such a cluster has no KIP-848 groups.
        return {}
    found: dict[GroupId, ConsumerGroupDescription] = {}
    for group_id, response in responses.items():
        if response.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
            continue
        if (
            response.error_code != ErrorCode.NONE
            or response.body is None
            or response.broker is None
        ):
            raise error_from_code(
                response.error_code,
                f"group {group_id!r} cannot be described",
                response.error_message,
            )
        found[group_id] = _read_consumer_group(group_id, response.body, response.broker)
    return found


def _read_consumer_group(
    group_id: GroupId, group: consumer_api.DescribedGroup, coordinator: BrokerEndpoint
) -> ConsumerGroupDescription:
    return ConsumerGroupDescription(
        group_id=group_id,
        group_type="Consumer",
        state=group.group_state,
        protocol_type="consumer",
        assignor=group.assignor_name,
        coordinator=coordinator,
        members=tuple(_consumer_group_member(each) for each in group.members),
        epoch=group.group_epoch,
        target_epoch=group.assignment_epoch,
    )


def _consumer_group_member(member: consumer_api.Member) -> GroupMemberDescription:
    return GroupMemberDescription(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        host=member.client_host,
        partitions=_partitions(member.assignment),
        topics=tuple(sorted(member.subscribed_topic_names)),
        epoch=member.member_epoch,
        target=_partitions(member.target_assignment),
        is_classic=None if member.member_type < 0 else member.member_type == 0,
    )


def _partitions(assignment: consumer_api.Assignment) -> tuple[TopicPartition, ...]:
    return tuple(
        sorted(
            TopicPartition(each.topic_name, number)
            for each in assignment.topic_partitions
            for number in each.partitions
        )
    )
