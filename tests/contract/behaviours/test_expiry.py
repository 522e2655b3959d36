"""How long offsets and groups are kept.

The shortest retention that a broker can be set to is a minute, but an old request may give an
offset a lifetime of its own, which brokers still heed.
"""

from tests.contract.clients.library import Library, Place, Standing
from tests.contract.cluster import Cluster
from tests.contract.crowd import crowd_of
from tests.waiting import wait_until

DEADLINE_S = 30


def test_an_offset_goes_when_its_lifetime_is_over(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(2), cluster.name_group()
    short, long = Place(topic, 0), Place(topic, 1)
    cluster.commit(group, {long: Standing(offset=2)})

    cluster.commit(group, {short: Standing(offset=1)}, lifetime_ms=1)

    wait_until(lambda: short not in cluster.committed(group), DEADLINE_S, "the offset to go")
    assert cluster.committed(group) == {long: Standing(offset=2)}


def test_a_group_goes_with_its_last_offset(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(), cluster.name_group()

    cluster.commit(group, {Place(topic, 0): Standing(offset=1)}, lifetime_ms=1)

    wait_until(lambda: group not in cluster.groups(), DEADLINE_S, "the group to go")
    assert cluster.describe(group).group_state == "Dead"


def test_a_group_that_has_members_stays_without_offsets(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        gone = cluster.name_group()
        crowd.join()
        crowd.settle()

        # One that came after it has gone, so there was time to look at both.
        cluster.commit(gone, {Place(crowd.topic, 0): Standing(offset=1)}, lifetime_ms=1)
        crowd.wait(lambda: gone not in cluster.groups(), "the other group to go")

        assert crowd.group in cluster.groups()


def test_offsets_go_with_their_topic(cluster: Cluster) -> None:
    topic, other, group = cluster.create_topic(), cluster.create_topic(), cluster.name_group()
    cluster.commit(
        group, {Place(topic, 0): Standing(offset=1), Place(other, 0): Standing(offset=2)}
    )

    cluster.delete_topic(topic)

    wait_until(
        lambda: cluster.committed(group) == {Place(other, 0): Standing(offset=2)},
        DEADLINE_S,
        "the offset to go",
    )
