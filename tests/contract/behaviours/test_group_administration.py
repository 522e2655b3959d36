"""Group administration: describe, list, delete, and set offsets."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.contract.clients.client_library import (
    Admin,
    ClientLibrary,
    CommittedOffset,
    RequestRejected,
    TopicAndPartition,
)
from tests.contract.cluster import Cluster
from tests.contract.expected_results import needs
from tests.contract.member_crowd import crowd_of


@contextmanager
def administering(cluster: Cluster, library: ClientLibrary) -> Iterator[Admin]:
    admin = library.administer(cluster.bootstrap_servers)
    try:
        yield admin
    finally:
        admin.close()


@needs("administration")
def test_a_group_is_described(cluster: Cluster, library: ClientLibrary) -> None:
    with crowd_of(cluster, library, 3) as crowd, administering(cluster, library) as admin:
        crowd.join()
        crowd.join()
        crowd.settle_evenly()
        crowd.wait(lambda: admin.describe_group(crowd.group).state == "Stable", "stability")

        found = admin.describe_group(crowd.group)

        assert found.assignor == "range"
        described = sorted(sorted(member.tps) for member in found.members)
        assert described == sorted(sorted(member.assignment()) for member in crowd.members)


@needs("administration")
def test_a_group_without_members_is_described(cluster: Cluster, library: ClientLibrary) -> None:
    topic, group = cluster.create_topic(), cluster.name_group()
    cluster.commit(group, {TopicAndPartition(topic, 0): CommittedOffset(offset=1)})

    with administering(cluster, library) as admin:
        found = admin.describe_group(group)

    assert (found.state, found.members) == ("Empty", ())


@needs("administration")
def test_groups_are_listed(cluster: Cluster, library: ClientLibrary) -> None:
    with crowd_of(cluster, library, 1) as crowd, administering(cluster, library) as admin:
        assert crowd.group not in admin.groups()

        crowd.join()
        crowd.settle()

        assert crowd.group in admin.groups()


@needs("administration")
def test_a_group_s_offsets_are_listed(cluster: Cluster, library: ClientLibrary) -> None:
    topic, group = cluster.create_topic(2), cluster.name_group()
    to_commit = {
        TopicAndPartition(topic, 0): CommittedOffset(offset=4),
        TopicAndPartition(topic, 1): CommittedOffset(offset=0),
    }
    cluster.commit(group, to_commit)

    with administering(cluster, library) as admin:
        assert admin.offsets(group) == to_commit


@needs("administration", "delete-groups")
def test_a_group_without_members_is_deleted(cluster: Cluster, library: ClientLibrary) -> None:
    topic, group = cluster.create_topic(), cluster.name_group()
    cluster.commit(group, {TopicAndPartition(topic, 0): CommittedOffset(offset=1)})

    with administering(cluster, library) as admin:
        admin.delete_group(group)

    assert group not in cluster.groups()
    assert cluster.committed(group) == {}


@needs("administration", "delete-groups")
def test_a_group_with_members_cannot_be_deleted(cluster: Cluster, library: ClientLibrary) -> None:
    with crowd_of(cluster, library, 1) as crowd, administering(cluster, library) as admin:
        crowd.join()
        crowd.settle()

        with pytest.raises(RequestRejected) as refused:
            admin.delete_group(crowd.group)

        assert refused.value.name == "NON_EMPTY_GROUP"


@needs("administration", "delete-groups")
def test_an_unknown_group_cannot_be_deleted(cluster: Cluster, library: ClientLibrary) -> None:
    with administering(cluster, library) as admin, pytest.raises(RequestRejected) as refused:
        admin.delete_group(cluster.name_group())

    assert refused.value.name == "GROUP_ID_NOT_FOUND"


@needs("administration", "alter-offsets")
def test_a_group_s_offsets_are_altered(cluster: Cluster, library: ClientLibrary) -> None:
    topic, group = cluster.create_topic(), cluster.name_group()
    committed = CommittedOffset(offset=7, metadata="from outside")

    with administering(cluster, library) as admin:
        admin.alter_offsets(group, {TopicAndPartition(topic, 0): committed})

    assert cluster.committed(group)[TopicAndPartition(topic, 0)].offset == 7


@needs("administration", "alter-offsets")
def test_the_offsets_of_a_group_with_members_cannot_be_altered(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 1) as crowd, administering(cluster, library) as admin:
        crowd.join()
        crowd.settle()

        with pytest.raises(RequestRejected) as refused:
            admin.alter_offsets(
                crowd.group, {TopicAndPartition(crowd.topic, 0): CommittedOffset(offset=7)}
            )

        assert refused.value.name == "UNKNOWN_MEMBER_ID"


@needs("administration", "delete-offsets")
def test_offsets_are_deleted(cluster: Cluster, library: ClientLibrary) -> None:
    topic, group = cluster.create_topic(2), cluster.name_group()
    first, second = TopicAndPartition(topic, 0), TopicAndPartition(topic, 1)
    cluster.commit(group, {first: CommittedOffset(offset=1), second: CommittedOffset(offset=2)})

    with administering(cluster, library) as admin:
        admin.delete_offsets(group, first)

    assert cluster.committed(group) == {second: CommittedOffset(offset=2)}


@needs("administration", "delete-offsets")
def test_offsets_of_a_subscribed_topic_cannot_be_deleted(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 1) as crowd, administering(cluster, library) as admin:
        member = crowd.join()
        crowd.settle()
        member.commit({TopicAndPartition(crowd.topic, 0): CommittedOffset(offset=3)})

        with pytest.raises(RequestRejected) as refused:
            admin.delete_offsets(crowd.group, TopicAndPartition(crowd.topic, 0))

        assert refused.value.name == "GROUP_SUBSCRIBED_TO_TOPIC"
        assert cluster.committed(crowd.group)[TopicAndPartition(crowd.topic, 0)].offset == 3


@needs("administration", "remove-members")
def test_a_static_member_is_removed_by_an_administrator(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 2) as crowd, administering(cluster, library) as admin:
        gone = crowd.join(instance="gone")
        here = crowd.join(instance="here")
        crowd.settle_evenly()
        crowd.leave(gone)

        admin.remove_instance(crowd.group, "gone")

        crowd.settle()
        assert here.assignment() == crowd.tps


@needs("administration", "remove-members")
def test_members_removed_by_an_administrator_rejoin(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 2) as crowd, administering(cluster, library) as admin:
        crowd.join()
        crowd.join()
        crowd.settle_evenly()
        before = {member.member_id for member in cluster.describe(crowd.group).members}

        admin.remove_all(crowd.group)

        crowd.wait(
            lambda: (
                before.isdisjoint(
                    member.member_id for member in cluster.describe(crowd.group).members
                )
                and crowd.is_settled()
                and all(member.assignment() for member in crowd.members)
            ),
            "new members",
        )
