"""Real clients in groups: sharing, joining, leaving and crashing."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.node.clients.conftest import LIBRARIES, Cluster
from tests.node.clients.library import Fenced, Library, Member, Seen, Wanted, Written
from tests.waiting import wait_until

EVERY_ASSIGNOR = [
    pytest.param(library, assignor, id=f"{library.name}-{assignor}")
    for library in LIBRARIES
    for assignor in library.assignors
]


class Crowd:
    """Members of one group that are polled together, and what they have seen."""

    def __init__(self, cluster: Cluster, library: Library, partitions: int) -> None:
        self.cluster = cluster
        self.library = library
        self.partitions = set(range(partitions))
        self.topic = cluster.create_topic(partitions)
        self.group = cluster.name_group()
        self.members: list[Member] = []
        self._forgotten: list[Member] = []
        self.seen: list[Seen] = []

    def join(self, assignor: str = "range", instance: str | None = None) -> Member:
        wanted = Wanted(topic=self.topic, group=self.group, assignor=assignor, instance=instance)
        member = self.library.join(self.cluster.bootstrap_servers, wanted)
        self.members.append(member)
        return member

    def leave(self, member: Member) -> None:
        self.members.remove(member)
        member.close()

    def forget(self, member: Member) -> None:
        """It goes on by itself."""
        self.members.remove(member)
        self._forgotten.append(member)

    def close(self) -> None:
        for member in self._forgotten + self.members:
            member.close()

    def poll(self) -> None:
        for member in self.members:
            self.seen += member.poll()

    def is_settled(self) -> bool:
        """Whether every partition has exactly one owner, and every member a share."""
        self.poll()
        shares = [member.assignment() for member in self.members]
        owned = sorted(partition for share in shares for partition in share)
        return owned == sorted(self.partitions) and all(shares)

    def settle(self) -> None:
        wait_until(self.is_settled, 30, "partitions shared out")

    def produce(self, count: int) -> None:
        records = [
            Written(partition=partition, value=b"%d" % number)
            for partition in self.partitions
            for number in range(count)
        ]
        self.library.produce(self.cluster.bootstrap_servers, self.topic, records)

    def has_seen(self, count: int) -> bool:
        self.poll()
        return len({(seen.partition, seen.offset) for seen in self.seen}) >= count


@contextmanager
def crowd_of(cluster: Cluster, library: Library, partitions: int) -> Iterator[Crowd]:
    crowd = Crowd(cluster, library, partitions)
    try:
        yield crowd
    finally:
        crowd.close()


@pytest.mark.parametrize(("library", "assignor"), EVERY_ASSIGNOR)
def test_members_share_what_there_is_as_they_come_and_go(
    cluster: Cluster, library: Library, assignor: str
) -> None:
    with crowd_of(cluster, library, 4) as crowd:
        first = crowd.join(assignor)
        crowd.settle()
        assert first.assignment() == crowd.partitions

        crowd.join(assignor)
        crowd.settle()
        crowd.produce(5)
        wait_until(lambda: crowd.has_seen(20), 20, "all records")

        crowd.leave(first)
        crowd.settle()
        assert crowd.members[0].assignment() == crowd.partitions


def test_what_two_members_see_is_everything_once(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 2) as crowd:
        crowd.join()
        crowd.join()
        crowd.settle()
        crowd.produce(50)
        wait_until(lambda: crowd.has_seen(100), 20, "all records")

        expected = [(partition, offset) for partition in range(2) for offset in range(50)]
        assert sorted((seen.partition, seen.offset) for seen in crowd.seen) == expected
        assert all(seen.value == b"%d" % seen.offset for seen in crowd.seen)


def test_a_crashed_member_is_replaced_when_its_session_ends(
    cluster: Cluster, library: Library
) -> None:
    with crowd_of(cluster, library, 2) as crowd:
        survivor = crowd.join()
        crowd.settle()
        words = (library.name, cluster.bootstrap_servers, crowd.topic, crowd.group)
        doomed = subprocess.Popen([sys.executable, "-m", "tests.node.clients.crashing", *words])
        try:
            wait_until(lambda: _has_one(crowd, survivor), 30, "the other one to join")
        finally:
            doomed.kill()
            doomed.wait()

        crowd.settle()
        assert survivor.assignment() == crowd.partitions


def _has_one(crowd: Crowd, member: Member) -> bool:
    crowd.poll()
    return len(member.assignment()) == 1


# Static members


def test_a_static_member_comes_back_without_a_rebalance(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 2) as crowd:
        one = crowd.join(instance="one")
        other = crowd.join(instance="other")
        crowd.settle()
        share, told = one.assignment(), other.assignments
        crowd.leave(one)

        again = crowd.join(instance="one")
        crowd.settle()
        assert again.assignment() == share
        assert other.assignments == told


@pytest.mark.parametrize(
    "library",
    [library for library in LIBRARIES if library.knows_fencing],
    ids=lambda library: library.name,
)
def test_a_static_member_is_fenced_by_its_twin(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        first = crowd.join(instance="only")
        crowd.settle()
        crowd.produce(1)
        wait_until(lambda: crowd.has_seen(1), 20, "the record")
        crowd.forget(first)

        twin = crowd.join(instance="only")
        crowd.settle()
        with pytest.raises(Fenced):
            wait_until(lambda: commits(first), 20, "the first one fenced")
        assert twin.assignment() == {0}


def commits(member: Member) -> bool:
    member.poll()
    member.commit()
    return False
