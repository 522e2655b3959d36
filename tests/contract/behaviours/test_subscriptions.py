"""What a group is subscribed to, and how it learns that there is more of it."""

from tests.contract.clients.library import Library, Place
from tests.contract.cluster import Cluster
from tests.contract.crowd import crowd_of


def test_a_member_may_be_of_several_topics(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 2) as crowd:
        other = cluster.create_topic(2)
        crowd.places |= {Place(other, 0), Place(other, 1)}

        crowd.join(topics=(crowd.topic, other))
        crowd.join(topics=(crowd.topic, other))

        crowd.settle_evenly()


def test_members_of_different_topics_share_only_what_both_want(
    cluster: Cluster, library: Library
) -> None:
    with crowd_of(cluster, library, 2) as crowd:
        other = cluster.create_topic(1)
        crowd.places |= {Place(other, 0)}

        of_one = crowd.join()
        of_both = crowd.join(topics=(crowd.topic, other))
        crowd.settle_evenly()

        assert {place.topic for place in of_one.assignment()} == {crowd.topic}
        assert Place(other, 0) in of_both.assignment()


def test_a_member_changes_its_subscription(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        other = cluster.create_topic(2)
        member = crowd.join()
        crowd.settle()

        member.subscribe(other)

        crowd.places = {Place(other, 0), Place(other, 1)}
        crowd.settle()


def test_new_partitions_are_shared_out(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        crowd.join()
        crowd.join()
        crowd.settle()

        cluster.grow_topic(crowd.topic, 4)

        crowd.places = {Place(crowd.topic, partition) for partition in range(4)}
        crowd.settle_evenly()
        crowd.fill(1)
        crowd.read(4)


def test_a_pattern_finds_the_topics_that_there_are(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        stem = cluster.name_topic("pattern")
        names = [cluster.create_topic(1, name=f"{stem}-{word}") for word in ("a", "b")]
        crowd.places = {Place(name, 0) for name in names}

        crowd.join(topics=(), pattern=f"^{stem}-.*")

        crowd.settle()


def test_a_pattern_finds_topics_that_come_later(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        stem = cluster.name_topic("pattern")
        first = cluster.create_topic(1, name=f"{stem}-first")
        crowd.places = {Place(first, 0)}
        crowd.join(topics=(), pattern=f"^{stem}-.*")
        crowd.settle()

        later = cluster.create_topic(1, name=f"{stem}-later")

        crowd.places |= {Place(later, 0)}
        crowd.settle()


def test_a_topic_that_comes_later_is_found(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        later = cluster.name_topic("later")
        member = crowd.join(topics=(crowd.topic, later))
        crowd.wait(member.assignment, "the topic that there is")

        # A library that lets asking make a topic has made it by now.
        cluster.create_topic(1, name=later, is_welcome_twice=True)

        crowd.places |= {Place(later, 0)}
        crowd.settle()
