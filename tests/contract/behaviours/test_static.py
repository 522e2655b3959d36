"""Static membership (KIP-345)."""

from tests.contract.behaviours.test_membership import killed_member
from tests.contract.clients.client_library import (
    SHORT_SESSION_MS,
    ClientLibrary,
    Member,
    RequestRejected,
    TopicAndPartition,
)
from tests.contract.cluster import Cluster
from tests.contract.expected_results import needs
from tests.contract.member_crowd import DEADLINE_S, crowd_of
from tests.wait import wait_until


def test_a_static_member_restarts_without_a_rebalance(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 2) as crowd:
        one = crowd.join(instance="one")
        other = crowd.join(instance="other")
        crowd.settle_evenly()
        share, calls = one.assignment(), list(other.listener_calls)
        crowd.leave(one)

        again = crowd.join(instance="one")

        crowd.settle()
        assert again.assignment() == share
        assert list(other.listener_calls) == calls


def test_a_static_member_remains_a_member_after_it_closes(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 2) as crowd:
        one = crowd.join(instance="one")
        crowd.join(instance="other")
        crowd.settle_evenly()

        crowd.leave(one)

        found = cluster.describe(crowd.group)
        assert found.group_state == "Stable"
        assert {member.group_instance_id for member in found.members} == {"one", "other"}


def test_a_static_member_is_removed_after_its_session_timeout(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 2) as crowd:
        survivor = crowd.join(instance="survivor")
        crowd.settle()
        with killed_member(crowd, instance="killed"):
            crowd.wait(lambda: len(survivor.assignment()) == 1, "the other one to join")

        crowd.settle()

        assert survivor.assignment() == crowd.tps


@needs("fencing")
def test_a_second_member_with_the_same_instance_id_fences_the_first(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        first = crowd.join(instance="only")
        crowd.settle()
        crowd.fill(1)
        crowd.read(1)
        crowd.set_apart(first)

        twin = crowd.join(instance="only")
        crowd.wait(twin.assignment, "the twin to take over")

        wait_until(lambda: is_fenced(first), DEADLINE_S, "the first one fenced")
        assert twin.assignment() == {TopicAndPartition(crowd.topic, 0)}


def is_fenced(member: Member) -> bool:
    """A commit of a removed member may fail before the member learns that it is fenced."""
    try:
        member.poll()
        member.commit()
    except RequestRejected as refused:
        if refused.name == "FENCED_INSTANCE_ID":
            return True
        assert refused.name == "UNKNOWN_MEMBER_ID", refused
    return False


def test_a_restart_within_the_session_timeout_causes_no_rebalance(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 2) as crowd:
        one = crowd.join(instance="one", session_ms=SHORT_SESSION_MS)
        other = crowd.join(instance="other")
        crowd.settle_evenly()

        crowd.leave(one)

        crowd.wait(lambda: other.assignment() == crowd.tps, "its share taken over")
        (left,) = cluster.describe(crowd.group).members
        assert left.group_instance_id == "other"
