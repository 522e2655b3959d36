"""Subscriptions, and discovery of new topics and partitions."""

from tests.contract.clients.client_library import ClientLibrary, TopicAndPartition
from tests.contract.cluster import Cluster
from tests.contract.member_crowd import crowd_of


def test_a_member_subscribes_to_several_topics(cluster: Cluster, library: ClientLibrary) -> None:
    with crowd_of(cluster, library, 2) as crowd:
        other = cluster.create_topic(2)
        crowd.tps |= {TopicAndPartition(other, 0), TopicAndPartition(other, 1)}

        crowd.join(topics=(crowd.topic, other))
        crowd.join(topics=(crowd.topic, other))

        crowd.settle_evenly()


def test_members_are_assigned_only_topics_they_subscribe_to(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 2) as crowd:
        other = cluster.create_topic(1)
        crowd.tps |= {TopicAndPartition(other, 0)}

        of_one = crowd.join()
        of_both = crowd.join(topics=(crowd.topic, other))
        crowd.settle_evenly()

        assert {tp.topic for tp in of_one.assignment()} == {crowd.topic}
        assert TopicAndPartition(other, 0) in of_both.assignment()


def test_a_member_changes_its_subscription(cluster: Cluster, library: ClientLibrary) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        other = cluster.create_topic(2)
        member = crowd.join()
        crowd.settle()

        member.subscribe(other)

        crowd.tps = {TopicAndPartition(other, 0), TopicAndPartition(other, 1)}
        crowd.settle()


def test_new_partitions_are_assigned(cluster: Cluster, library: ClientLibrary) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        crowd.join()
        crowd.join()
        crowd.settle()

        cluster.grow_topic(crowd.topic, 4)

        crowd.tps = {TopicAndPartition(crowd.topic, partition) for partition in range(4)}
        crowd.settle_evenly()
        crowd.fill(1)
        crowd.read(4)


def test_a_pattern_matches_existing_topics(cluster: Cluster, library: ClientLibrary) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        stem = cluster.name_topic("pattern")
        names = [cluster.create_topic(1, name=f"{stem}-{word}") for word in ("a", "b")]
        crowd.tps = {TopicAndPartition(name, 0) for name in names}

        crowd.join(topics=(), pattern=f"^{stem}-.*")

        crowd.settle()


def test_a_pattern_matches_topics_created_later(cluster: Cluster, library: ClientLibrary) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        stem = cluster.name_topic("pattern")
        first = cluster.create_topic(1, name=f"{stem}-first")
        crowd.tps = {TopicAndPartition(first, 0)}
        crowd.join(topics=(), pattern=f"^{stem}-.*")
        crowd.settle()

        later = cluster.create_topic(1, name=f"{stem}-later")

        crowd.tps |= {TopicAndPartition(later, 0)}
        crowd.settle()


def test_a_topic_created_after_the_subscription_is_found(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        later = cluster.name_topic("later")
        member = crowd.join(topics=(crowd.topic, later))
        crowd.wait(member.assignment, "the topic that there is")

        # A library whose metadata requests create topics has created it by now.
        cluster.create_topic(1, name=later, exists_ok=True)

        crowd.tps |= {TopicAndPartition(later, 0)}
        crowd.settle()
