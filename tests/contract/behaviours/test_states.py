"""Commits in every group state, by raw requests: client libraries cannot choose the state."""

from collections.abc import Iterator
from contextlib import contextmanager

from kohort.types import ErrorCode, Generation, GroupId, MemberId, Offset, Partition, Topic
from kohort.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.api.k13_leave_group import LeaveGroupRequest, MemberIdentity
from tests.contract.cluster import Cluster
from tests.node.raw_client import Membership, RawClient, join_alone, join_first, join_request
from tests.wait import wait_until

OUTSIDER = Membership(GroupId(""), MemberId(""), Generation(-1))


@contextmanager
def member_of(cluster: Cluster, group: str) -> Iterator[tuple[RawClient, Membership]]:
    with cluster.call() as caller:
        yield caller, join_alone(caller, group)


def commit(cluster: Cluster, group: str, topic: str, by: Membership = OUTSIDER) -> str:
    """The error code of a commit by a member, or by a client outside of the group."""
    partition = OffsetCommitRequestPartition(
        partition_index=Partition(0), committed_offset=Offset(1), committed_metadata=None
    )
    asked = OffsetCommitRequest(
        group_id=GroupId(group),
        generation_id_or_member_epoch=by.generation,
        member_id=by.member_id,
        topics=(OffsetCommitRequestTopic(name=Topic(topic), partitions=(partition,)),),
    )
    with cluster.call() as caller:
        ((answer,),) = [each.partitions for each in caller.ask(asked, 8).topics]
    return ErrorCode(answer.error_code).name


def wait_for_state(cluster: Cluster, group: str, state: str) -> None:
    wait_until(lambda: cluster.describe(group).group_state == state, 20, state)


def test_a_commit_creates_the_group(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(), cluster.name_group()

    assert commit(cluster, group, topic) == "NONE"

    assert cluster.groups()[group] == "Empty"


def test_a_member_cannot_commit_for_an_unknown_group(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(), cluster.name_group()
    outsider = Membership(GroupId(group), MemberId("outsider"), Generation(3))

    assert commit(cluster, group, topic, outsider) == "ILLEGAL_GENERATION"


def test_any_client_can_commit_for_an_empty_group(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(), cluster.name_group()
    with member_of(cluster, group) as (caller, member):
        leaving = LeaveGroupRequest(
            group_id=GroupId(group), members=(MemberIdentity(member_id=member.member_id),)
        )
        assert caller.ask(leaving, 4).error_code == 0
        assert commit(cluster, group, topic) == "NONE"

        assert commit(cluster, group, topic, member) == "UNKNOWN_MEMBER_ID"


def test_only_members_can_commit_for_a_stable_group(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(), cluster.name_group()
    with member_of(cluster, group) as (_, member):
        assert cluster.describe(group).group_state == "Stable"

        assert commit(cluster, group, topic, member) == "NONE"
        assert commit(cluster, group, topic) == "UNKNOWN_MEMBER_ID"


def test_a_commit_of_another_generation_is_refused(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(), cluster.name_group()
    with member_of(cluster, group) as (_, member):
        older = Membership(member.group_id, member.member_id, Generation(member.generation - 1))
        newer = Membership(member.group_id, member.member_id, Generation(member.generation + 1))

        assert commit(cluster, group, topic, older) == "ILLEGAL_GENERATION"
        assert commit(cluster, group, topic, newer) == "ILLEGAL_GENERATION"


def test_members_can_commit_in_preparing_rebalance(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(), cluster.name_group()
    with member_of(cluster, group) as (_, member), cluster.call() as other:
        joined = other.ask(join_request(group), 9)
        other.send(join_request(group, joined.member_id), 9)
        wait_for_state(cluster, group, "PreparingRebalance")

        assert commit(cluster, group, topic, member) == "NONE"


def test_commits_are_refused_in_completing_rebalance(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(), cluster.name_group()
    with cluster.call() as caller:
        joined = join_first(caller, group)
        member = Membership(GroupId(group), joined.member_id, joined.generation_id)
        wait_for_state(cluster, group, "CompletingRebalance")

        assert commit(cluster, group, topic, member) == "REBALANCE_IN_PROGRESS"


def test_commits_for_an_unknown_topic_are_refused(cluster: Cluster) -> None:
    group = cluster.name_group()

    found = commit(cluster, group, cluster.name_topic())

    assert found == "UNKNOWN_TOPIC_OR_PARTITION"
