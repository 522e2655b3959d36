"""Where a consumer reads: at first, when there is nothing there, and when it is told."""

import time

import pytest

from tests.contract.clients.library import Library, NoOffset, Place, Standing, Written
from tests.contract.cluster import Cluster
from tests.contract.crowd import crowd_of


def test_a_new_group_begins_with_the_earliest_record(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        crowd.fill(3)

        crowd.join(reset="earliest")

        assert [offset for _, offset in crowd.read(3)] == [0, 1, 2]


def test_a_new_group_begins_after_the_latest_record(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        crowd.fill(3)
        crowd.join(reset="latest")
        crowd.settle()

        def has_seen_some_that_came_later() -> bool:
            crowd.fill(1)
            return bool(crowd.seen)

        crowd.wait(has_seen_some_that_came_later, "a record")
        assert min(each.offset for each in crowd.seen) >= 3


def test_a_new_group_may_insist_on_a_committed_offset(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        member = crowd.join(reset="none")

        with pytest.raises(NoOffset):
            crowd.wait(lambda: False, "a complaint")

        crowd.set_apart(member)


def test_an_offset_beyond_the_end_is_reset(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        crowd.fill(3)
        cluster.commit(crowd.group, {Place(crowd.topic, 0): Standing(offset=1000)})

        crowd.join(reset="earliest")

        assert [offset for _, offset in crowd.read(3)] == [0, 1, 2]


def test_a_reader_goes_back_where_it_is_told(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        place = Place(crowd.topic, 0)
        crowd.fill(5)
        member = crowd.join()
        crowd.read(5)
        assert member.position(place) == 5
        crowd.seen.clear()

        member.seek(place, 3)

        assert crowd.read(2) == [(place, 3), (place, 4)]


def test_a_paused_partition_is_not_read_until_it_is_resumed(
    cluster: Cluster, library: Library
) -> None:
    with crowd_of(cluster, library, 2) as crowd:
        quiet, loud = sorted(crowd.places)
        member = crowd.join()
        crowd.settle()
        member.pause(quiet)

        crowd.cluster.fill(crowd.topic, [Written(partition=n) for n in (0, 1)])
        assert crowd.read(1) == [(loud, 0)]
        member.resume(quiet)

        assert crowd.read(2) == [(quiet, 0), (loud, 0)]


def test_the_span_of_a_partition_is_known(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        crowd.fill(5)
        member = crowd.join()
        crowd.settle()

        assert member.span(Place(crowd.topic, 0)) == (0, 5)


def test_records_are_found_by_their_time(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        place, start = Place(crowd.topic, 0), time.time_ns() // 1_000_000 - 100_000
        cluster.fill(
            crowd.topic, [Written(timestamp_ms=start + 1000 * number) for number in range(5)]
        )
        member = crowd.join()
        crowd.settle()

        assert member.offset_for_time(place, start) == 0
        assert member.offset_for_time(place, start + 1001) == 2
        assert member.offset_for_time(place, start + 999_000) is None
