"""Joining and leaving a group."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.contract.clients.client_library import (
    SHORT_SESSION_MS,
    ClientLibrary,
    ProducerRecord,
    RequestRejected,
)
from tests.contract.cluster import Cluster
from tests.contract.libraries import every_library
from tests.contract.member_crowd import DEADLINE_S, Crowd, crowd_of
from tests.wait import wait_until


@contextmanager
def killed_member(crowd: Crowd, instance: str = "") -> Iterator[None]:
    """A member in a subprocess, which can be killed."""
    words = (crowd.library.name, crowd.cluster.bootstrap_servers, crowd.topic, crowd.group)
    command = [sys.executable, "-m", "tests.contract.killable_consumer", *words, instance]
    process = subprocess.Popen(command)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def test_partitions_are_rebalanced_as_members_join_and_leave(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 4) as crowd:
        first = crowd.join()
        crowd.settle()
        assert first.assignment() == crowd.tps

        second = crowd.join()
        crowd.settle_evenly()
        assert len(first.assignment()) == len(second.assignment()) == 2

        crowd.leave(first)
        crowd.settle()
        assert second.assignment() == crowd.tps


def test_two_members_consume_every_record_once(cluster: Cluster, library: ClientLibrary) -> None:
    with crowd_of(cluster, library, 2) as crowd:
        crowd.join()
        crowd.join()
        crowd.settle_evenly()
        crowd.fill(50)

        seen = crowd.read(100)

        assert seen == [(tp, offset) for tp in sorted(crowd.tps) for offset in range(50)]
        assert all(each.value == b"%d" % each.offset for each in crowd.consumed)


def test_a_member_without_partitions_waits_for_an_assignment(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        crowd.join()
        crowd.join()
        crowd.settle()
        crowd.wait(lambda: len(cluster.describe(crowd.group).members) == 2, "two members")
        crowd.settle()
        (idle,) = [member for member in crowd.members if not member.assignment()]
        (busy,) = [member for member in crowd.members if member is not idle]

        crowd.leave(busy)

        crowd.settle()
        assert idle.assignment() == crowd.tps


def test_a_crashed_member_is_removed_after_its_session_timeout(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 2) as crowd:
        survivor = crowd.join()
        crowd.settle()
        with killed_member(crowd):
            crowd.wait(lambda: len(survivor.assignment()) == 1, "the other one to join")

        crowd.settle()

        assert survivor.assignment() == crowd.tps


def test_a_member_that_exceeds_max_poll_interval_is_removed(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 2) as crowd:
        lazy = crowd.join(session_ms=SHORT_SESSION_MS, poll_interval_ms=SHORT_SESSION_MS)
        busy = crowd.join()
        crowd.settle_evenly()

        lazy.stall()
        crowd.set_apart(lazy)
        crowd.cluster.fill(crowd.topic, [ProducerRecord(partition=n) for n in range(2)])

        crowd.wait(lambda: busy.assignment() == crowd.tps, "its share taken over")


def test_a_session_timeout_below_the_minimum_is_refused(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        hasty = crowd.join(session_ms=200)

        with pytest.raises(RequestRejected) as refused:
            crowd.wait(lambda: False, "a refusal")

        assert refused.value.name == "INVALID_SESSION_TIMEOUT"
        crowd.set_apart(hasty)


def test_members_of_all_libraries_form_one_group(cluster: Cluster, library: ClientLibrary) -> None:
    with crowd_of(cluster, library, 10) as crowd:
        mine = crowd.join()
        for other in every_library():
            if other is not library:
                crowd.join(library=other)
        crowd.settle_evenly()
        assert {len(member.assignment()) for member in crowd.members} <= {2, 3}

        crowd.leave(mine)

        crowd.settle_evenly()


def test_groups_consume_the_same_topic_independently(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        crowd.fill(3)
        groups = [cluster.name_group() for _ in range(8)]
        readers = [crowd.join(group=group) for group in groups]
        seen: dict[int, list[int]] = {id(reader): [] for reader in readers}

        def have_all_read() -> bool:
            for reader in readers:
                seen[id(reader)] += [each.offset for each in reader.poll()]
            return all(len(offsets) == 3 for offsets in seen.values())

        wait_until(have_all_read, DEADLINE_S, "everything read by everyone")

        assert set(map(tuple, seen.values())) == {(0, 1, 2)}
        assert set(groups) <= set(cluster.groups())
