"""Members of one group that are polled together, and what they have seen."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from tests.contract.clients.library import Library, Member, Place, Seen, Wanted, Written
from tests.contract.cluster import Cluster
from tests.waiting import wait_until

PATIENCE_S = 40


class Crowd:
    def __init__(self, cluster: Cluster, library: Library, partitions: int) -> None:
        self.cluster = cluster
        self.library = library
        self.topic = cluster.create_topic(partitions)
        self.places = {Place(self.topic, partition) for partition in range(partitions)}
        self.group = cluster.name_group()
        self.members: list[Member] = []
        self._apart: list[Member] = []
        self.seen: list[Seen] = []

    def join(self, library: Library | None = None, **wishes: Any) -> Member:
        """One more member, of the crowd's topic unless it wishes for others."""
        wanted = Wanted(**{"group": self.group, "topics": (self.topic,), **wishes})
        member = (library or self.library).join(self.cluster.bootstrap_servers, wanted)
        self.members.append(member)
        return member

    def join_apart(self, **wishes: Any) -> Member:
        """One that is not polled with the others."""
        member = self.join(**wishes)
        self.set_apart(member)
        return member

    def leave(self, member: Member) -> None:
        """The others go on meanwhile: some libraries wait for them before they close."""
        self.members.remove(member)
        with ThreadPoolExecutor(1) as pool:
            leaving = pool.submit(member.close)
            while not leaving.done():
                self.poll()
        leaving.result()

    def set_apart(self, member: Member) -> None:
        """It is no longer polled with the others."""
        self.members.remove(member)
        self._apart.append(member)

    def close(self) -> None:
        everyone = self._apart + self.members
        if everyone:
            with ThreadPoolExecutor(len(everyone)) as pool:
                for closing in [pool.submit(member.close) for member in everyone]:
                    closing.result()

    def poll(self) -> None:
        for member in self.members:
            self.seen += member.poll()

    def is_settled(self) -> bool:
        """Whether every partition has one owner, and every listener has been told."""
        self.poll()
        shares = [member.assignment() for member in self.members]
        owned = sorted(place for share in shares for place in share)
        return owned == sorted(self.places) and all(
            known_by(member) == share for member, share in zip(self.members, shares, strict=True)
        )

    def settle(self) -> None:
        self._wait(self.is_settled, "partitions shared out")

    def settle_evenly(self) -> None:
        """Until also no member is without."""
        self._wait(
            lambda: self.is_settled() and all(member.assignment() for member in self.members),
            "a share for everyone",
        )

    def wait(self, condition: Callable[[], object], what: str) -> None:
        """Until something is true, while everyone is polled."""

        def is_true() -> bool:
            self.poll()
            return bool(condition())

        self._wait(is_true, what)

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        try:
            wait_until(condition, PATIENCE_S, what)
        except AssertionError as error:
            shares = [sorted(member.assignment()) for member in self.members]
            told = [known_by(member) for member in self.members]
            found = self.cluster.describe(self.group)
            raise AssertionError(f"{error}: {shares}, told {told}, the broker: {found}") from error

    def fill(self, count: int) -> None:
        """So many records for each partition, each with its number."""
        records = [
            Written(partition=place.partition, value=b"%d" % number)
            for place in sorted(self.places)
            for number in range(count)
        ]
        self.cluster.fill(self.topic, records)

    def read(self, count: int) -> list[tuple[Place, int]]:
        """Places and offsets of all that was seen, once there are so many different ones."""
        self.wait(lambda: len(self._different()) >= count, f"{count} records")
        return sorted((seen.place, seen.offset) for seen in self.seen)

    def _different(self) -> set[tuple[Place, int]]:
        return {(seen.place, seen.offset) for seen in self.seen}


def known_by(member: Member) -> set[Place]:
    """What a member's listener must take for its share, from all that it was told."""
    known: set[Place] = set()
    for what, places in list(member.told):
        known = known | places if what == "assigned" else known - places
    return known


@contextmanager
def crowd_of(cluster: Cluster, library: Library, partitions: int) -> Iterator[Crowd]:
    crowd = Crowd(cluster, library, partitions)
    try:
        yield crowd
    finally:
        crowd.close()
