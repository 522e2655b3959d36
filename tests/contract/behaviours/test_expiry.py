"""Retention of offsets and groups.

The shortest retention of a broker is one minute, but version 2 of OffsetCommit has a retention time
per request, which brokers still support.
"""

from tests.contract.clients.client_library import ClientLibrary, CommittedOffset, TopicAndPartition
from tests.contract.cluster import Cluster
from tests.contract.member_crowd import crowd_of
from tests.wait import wait_until

DEADLINE_S = 30


def test_an_offset_expires_after_its_retention_time(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(2), cluster.name_group()
    short, long = TopicAndPartition(topic, 0), TopicAndPartition(topic, 1)
    cluster.commit(group, {long: CommittedOffset(offset=2)})

    cluster.commit(group, {short: CommittedOffset(offset=1)}, retention_ms=1)

    wait_until(lambda: short not in cluster.committed(group), DEADLINE_S, "the offset to expire")
    assert cluster.committed(group) == {long: CommittedOffset(offset=2)}


def test_a_group_is_deleted_when_its_last_offset_expires(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(), cluster.name_group()

    cluster.commit(group, {TopicAndPartition(topic, 0): CommittedOffset(offset=1)}, retention_ms=1)

    wait_until(lambda: group not in cluster.groups(), DEADLINE_S, "the group to be deleted")
    assert cluster.describe(group).group_state == "Dead"


def test_a_group_with_members_is_kept_without_offsets(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        expired = cluster.name_group()
        crowd.join()
        crowd.settle()

        # A group that was created later is deleted first, so the check has seen both.
        cluster.commit(
            expired, {TopicAndPartition(crowd.topic, 0): CommittedOffset(offset=1)}, retention_ms=1
        )
        crowd.wait(lambda: expired not in cluster.groups(), "the other group to be deleted")

        assert crowd.group in cluster.groups()


def test_offsets_are_deleted_with_their_topic(cluster: Cluster) -> None:
    topic, other, group = cluster.create_topic(), cluster.create_topic(), cluster.name_group()
    cluster.commit(
        group,
        {
            TopicAndPartition(topic, 0): CommittedOffset(offset=1),
            TopicAndPartition(other, 0): CommittedOffset(offset=2),
        },
    )

    cluster.delete_topic(topic)

    wait_until(
        lambda: (
            cluster.committed(group) == {TopicAndPartition(other, 0): CommittedOffset(offset=2)}
        ),
        DEADLINE_S,
        "the offset to expire",
    )
