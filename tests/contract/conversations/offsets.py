"""Questions about committed offsets, in the way of the version they are asked in."""

from kohort.types import ErrorCode, GroupId, Partition, Topic, Uuid
from kohort.wire.api.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kohort.wire.api.k42_delete_groups import DeleteGroupsRequest
from tests.contract.conversations.talking import Talk


def fetching(
    talk: Talk, group: GroupId, topic: Topic, topic_id: Uuid, *partitions: int
) -> OffsetFetchRequest:
    """What a group has committed for partitions of a topic."""
    indexes = tuple(Partition(partition) for partition in partitions)
    if talk.version_of(OffsetFetchRequest) < 8:
        named = OffsetFetchRequestTopic(name=topic, partition_indexes=indexes)
        return OffsetFetchRequest(group_id=group, topics=(named,))
    known = OffsetFetchRequestTopics(name=topic, topic_id=topic_id, partition_indexes=indexes)
    asked = OffsetFetchRequestGroup(group_id=group, topics=(known,))
    return OffsetFetchRequest(groups=(asked,))


def fetching_all(talk: Talk, group: GroupId) -> OffsetFetchRequest:
    """All that a group has committed."""
    if talk.version_of(OffsetFetchRequest) < 8:
        return OffsetFetchRequest(group_id=group, topics=None)
    return OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group, topics=None),))


def fetching_none(talk: Talk, group: GroupId) -> OffsetFetchRequest:
    """Nothing that a group has committed."""
    if talk.version_of(OffsetFetchRequest) < 8:
        return OffsetFetchRequest(group_id=group)
    return OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group),))


def forget_the_nameless(talk: Talk) -> None:
    """The group without a name is the only one that conversations share: leave nothing in it."""
    (result,) = talk.peek(DeleteGroupsRequest(groups_names=(GroupId(""),))).results
    assert result.error_code == ErrorCode.NONE, ErrorCode(result.error_code).name
