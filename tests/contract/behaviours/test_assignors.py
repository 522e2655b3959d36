"""How partitions are shared out: eagerly or step by step, by an assignor that all members know."""

import pytest

from tests.contract.claims import needs
from tests.contract.clients.library import Library, Refused
from tests.contract.cluster import Cluster
from tests.contract.crowd import Crowd, crowd_of


def come_and_go(cluster: Cluster, library: Library, assignor: str) -> None:
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


def test_partitions_are_shared_by_range(cluster: Cluster, library: Library) -> None:
    come_and_go(cluster, library, "range")


def test_partitions_are_shared_by_roundrobin(cluster: Cluster, library: Library) -> None:
    come_and_go(cluster, library, "roundrobin")


@needs("sticky")
def test_partitions_are_shared_by_sticky(cluster: Cluster, library: Library) -> None:
    come_and_go(cluster, library, "sticky")


@needs("cooperative-sticky")
def test_partitions_are_shared_by_cooperative_sticky(cluster: Cluster, library: Library) -> None:
    come_and_go(cluster, library, "cooperative-sticky")


def test_an_eager_member_gives_up_everything_before_it_rejoins(
    cluster: Cluster, library: Library
) -> None:
    with crowd_of(cluster, library, 4) as crowd:
        first = crowd.join(assignors=("range",))
        crowd.settle()

        crowd.join(assignors=("range",))
        crowd.settle_evenly()

        revoked = [told.places for told in first.told if told.what == "revoked"]
        assert revoked[0] == crowd.places


@needs("cooperative-sticky")
def test_a_cooperative_member_gives_up_only_what_goes_to_another(
    cluster: Cluster, library: Library
) -> None:
    with crowd_of(cluster, library, 4) as crowd:
        first = crowd.join(assignors=("cooperative-sticky",))
        crowd.settle()

        second = crowd.join(assignors=("cooperative-sticky",))
        crowd.settle_evenly()

        revoked = [told.places for told in first.told if told.what == "revoked"]
        assert frozenset().union(*revoked) == crowd.places - first.assignment()
        assert second.assignment() == crowd.places - first.assignment()
        assert len(first.assignment()) == 2


def test_members_agree_on_an_assignor_that_all_of_them_know(
    cluster: Cluster, library: Library
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
        assert first.assignment() == crowd.places


def test_a_member_that_knows_no_common_assignor_is_refused(
    cluster: Cluster, library: Library
) -> None:
    with crowd_of(cluster, library, 2) as crowd:
        first = crowd.join(assignors=("range",))
        crowd.settle()

        stranger = crowd.join(assignors=("roundrobin",))
        with pytest.raises(Refused) as refused:
            crowd.wait(lambda: False, "a refusal")

        assert refused.value.name == "INCONSISTENT_GROUP_PROTOCOL"
        crowd.set_apart(stranger)
        crowd.settle()
        assert first.assignment() == crowd.places


@needs("cooperative-sticky", "both-protocols")
def test_a_group_moves_from_eager_to_cooperative_one_member_at_a_time(
    cluster: Cluster, library: Library
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
