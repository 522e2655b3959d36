"""How far groups have come and how far logs reach, for any number of groups and partitions at once.

Groups are asked and changed by our own messages: librdkafka takes one group at a time, cannot make
one forget, and gives up where a coordinator is still loading. It is librdkafka that asks the logs.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias

from kohort.admin import lag
from kohort.admin.caller import PASSING
from kohort.admin.cluster import Cluster
from kohort.admin.errors import AdminError, NoLeader, NoSuchGroup, NoSuchTopic, refusal
from kohort.client.topic_partition import TopicPartition
from kohort.types import ErrorCode, GroupId, MemberId, Millis, Offset, Partition, Topic, value
from kohort.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kohort.wire.api.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
)
from kohort.wire.api.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)

Which: TypeAlias = Literal["earliest", "latest"] | Millis
"""Of a log: its beginning, its end, or its first record since a moment."""


_NO_METADATA: Final[Mapping[TopicPartition, str]] = {}


@value
class Committed:
    offset: Offset
    """The next record to be read."""
    leader_epoch: int | None
    metadata: str


def committed(
    cluster: Cluster, group_ids: Iterable[GroupId]
) -> dict[GroupId, dict[TopicPartition, Committed]]:
    """What each group has committed; nothing for one that has not, or is not there."""
    asked = sorted(set(group_ids))
    answers = cluster.caller.ask_coordinators(
        asked,
        _fetch_all,
        lambda told: ((each.group_id, each.error_code, each) for each in told.groups),
    )
    found: dict[GroupId, dict[TopicPartition, Committed]] = {}
    for group_id in asked:
        answer = answers[group_id]
        if answer.code == ErrorCode.GROUP_ID_NOT_FOUND:
            found[group_id] = {}
        elif answer.code != ErrorCode.NONE or answer.told is None:
            what = f"what group {group_id!r} has committed cannot be read"
            raise refusal(answer.code, what, answer.detail)
        else:
            found[group_id] = _read_group(answer.told)
    return found


def ends(
    cluster: Cluster, partitions: Iterable[TopicPartition], which: Which
) -> dict[TopicPartition, Offset]:
    """Where these logs begin or end, or what came first since a moment.

    A partition is left out that does not exist, or that nobody leads now, or that has no record
    since then.
    """
    # Here and not above: many questions need nothing of librdkafka.
    from confluent_kafka import TopicPartition as TheirPartition  # noqa: PLC0415

    wanted = sorted({*partitions})
    if not wanted:
        return {}
    futures = cluster.begin(
        "logs cannot be asked",
        lambda: cluster.client.list_offsets(
            {TheirPartition(topic, number): _spec(which) for topic, number in wanted},
            request_timeout=cluster.timeout_s,
        ),
        *(topic for topic, _ in wanted),
    )
    found: dict[TopicPartition, Offset] = {}
    for each, future in futures.items():
        what = f"the log of {each.topic}:{each.partition} cannot be asked"
        try:
            told = cluster.wait(future, what)
        except (NoSuchTopic, NoLeader):
            continue
        if told.offset >= 0:
            place = TopicPartition(Topic(each.topic), Partition(each.partition))
            found[place] = Offset(told.offset)
    return found


def lags(cluster: Cluster, group_ids: Iterable[GroupId]) -> dict[GroupId, lag.GroupLag]:
    """How far each group is behind, by as few questions as there are brokers."""
    per_group = committed(cluster, group_ids)
    latest = ends(cluster, {each for found in per_group.values() for each in found}, "latest")
    return {
        group_id: lag.group_lag(
            group_id, {each: told.offset for each, told in found.items()}, latest
        )
        for group_id, found in per_group.items()
    }


# Changing


def alter_offsets(
    cluster: Cluster,
    group_id: GroupId,
    offsets: Mapping[TopicPartition, Offset],
    *,
    metadata: Mapping[TopicPartition, str] = _NO_METADATA,
) -> None:
    """Commit in the group's name; it must have no members. An error names what was not kept.

    `metadata` is what the group notes beside an offset.
    """
    if not offsets:
        return
    request = _commit(group_id, offsets, metadata)
    answers = cluster.caller.ask_coordinators(
        [group_id], lambda _: request, lambda told: [(group_id, _passing_code(told), told)]
    )
    answer = answers[group_id]
    if answer.code != ErrorCode.NONE or answer.told is None:
        what = f"offsets of group {group_id!r} cannot be changed"
        raise refusal(answer.code, what, answer.detail)
    for topic in answer.told.topics:
        for each in topic.partitions:
            if each.error_code != ErrorCode.NONE:
                place = f"offset of {topic.name}:{each.partition_index}"
                what = f"{place} cannot be changed for group {group_id!r}"
                raise refusal(_commit_code(each.error_code), what)


def delete_offsets(
    cluster: Cluster, group_id: GroupId, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, AdminError | None]:
    """What became of each partition: None where the group has forgotten it."""
    by_topic: defaultdict[Topic, list[OffsetDeleteRequestPartition]] = defaultdict(list)
    for topic, number in sorted(set(partitions)):
        by_topic[topic].append(OffsetDeleteRequestPartition(partition_index=number))
    topics = tuple(
        OffsetDeleteRequestTopic(name=topic, partitions=tuple(numbers))
        for topic, numbers in by_topic.items()
    )
    answers = cluster.caller.ask_coordinators(
        [group_id],
        lambda _: OffsetDeleteRequest(group_id=group_id, topics=topics),
        lambda told: [(group_id, told.error_code, told)],
    )
    answer = answers[group_id]
    what = f"offsets of group {group_id!r} cannot be deleted"
    if answer.code == ErrorCode.GROUP_ID_NOT_FOUND:
        raise NoSuchGroup(f"there is no group {group_id!r}")
    if answer.code != ErrorCode.NONE or answer.told is None:
        raise refusal(answer.code, what, answer.detail)
    return {
        TopicPartition(topic.name, each.partition_index): _delete_error(topic.name, each)
        for topic in answer.told.topics
        for each in topic.partitions
    }


def _delete_error(topic: Topic, told: Any) -> AdminError | None:
    if told.error_code == ErrorCode.NONE:
        return None
    what = f"offset of {topic}:{told.partition_index} cannot be deleted"
    return refusal(told.error_code, what)


# The messages


def _commit(
    group_id: GroupId,
    offsets: Mapping[TopicPartition, Offset],
    metadata: Mapping[TopicPartition, str],
) -> OffsetCommitRequest:
    by_topic: defaultdict[Topic, list[OffsetCommitRequestPartition]] = defaultdict(list)
    for each, offset in sorted(offsets.items()):
        by_topic[each.topic].append(
            OffsetCommitRequestPartition(
                partition_index=each.partition,
                committed_offset=offset,
                committed_metadata=metadata.get(each, ""),
            )
        )
    topics = tuple(
        OffsetCommitRequestTopic(name=topic, partitions=tuple(partitions))
        for topic, partitions in by_topic.items()
    )
    return OffsetCommitRequest(group_id=group_id, member_id=MemberId(""), topics=topics)


def _passing_code(told: OffsetCommitResponse) -> int:
    """It has errors only for partitions; those about the coordinator are about all of them."""
    codes = {each.error_code for topic in told.topics for each in topic.partitions}
    return min(codes & PASSING, default=ErrorCode.NONE)


def _commit_code(code: int) -> int:
    """A group with members knows nobody without a name, and says so in its words for members."""
    return ErrorCode.NON_EMPTY_GROUP if code == ErrorCode.UNKNOWN_MEMBER_ID else code


def _fetch_all(ids: tuple[GroupId, ...]) -> OffsetFetchRequest:
    groups = tuple(OffsetFetchRequestGroup(group_id=each, topics=None) for each in ids)
    return OffsetFetchRequest(groups=groups, require_stable=False)


def _read_group(told: OffsetFetchResponseGroup) -> dict[TopicPartition, Committed]:
    return {
        TopicPartition(topic.name, each.partition_index): Committed(
            offset=each.committed_offset,
            leader_epoch=None if each.committed_leader_epoch < 0 else each.committed_leader_epoch,
            metadata=each.metadata or "",
        )
        for topic in told.topics
        for each in topic.partitions
        if each.committed_offset >= 0
    }


def _spec(which: Which) -> Any:
    """As librdkafka's binding has it, which says nothing of types."""
    from confluent_kafka.admin import OffsetSpec  # noqa: PLC0415  # as above

    specs: Any = OffsetSpec
    if which == "earliest":
        return specs.earliest()
    return specs.latest() if which == "latest" else specs.for_timestamp(which)
