"""Consumer positions: initial, out of range, and after a seek."""

import time

import pytest

from tests.contract.clients.client_library import (
    ClientLibrary,
    CommittedOffset,
    NoValidOffset,
    ProducerRecord,
    TopicAndPartition,
)
from tests.contract.cluster import Cluster
from tests.contract.member_crowd import crowd_of


def test_a_new_group_starts_at_the_earliest_record(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        crowd.fill(3)

        crowd.join(reset="earliest")

        assert [offset for _, offset in crowd.read(3)] == [0, 1, 2]


def test_a_new_group_starts_after_the_latest_record(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        crowd.fill(3)
        crowd.join(reset="latest")
        crowd.settle()

        def has_seen_some_that_came_later() -> bool:
            crowd.fill(1)
            return bool(crowd.consumed)

        crowd.wait(has_seen_some_that_came_later, "a record")
        assert min(each.offset for each in crowd.consumed) >= 3


def test_a_new_group_without_a_reset_policy_gets_an_error(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        member = crowd.join(reset="none")

        with pytest.raises(NoValidOffset):
            crowd.wait(lambda: False, "a complaint")

        crowd.set_apart(member)


def test_an_offset_beyond_the_end_is_reset(cluster: Cluster, library: ClientLibrary) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        crowd.fill(3)
        cluster.commit(
            crowd.group, {TopicAndPartition(crowd.topic, 0): CommittedOffset(offset=1000)}
        )

        crowd.join(reset="earliest")

        assert [offset for _, offset in crowd.read(3)] == [0, 1, 2]


def test_a_consumer_seeks_to_an_earlier_offset(cluster: Cluster, library: ClientLibrary) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        tp = TopicAndPartition(crowd.topic, 0)
        crowd.fill(5)
        member = crowd.join()
        crowd.read(5)
        assert member.position(tp) == 5
        crowd.consumed.clear()

        member.seek(tp, 3)

        assert crowd.read(2) == [(tp, 3), (tp, 4)]


def test_a_paused_partition_is_not_fetched_until_it_is_resumed(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 2) as crowd:
        quiet, loud = sorted(crowd.tps)
        member = crowd.join()
        crowd.settle()
        member.pause(quiet)

        crowd.cluster.fill(crowd.topic, [ProducerRecord(partition=n) for n in (0, 1)])
        assert crowd.read(1) == [(loud, 0)]
        member.resume(quiet)

        assert crowd.read(2) == [(quiet, 0), (loud, 0)]


def test_beginning_and_end_offsets_are_known(cluster: Cluster, library: ClientLibrary) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        crowd.fill(5)
        member = crowd.join()
        crowd.settle()

        assert member.offset_range(TopicAndPartition(crowd.topic, 0)) == (0, 5)


def test_offsets_are_found_by_timestamp(cluster: Cluster, library: ClientLibrary) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        tp, start = TopicAndPartition(crowd.topic, 0), time.time_ns() // 1_000_000 - 100_000
        cluster.fill(
            crowd.topic, [ProducerRecord(timestamp_ms=start + 1000 * number) for number in range(5)]
        )
        member = crowd.join()
        crowd.settle()

        assert member.offset_for_time(tp, start) == 0
        assert member.offset_for_time(tp, start + 1001) == 2
        assert member.offset_for_time(tp, start + 999_000) is None
