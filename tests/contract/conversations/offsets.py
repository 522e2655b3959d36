"""OffsetFetch requests for every version."""

from kohort.types import ErrorCode, GroupId, Partition, Topic, Uuid
from kohort.wire.api.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kohort.wire.api.k42_delete_groups import DeleteGroupsRequest
from tests.contract.conversations.session import Session


def offset_fetch_request(
    session: Session, group: GroupId, topic: Topic, topic_id: Uuid, *partitions: int
) -> OffsetFetchRequest:
    """Committed offsets of partitions of a topic."""
    indexes = tuple(Partition(partition) for partition in partitions)
    if session.version_of(OffsetFetchRequest) < 8:
        named = OffsetFetchRequestTopic(name=topic, partition_indexes=indexes)
        return OffsetFetchRequest(group_id=group, topics=(named,))
    known = OffsetFetchRequestTopics(name=topic, topic_id=topic_id, partition_indexes=indexes)
    asked = OffsetFetchRequestGroup(group_id=group, topics=(known,))
    return OffsetFetchRequest(groups=(asked,))


def offset_fetch_all_request(session: Session, group: GroupId) -> OffsetFetchRequest:
    """All committed offsets of a group."""
    if session.version_of(OffsetFetchRequest) < 8:
        return OffsetFetchRequest(group_id=group, topics=None)
    return OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group, topics=None),))


def offset_fetch_none_request(session: Session, group: GroupId) -> OffsetFetchRequest:
    """An empty list of topics."""
    if session.version_of(OffsetFetchRequest) < 8:
        return OffsetFetchRequest(group_id=group)
    return OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group),))


def delete_unnamed_group(session: Session) -> None:
    """Conversations share the unnamed group, so it must be empty at the end."""
    (result,) = session.query(DeleteGroupsRequest(groups_names=(GroupId(""),))).results
    assert result.error_code == ErrorCode.NONE, ErrorCode(result.error_code).name
