"""Where a group stands: committed by hand and by itself, with what is kept beside an offset."""

import pytest

from tests.contract.claims import needs
from tests.contract.clients.library import Library, Place, Refused, Standing
from tests.contract.cluster import Cluster
from tests.contract.crowd import crowd_of


def test_the_next_member_goes_on_where_the_last_one_committed(
    cluster: Cluster, library: Library
) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        place = Place(crowd.topic, 0)
        crowd.fill(5)
        first = crowd.join()
        crowd.read(5)
        assert first.committed(place) is None
        first.commit()
        found = first.committed(place)
        assert found is not None
        assert found.offset == 5
        crowd.fill(3)
        crowd.read(8)
        crowd.leave(first)
        crowd.seen.clear()

        second = crowd.join()

        assert crowd.read(3) == [(place, offset) for offset in (5, 6, 7)]
        assert second.position(place) == 8


def test_what_was_read_is_committed_by_itself_in_time(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        place = Place(crowd.topic, 0)
        crowd.fill(4)
        crowd.join(commits_by_itself=True)

        crowd.read(4)

        crowd.wait(
            lambda: cluster.committed(crowd.group).get(place, Standing(offset=0)).offset == 4,
            "a commit by itself",
        )


def test_what_was_read_is_committed_at_the_latest_when_a_member_leaves(
    cluster: Cluster, library: Library
) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        place = Place(crowd.topic, 0)
        crowd.fill(4)
        member = crowd.join(commits_by_itself=True)
        crowd.read(4)

        crowd.leave(member)

        assert cluster.committed(crowd.group)[place].offset == 4


def test_offsets_are_committed_by_hand(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 2) as crowd:
        first, second = sorted(crowd.places)
        member = crowd.join()
        crowd.settle()

        member.commit({first: Standing(offset=7)})
        member.commit({first: Standing(offset=3), second: Standing(offset=11)})

        found = cluster.committed(crowd.group)
        assert {place: standing.offset for place, standing in found.items()} == {
            first: 3,
            second: 11,
        }


@needs("metadata-written")
def test_metadata_is_kept_beside_an_offset(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        place = Place(crowd.topic, 0)
        member = crowd.join()
        crowd.settle()

        member.commit({place: Standing(offset=1, metadata="von Hand, ☃")})

        assert cluster.committed(crowd.group)[place].metadata == "von Hand, ☃"


@needs("metadata-read")
def test_metadata_is_told_to_whoever_asks_for_the_offset(
    cluster: Cluster, library: Library
) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        place = Place(crowd.topic, 0)
        cluster.commit(crowd.group, {place: Standing(offset=1, metadata="note")})

        member = crowd.join()
        crowd.settle()

        assert member.committed(place) == Standing(offset=1, metadata="note")


@needs("leader-epochs")
def test_the_leader_epoch_is_kept_beside_an_offset(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        place = Place(crowd.topic, 0)
        member = crowd.join()
        # Before it has found its place, Java's consumer may answer a later question about offsets
        # with what it was told for that place.
        crowd.fill(1)
        crowd.read(1)

        member.commit({place: Standing(offset=1, leader_epoch=0)})

        assert cluster.committed(crowd.group)[place].leader_epoch == 0
        found = member.committed(place)
        assert found is not None
        assert found.leader_epoch == 0


def test_metadata_that_is_too_long_is_refused(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        place = Place(crowd.topic, 0)
        member = crowd.join()
        crowd.settle()

        with pytest.raises(Refused) as refused:
            member.commit({place: Standing(offset=1, metadata="x" * 5000)})

        assert refused.value.name == "OFFSET_METADATA_TOO_LARGE"
        assert cluster.committed(crowd.group) == {}


def test_a_consumer_without_a_group_s_help_commits_too(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 2) as crowd:
        first, _ = sorted(crowd.places)
        crowd.fill(3)
        member = crowd.join(topics=())
        member.assign(first)
        crowd.read(3)

        member.commit()

        assert cluster.committed(crowd.group)[first].offset == 3
        found = cluster.describe(crowd.group)
        assert (found.group_state, found.protocol_type, found.members) == ("Empty", "", ())


def test_a_consumer_without_a_group_s_help_goes_on_where_it_stood(
    cluster: Cluster, library: Library
) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        place = Place(crowd.topic, 0)
        crowd.fill(5)
        cluster.commit(crowd.group, {place: Standing(offset=3)})

        crowd.join(topics=()).assign(place)

        assert crowd.read(2) == [(place, 3), (place, 4)]


def test_nobody_commits_past_a_group_that_has_members(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        place = Place(crowd.topic, 0)
        crowd.join()
        crowd.settle()
        stranger = crowd.join_apart(topics=())
        stranger.assign(place)

        with pytest.raises(Refused) as refused:
            stranger.commit({place: Standing(offset=1)})

        assert refused.value.name == "UNKNOWN_MEMBER_ID"
        assert cluster.committed(crowd.group) == {}
