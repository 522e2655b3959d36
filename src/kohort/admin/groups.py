"""Groups as an operator sees them: which there are, who is in them; and what ends them.

All of it goes by our own messages: many groups travel in one request, states and epochs that
librdkafka has no words for come as the broker wrote them, and members can be removed at all.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from kohort.admin.caller import Answer, Broker
from kohort.admin.cluster import Cluster
from kohort.admin.errors import AdminError, NoSuchGroup, UnsupportedCluster, WrongWish, refusal
from kohort.client.topic_partition import TopicPartition
from kohort.types import ErrorCode, GroupId, InstanceId, MemberId, Topic, value
from kohort.wire.api import k15_describe_groups as classic_api
from kohort.wire.api import k69_consumer_group_describe as consumer_api
from kohort.wire.api.k13_leave_group import LeaveGroupRequest, MemberIdentity
from kohort.wire.api.k16_list_groups import ListGroupsRequest
from kohort.wire.api.k42_delete_groups import DeleteGroupsRequest
from kohort.wire.embedded import decode_assignment, decode_subscription
from kohort.wire.errors import WireError

STATES: Final = (
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Dead",
    "Empty",
    "Assigning",
    "Reconciling",
)
TYPES: Final = ("Classic", "Consumer")

IDLE_STATES: Final = ("Empty", "Dead")
"""In which a group has no members, and its offsets may be changed."""

_CONSUMERS: Final = ("consumer", "")
"""The protocol type of groups of consumers; that of groups which only ever committed is empty."""

_REMOVAL_REASON: Final = "removed by an administrator"


@value
class ListedGroup:
    group_id: GroupId
    group_type: str
    """Classic or Consumer."""
    state: str
    protocol_type: str
    """`consumer`; empty where nobody ever joined."""


@value
class Member:
    member_id: MemberId
    instance_id: InstanceId | None
    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...]
    """In order. What it has; while a classic group rebalances, nobody tells."""
    topics: tuple[Topic, ...]
    """What it subscribes to, as far as it is told."""
    epoch: int | None = None
    target: tuple[TopicPartition, ...] | None = None
    """What it shall have; only in groups of the type Consumer, like its epoch."""
    is_classic: bool | None = None
    """Whether it speaks the classic protocol in a group of the newer type, where that is told."""


@value
class Group:
    group_id: GroupId
    group_type: str
    state: str
    protocol_type: str
    assignor: str
    """Empty unless the group is stable."""
    coordinator: Broker
    members: tuple[Member, ...]
    epoch: int | None = None
    target_epoch: int | None = None

    @property
    def is_idle(self) -> bool:
        return self.state in IDLE_STATES


# Asking


def list_groups(
    cluster: Cluster, *, states: Collection[str] = (), types: Collection[str] = ()
) -> tuple[ListedGroup, ...]:
    """All groups of consumers, by their names; or only those in some states, or of some types."""
    states, types = read_states(states), read_types(types)
    found: dict[GroupId, ListedGroup] = {}
    for broker in cluster.caller.brokers():
        # Not every broker can be asked by type, so that is looked at here.
        answer = cluster.caller.ask(broker, ListGroupsRequest(states_filter=states))
        if answer.error_code != ErrorCode.NONE:
            where = f"groups of broker {broker.broker_id} cannot be listed"
            raise refusal(answer.error_code, where)
        for each in answer.groups:
            listed = ListedGroup(
                group_id=each.group_id,
                # A broker that tells no types knows only one.
                group_type=each.group_type.capitalize() or "Classic",
                state=each.group_state,
                protocol_type=each.protocol_type,
            )
            if listed.protocol_type in _CONSUMERS and listed.group_type in (types or TYPES):
                found[listed.group_id] = listed
    return tuple(found[group_id] for group_id in sorted(found))


def describe_groups(cluster: Cluster, group_ids: Iterable[GroupId]) -> dict[GroupId, Group]:
    """Those of the groups that exist, by their names."""
    asked = sorted(set(group_ids))
    described: dict[GroupId, Group] = {}
    others: list[GroupId] = []
    for group_id, answer in cluster.caller.ask_coordinators(
        asked, _describe_classic, _classic_answers
    ).items():
        group = _read_classic(group_id, answer)
        if group is None:
            others.append(group_id)
        else:
            described[group_id] = group
    described |= _describe_newer(cluster, others)
    return {group_id: described[group_id] for group_id in asked if group_id in described}


def get_groups(cluster: Cluster, group_ids: Iterable[GroupId]) -> dict[GroupId, Group]:
    """The same, where all of them must be there: NoSuchGroup names those that are not."""
    asked = tuple(group_ids)
    described = describe_groups(cluster, asked)
    missing = sorted({group_id for group_id in asked if group_id not in described})
    if missing:
        shown = ", ".join(repr(group_id) for group_id in missing)
        raise NoSuchGroup(f"there is no group {shown}")
    return described


def read_states(given: Collection[str]) -> tuple[str, ...]:
    """States as brokers write them, however they were written."""
    return _read_words(given, STATES, "state")


def read_types(given: Collection[str]) -> tuple[str, ...]:
    return _read_words(given, TYPES, "type")


def _read_words(given: Collection[str], words: tuple[str, ...], what: str) -> tuple[str, ...]:
    by_lower = {word.lower(): word for word in words}
    for each in given:
        if each.strip().lower() not in by_lower:
            raise WrongWish(f"there is no {what} {each!r}; there are {', '.join(words)}")
    return tuple(dict.fromkeys(by_lower[each.strip().lower()] for each in given))


# Changing


def delete_groups(
    cluster: Cluster, group_ids: Iterable[GroupId]
) -> dict[GroupId, AdminError | None]:
    """What became of each: None where it is gone."""
    asked = sorted(set(group_ids))
    answers = cluster.caller.ask_coordinators(
        asked,
        lambda ids: DeleteGroupsRequest(groups_names=ids),
        lambda told: ((each.group_id, each.error_code, each) for each in told.results),
    )
    results: dict[GroupId, AdminError | None] = {}
    for group_id in asked:
        answer = answers[group_id]
        what = f"group {group_id!r} cannot be deleted"
        is_gone = answer.code == ErrorCode.NONE
        results[group_id] = None if is_gone else refusal(answer.code, what, answer.detail)
    return results


def remove_members(
    cluster: Cluster,
    group_id: GroupId,
    *,
    member_ids: Iterable[MemberId] = (),
    instance_ids: Iterable[InstanceId] = (),
    reason: str = _REMOVAL_REASON,
) -> dict[str, AdminError | None]:
    """What became of each, by the name it was given under. A member that still lives comes back."""
    identities = (
        *(MemberIdentity(member_id=each, reason=reason) for each in member_ids),
        *(
            MemberIdentity(member_id=MemberId(""), group_instance_id=each, reason=reason)
            for each in instance_ids
        ),
    )
    answer = _only(
        cluster.caller.ask_coordinators(
            [group_id],
            lambda _: LeaveGroupRequest(group_id=group_id, members=identities),
            lambda told: [(group_id, told.error_code, told)],
        )
    )
    what = f"members of group {group_id!r} cannot be removed"
    if answer.code != ErrorCode.NONE or answer.told is None:
        raise refusal(answer.code, what, answer.detail)
    return {
        each.group_instance_id or each.member_id: _member_error(group_id, each)
        for each in answer.told.members
    }


def _member_error(group_id: GroupId, told: Any) -> AdminError | None:
    if told.error_code == ErrorCode.NONE:
        return None
    name = told.group_instance_id or told.member_id
    return refusal(told.error_code, f"{name!r} cannot be removed from group {group_id!r}")


def _only(answers: Mapping[GroupId, Answer[Any]]) -> Answer[Any]:
    (answer,) = answers.values()
    return answer


# Groups of the classic protocol


def _describe_classic(ids: tuple[GroupId, ...]) -> classic_api.DescribeGroupsRequest:
    return classic_api.DescribeGroupsRequest(groups=ids)


def _classic_answers(
    told: classic_api.DescribeGroupsResponse,
) -> Iterator[tuple[GroupId, int, classic_api.DescribedGroup]]:
    for each in told.groups:
        yield each.group_id, each.error_code, each


def _read_classic(group_id: GroupId, answer: Answer[classic_api.DescribedGroup]) -> Group | None:
    """None for a group that is not there, or not of this type: both are answered alike."""
    told, coordinator = answer.told, answer.coordinator
    if answer.code == ErrorCode.GROUP_ID_NOT_FOUND:
        return None
    if answer.code != ErrorCode.NONE or told is None or coordinator is None:
        raise refusal(answer.code, f"group {group_id!r} cannot be described", answer.detail)
    if told.group_state == "Dead":
        return None
    is_consumers = told.protocol_type == "consumer"
    return Group(
        group_id=group_id,
        group_type="Classic",
        state=told.group_state,
        protocol_type=told.protocol_type,
        assignor=told.protocol_data,
        coordinator=coordinator,
        members=tuple(_classic_member(each, is_consumers=is_consumers) for each in told.members),
    )


def _classic_member(told: classic_api.DescribedGroupMember, *, is_consumers: bool) -> Member:
    partitions: tuple[TopicPartition, ...] = ()
    topics: tuple[Topic, ...] = ()
    if is_consumers and told.member_assignment:
        partitions = _assigned(told.member_assignment)
    if is_consumers and told.member_metadata:
        topics = _subscribed(told.member_metadata)
    return Member(
        member_id=told.member_id,
        instance_id=told.group_instance_id,
        client_id=told.client_id,
        host=told.client_host,
        partitions=partitions,
        topics=topics,
    )


def _assigned(data: bytes) -> tuple[TopicPartition, ...]:
    """What a leader has dealt out is its own affair; what cannot be read is nothing we know."""
    try:
        dealt = decode_assignment(data).assigned_partitions
    except WireError:
        return ()
    return tuple(
        sorted(TopicPartition(each.topic, number) for each in dealt for number in each.partitions)
    )


def _subscribed(data: bytes) -> tuple[Topic, ...]:
    try:
        return tuple(sorted(decode_subscription(data).topics))
    except WireError:
        return ()


# Groups of the newer protocol (KIP-848)


def _describe_newer(cluster: Cluster, group_ids: Iterable[GroupId]) -> dict[GroupId, Group]:
    try:
        answers = cluster.caller.ask_coordinators(
            group_ids,
            lambda ids: consumer_api.ConsumerGroupDescribeRequest(group_ids=ids),
            lambda told: ((each.group_id, each.error_code, each) for each in told.groups),
        )
    except UnsupportedCluster:
        # Then there are no such groups.
        return {}
    found: dict[GroupId, Group] = {}
    for group_id, answer in answers.items():
        if answer.code == ErrorCode.GROUP_ID_NOT_FOUND:
            continue
        if answer.code != ErrorCode.NONE or answer.told is None or answer.coordinator is None:
            raise refusal(answer.code, f"group {group_id!r} cannot be described", answer.detail)
        found[group_id] = _read_newer(group_id, answer.told, answer.coordinator)
    return found


def _read_newer(group_id: GroupId, told: consumer_api.DescribedGroup, coordinator: Broker) -> Group:
    return Group(
        group_id=group_id,
        group_type="Consumer",
        state=told.group_state,
        protocol_type="consumer",
        assignor=told.assignor_name,
        coordinator=coordinator,
        members=tuple(_newer_member(each) for each in told.members),
        epoch=told.group_epoch,
        target_epoch=told.assignment_epoch,
    )


def _newer_member(told: consumer_api.Member) -> Member:
    return Member(
        member_id=told.member_id,
        instance_id=told.instance_id,
        client_id=told.client_id,
        host=told.client_host,
        partitions=_flat(told.assignment),
        topics=tuple(sorted(told.subscribed_topic_names)),
        epoch=told.member_epoch,
        target=_flat(told.target_assignment),
        is_classic=None if told.member_type < 0 else told.member_type == 0,
    )


def _flat(assignment: consumer_api.Assignment) -> tuple[TopicPartition, ...]:
    return tuple(
        sorted(
            TopicPartition(each.topic_name, number)
            for each in assignment.topic_partitions
            for number in each.partitions
        )
    )
