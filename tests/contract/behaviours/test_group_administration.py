"""Groups from outside: described, listed, deleted, and told where to stand."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.contract.claims import needs
from tests.contract.clients.library import Admin, Library, Place, Refused, Standing
from tests.contract.cluster import Cluster
from tests.contract.crowd import crowd_of


@contextmanager
def administering(cluster: Cluster, library: Library) -> Iterator[Admin]:
    admin = library.administer(cluster.bootstrap_servers)
    try:
        yield admin
    finally:
        admin.close()


@needs("administration")
def test_a_group_is_described(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 3) as crowd, administering(cluster, library) as admin:
        crowd.join()
        crowd.join()
        crowd.settle_evenly()
        crowd.wait(lambda: admin.describe_group(crowd.group).state == "Stable", "stability")

        found = admin.describe_group(crowd.group)

        assert found.assignor == "range"
        described = sorted(sorted(member.places) for member in found.members)
        assert described == sorted(sorted(member.assignment()) for member in crowd.members)


@needs("administration")
def test_a_group_without_members_is_described(cluster: Cluster, library: Library) -> None:
    topic, group = cluster.create_topic(), cluster.name_group()
    cluster.commit(group, {Place(topic, 0): Standing(offset=1)})

    with administering(cluster, library) as admin:
        found = admin.describe_group(group)

    assert (found.state, found.members) == ("Empty", ())


@needs("administration")
def test_groups_are_listed(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 1) as crowd, administering(cluster, library) as admin:
        assert crowd.group not in admin.groups()

        crowd.join()
        crowd.settle()

        assert crowd.group in admin.groups()


@needs("administration")
def test_a_group_s_offsets_are_told(cluster: Cluster, library: Library) -> None:
    topic, group = cluster.create_topic(2), cluster.name_group()
    standings = {Place(topic, 0): Standing(offset=4), Place(topic, 1): Standing(offset=0)}
    cluster.commit(group, standings)

    with administering(cluster, library) as admin:
        assert admin.offsets(group) == standings


@needs("administration", "delete-groups")
def test_a_group_without_members_is_deleted(cluster: Cluster, library: Library) -> None:
    topic, group = cluster.create_topic(), cluster.name_group()
    cluster.commit(group, {Place(topic, 0): Standing(offset=1)})

    with administering(cluster, library) as admin:
        admin.delete_group(group)

    assert group not in cluster.groups()
    assert cluster.committed(group) == {}


@needs("administration", "delete-groups")
def test_a_group_that_has_members_is_not_deleted(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 1) as crowd, administering(cluster, library) as admin:
        crowd.join()
        crowd.settle()

        with pytest.raises(Refused) as refused:
            admin.delete_group(crowd.group)

        assert refused.value.name == "NON_EMPTY_GROUP"


@needs("administration", "delete-groups")
def test_a_group_that_is_not_there_is_not_deleted(cluster: Cluster, library: Library) -> None:
    with administering(cluster, library) as admin, pytest.raises(Refused) as refused:
        admin.delete_group(cluster.name_group())

    assert refused.value.name == "GROUP_ID_NOT_FOUND"


@needs("administration", "alter-offsets")
def test_a_group_s_offsets_are_set_from_outside(cluster: Cluster, library: Library) -> None:
    topic, group = cluster.create_topic(), cluster.name_group()
    standing = Standing(offset=7, metadata="from outside")

    with administering(cluster, library) as admin:
        admin.alter_offsets(group, {Place(topic, 0): standing})

    assert cluster.committed(group)[Place(topic, 0)].offset == 7


@needs("administration", "alter-offsets")
def test_the_offsets_of_a_group_that_has_members_are_not_set(
    cluster: Cluster, library: Library
) -> None:
    with crowd_of(cluster, library, 1) as crowd, administering(cluster, library) as admin:
        crowd.join()
        crowd.settle()

        with pytest.raises(Refused) as refused:
            admin.alter_offsets(crowd.group, {Place(crowd.topic, 0): Standing(offset=7)})

        assert refused.value.name == "UNKNOWN_MEMBER_ID"


@needs("administration", "delete-offsets")
def test_offsets_are_deleted(cluster: Cluster, library: Library) -> None:
    topic, group = cluster.create_topic(2), cluster.name_group()
    first, second = Place(topic, 0), Place(topic, 1)
    cluster.commit(group, {first: Standing(offset=1), second: Standing(offset=2)})

    with administering(cluster, library) as admin:
        admin.delete_offsets(group, first)

    assert cluster.committed(group) == {second: Standing(offset=2)}


@needs("administration", "delete-offsets")
def test_offsets_of_a_topic_that_is_read_are_not_deleted(
    cluster: Cluster, library: Library
) -> None:
    with crowd_of(cluster, library, 1) as crowd, administering(cluster, library) as admin:
        member = crowd.join()
        crowd.settle()
        member.commit({Place(crowd.topic, 0): Standing(offset=3)})

        with pytest.raises(Refused) as refused:
            admin.delete_offsets(crowd.group, Place(crowd.topic, 0))

        assert refused.value.name == "GROUP_SUBSCRIBED_TO_TOPIC"
        assert cluster.committed(crowd.group)[Place(crowd.topic, 0)].offset == 3


@needs("administration", "remove-members")
def test_a_static_member_is_removed_from_outside(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 2) as crowd, administering(cluster, library) as admin:
        gone = crowd.join(instance="gone")
        here = crowd.join(instance="here")
        crowd.settle_evenly()
        crowd.leave(gone)

        admin.remove_instance(crowd.group, "gone")

        crowd.settle()
        assert here.assignment() == crowd.places


@needs("administration", "remove-members")
def test_members_that_are_removed_from_outside_come_back(
    cluster: Cluster, library: Library
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
