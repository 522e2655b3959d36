"""Static members, who keep their place under an instance id."""

from tests.contract.behaviours.test_membership import doomed_member
from tests.contract.claims import needs
from tests.contract.clients.library import SHORT_SESSION_MS, Library, Member, Place, Refused
from tests.contract.cluster import Cluster
from tests.contract.crowd import PATIENCE_S, crowd_of
from tests.waiting import wait_until


def test_a_static_member_comes_back_without_a_rebalance(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 2) as crowd:
        one = crowd.join(instance="one")
        other = crowd.join(instance="other")
        crowd.settle_evenly()
        share, told = one.assignment(), list(other.told)
        crowd.leave(one)

        again = crowd.join(instance="one")

        crowd.settle()
        assert again.assignment() == share
        assert list(other.told) == told


def test_a_static_member_stays_a_member_while_it_is_away(
    cluster: Cluster, library: Library
) -> None:
    with crowd_of(cluster, library, 2) as crowd:
        one = crowd.join(instance="one")
        crowd.join(instance="other")
        crowd.settle_evenly()

        crowd.leave(one)

        found = cluster.describe(crowd.group)
        assert found.group_state == "Stable"
        assert {member.group_instance_id for member in found.members} == {"one", "other"}


def test_a_static_member_that_stays_away_loses_its_share(
    cluster: Cluster, library: Library
) -> None:
    with crowd_of(cluster, library, 2) as crowd:
        survivor = crowd.join(instance="survivor")
        crowd.settle()
        with doomed_member(crowd, instance="doomed"):
            crowd.wait(lambda: len(survivor.assignment()) == 1, "the other one to join")

        crowd.settle()

        assert survivor.assignment() == crowd.places


@needs("fencing")
def test_a_static_member_is_fenced_by_its_twin(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        first = crowd.join(instance="only")
        crowd.settle()
        crowd.fill(1)
        crowd.read(1)
        crowd.set_apart(first)

        twin = crowd.join(instance="only")
        crowd.wait(twin.assignment, "the twin to take over")

        wait_until(lambda: is_told_that_it_is_fenced(first), PATIENCE_S, "the first one fenced")
        assert twin.assignment() == {Place(crowd.topic, 0)}


def is_told_that_it_is_fenced(member: Member) -> bool:
    """A commit that has just lost its member may be refused as such, before the cause is told."""
    try:
        member.poll()
        member.commit()
    except Refused as refused:
        if refused.name == "FENCED_INSTANCE_ID":
            return True
        assert refused.name == "UNKNOWN_MEMBER_ID", refused
    return False


def test_a_short_absence_is_no_longer_than_the_session(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 2) as crowd:
        one = crowd.join(instance="one", session_ms=SHORT_SESSION_MS)
        other = crowd.join(instance="other")
        crowd.settle_evenly()

        crowd.leave(one)

        crowd.wait(lambda: other.assignment() == crowd.places, "its share taken over")
        (left,) = cluster.describe(crowd.group).members
        assert left.group_instance_id == "other"
