"""Assignment of partitions: eager or cooperative, by an assignor that all members support."""

import pytest

from tests.contract.clients.client_library import ClientLibrary, RequestRejected
from tests.contract.cluster import Cluster
from tests.contract.expected_results import needs
from tests.contract.member_crowd import Crowd, crowd_of


def come_and_go(cluster: Cluster, library: ClientLibrary, assignor: str) -> None:
    with crowd_of(cluster, library, 4) as crowd:
        first = crowd.join(assignors=(assignor,))
        crowd.settle()
        crowd.join(assignors=(assignor,))
        crowd.settle_evenly()
        assert assignor_of(crowd) == assignor

        crowd.leave(first)

        crowd.settle()


def assignor_of(crowd: Crowd) -> str:
    crowd.wait(lambda: crowd.cluster.describe(crowd.group).group_state == "Stable", "stability")
    return crowd.cluster.describe(crowd.group).protocol_data


def test_partitions_are_assigned_by_range(cluster: Cluster, library: ClientLibrary) -> None:
    come_and_go(cluster, library, "range")


def test_partitions_are_assigned_by_roundrobin(cluster: Cluster, library: ClientLibrary) -> None:
    come_and_go(cluster, library, "roundrobin")


@needs("sticky")
def test_partitions_are_assigned_by_sticky(cluster: Cluster, library: ClientLibrary) -> None:
    come_and_go(cluster, library, "sticky")


@needs("cooperative-sticky")
def test_partitions_are_assigned_by_cooperative_sticky(
    cluster: Cluster, library: ClientLibrary
) -> None:
    come_and_go(cluster, library, "cooperative-sticky")


def test_an_eager_member_revokes_all_partitions_before_it_rejoins(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 4) as crowd:
        first = crowd.join(assignors=("range",))
        crowd.settle()

        crowd.join(assignors=("range",))
        crowd.settle_evenly()

        revoked = [call.tps for call in first.listener_calls if call.what == "revoked"]
        assert revoked[0] == crowd.tps


@needs("cooperative-sticky")
def test_a_cooperative_member_revokes_only_partitions_that_move(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 4) as crowd:
        first = crowd.join(assignors=("cooperative-sticky",))
        crowd.settle()

        second = crowd.join(assignors=("cooperative-sticky",))
        crowd.settle_evenly()

        revoked = [call.tps for call in first.listener_calls if call.what == "revoked"]
        assert frozenset().union(*revoked) == crowd.tps - first.assignment()
        assert second.assignment() == crowd.tps - first.assignment()
        assert len(first.assignment()) == 2


def test_members_agree_on_an_assignor_that_all_of_them_support(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 2) as crowd:
        first = crowd.join(assignors=("range", "roundrobin"))
        crowd.settle()
        assert assignor_of(crowd) == "range"

        crowd.join(assignors=("roundrobin",))
        crowd.settle_evenly()

        assert assignor_of(crowd) == "roundrobin"
        crowd.leave(crowd.members[-1])
        crowd.settle()
        assert first.assignment() == crowd.tps


def test_a_member_without_a_common_assignor_is_refused(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 2) as crowd:
        first = crowd.join(assignors=("range",))
        crowd.settle()

        outsider = crowd.join(assignors=("roundrobin",))
        with pytest.raises(RequestRejected) as refused:
            crowd.wait(lambda: False, "a refusal")

        assert refused.value.name == "INCONSISTENT_GROUP_PROTOCOL"
        crowd.set_apart(outsider)
        crowd.settle()
        assert first.assignment() == crowd.tps


@needs("cooperative-sticky", "both-protocols")
def test_a_group_migrates_from_eager_to_cooperative_by_a_rolling_restart(
    cluster: Cluster, library: ClientLibrary
) -> None:
    both = ("cooperative-sticky", "range")
    with crowd_of(cluster, library, 4) as crowd:
        old = [crowd.join(assignors=("range",)) for _ in range(2)]
        crowd.settle_evenly()
        for member in old:
            crowd.leave(member)
            crowd.join(assignors=both)
            crowd.settle_evenly()
        for member in list(crowd.members):
            crowd.leave(member)
            crowd.join(assignors=("cooperative-sticky",))
            crowd.settle_evenly()

        assert assignor_of(crowd) == "cooperative-sticky"
