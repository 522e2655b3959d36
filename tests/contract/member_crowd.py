"""Members of one group that a test polls together, and the records they have consumed."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from tests.contract.clients.client_library import (
    ClientLibrary,
    ConsumedRecord,
    Member,
    MemberOptions,
    ProducerRecord,
    TopicAndPartition,
)
from tests.contract.cluster import Cluster
from tests.wait import wait_until

DEADLINE_S = 40


class Crowd:
    def __init__(self, cluster: Cluster, library: ClientLibrary, partitions: int) -> None:
        self.cluster = cluster
        self.library = library
        self.topic = cluster.create_topic(partitions)
        self.tps = {TopicAndPartition(self.topic, partition) for partition in range(partitions)}
        self.group = cluster.name_group()
        self.members: list[Member] = []
        self._apart: list[Member] = []
        self.consumed: list[ConsumedRecord] = []

    def join(self, library: ClientLibrary | None = None, **options: Any) -> Member:
        """Add a member; it subscribes to the topic of the crowd unless options name others."""
        member_options = MemberOptions(**{"group": self.group, "topics": (self.topic,), **options})
        member = (library or self.library).join(self.cluster.bootstrap_servers, member_options)
        self.members.append(member)
        return member

    def join_apart(self, **options: Any) -> Member:
        """Add a member that is not polled with the others."""
        member = self.join(**options)
        self.set_apart(member)
        return member

    def leave(self, member: Member) -> None:
        """Close a member while the others are polled; some libraries wait for that."""
        self.members.remove(member)
        with ThreadPoolExecutor(1) as pool:
            leaving = pool.submit(member.close)
            while not leaving.done():
                self.poll()
        leaving.result()

    def set_apart(self, member: Member) -> None:
        """Stop polling this member with the others."""
        self.members.remove(member)
        self._apart.append(member)

    def close(self) -> None:
        every_member = self._apart + self.members
        if every_member:
            with ThreadPoolExecutor(len(every_member)) as pool:
                for closing in [pool.submit(member.close) for member in every_member]:
                    closing.result()

    def poll(self) -> None:
        for member in self.members:
            self.consumed += member.poll()

    def is_settled(self) -> bool:
        """Whether every partition has one owner and all listeners were called."""
        self.poll()
        shares = [member.assignment() for member in self.members]
        owned = sorted(tp for share in shares for tp in share)
        return owned == sorted(self.tps) and all(
            owned_according_to_listener(member) == share
            for member, share in zip(self.members, shares, strict=True)
        )

    def settle(self) -> None:
        self._wait(self.is_settled, "all partitions assigned")

    def settle_evenly(self) -> None:
        """Wait until every member has partitions, too."""
        self._wait(
            lambda: self.is_settled() and all(member.assignment() for member in self.members),
            "partitions for every member",
        )

    def wait(self, condition: Callable[[], object], what: str) -> None:
        """Wait for a condition while all members are polled."""

        def is_true() -> bool:
            self.poll()
            return bool(condition())

        self._wait(is_true, what)

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        try:
            wait_until(condition, DEADLINE_S, what)
        except AssertionError as error:
            shares = [sorted(member.assignment()) for member in self.members]
            listeners = [owned_according_to_listener(member) for member in self.members]
            found = self.cluster.describe(self.group)
            raise AssertionError(
                f"{error}: assigned {shares}, listeners {listeners}, broker: {found}"
            ) from error

    def fill(self, count: int) -> None:
        """Append this many records to each partition; the value is the number."""
        records = [
            ProducerRecord(partition=tp.partition, value=b"%d" % number)
            for tp in sorted(self.tps)
            for number in range(count)
        ]
        self.cluster.fill(self.topic, records)

    def read(self, count: int) -> list[tuple[TopicAndPartition, int]]:
        """Partition and offset of all consumed records, once this many are distinct."""
        self.wait(lambda: len(self._different()) >= count, f"{count} records")
        return sorted((record.tp, record.offset) for record in self.consumed)

    def _different(self) -> set[tuple[TopicAndPartition, int]]:
        return {(record.tp, record.offset) for record in self.consumed}


def owned_according_to_listener(member: Member) -> set[TopicAndPartition]:
    """The partitions that a member owns according to the calls of its listener."""
    known: set[TopicAndPartition] = set()
    for what, tps in list(member.listener_calls):
        known = known | tps if what == "assigned" else known - tps
    return known


@contextmanager
def crowd_of(cluster: Cluster, library: ClientLibrary, partitions: int) -> Iterator[Crowd]:
    crowd = Crowd(cluster, library, partitions)
    try:
        yield crowd
    finally:
        crowd.close()
