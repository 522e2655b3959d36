"""Where a group stands: committed by hand and by itself, kept, and found again by the next one."""

from tests.node.clients.conftest import Cluster
from tests.node.clients.library import Library, Member, Seen, Wanted, Written
from tests.waiting import wait_until


class Reader:
    """The only member of its group."""

    def __init__(
        self, cluster: Cluster, library: Library, topic: str, group: str, *, by_itself: bool
    ) -> None:
        wanted = Wanted(topic=topic, group=group, commits_by_itself=by_itself)
        self.member: Member = library.join(cluster.bootstrap_servers, wanted)
        self.seen: list[Seen] = []

    def read(self, count: int) -> list[int]:
        wait_until(lambda: self._has(count), 20, f"{count} records")
        return [each.offset for each in self.seen]

    def _has(self, count: int) -> bool:
        self.seen += self.member.poll()
        return len(self.seen) >= count

    def committed(self) -> int | None:
        self.seen += self.member.poll()
        return self.member.committed(0)


def produce(cluster: Cluster, library: Library, topic: str, count: int) -> None:
    records = [Written(value=b"%d" % number) for number in range(count)]
    library.produce(cluster.bootstrap_servers, topic, records)


def test_the_next_member_goes_on_where_the_last_one_committed(
    cluster: Cluster, library: Library
) -> None:
    topic, group = cluster.create_topic(), cluster.name_group()
    produce(cluster, library, topic, 5)
    first = Reader(cluster, library, topic, group, by_itself=False)
    assert first.read(5) == [0, 1, 2, 3, 4]
    assert first.member.committed(0) is None
    first.member.commit()
    assert first.member.committed(0) == 5
    produce(cluster, library, topic, 3)
    first.read(8)
    first.member.close()

    second = Reader(cluster, library, topic, group, by_itself=False)
    assert second.read(3) == [5, 6, 7]
    assert second.member.position(0) == 8
    _, end = second.member.span(0)
    assert end - (second.member.committed(0) or 0) == 3
    second.member.close()


def test_what_was_read_is_committed_by_itself_in_time(cluster: Cluster, library: Library) -> None:
    topic, group = cluster.create_topic(), cluster.name_group()
    produce(cluster, library, topic, 4)
    reader = Reader(cluster, library, topic, group, by_itself=True)

    reader.read(4)
    wait_until(lambda: reader.committed() == 4, 10, "a commit by itself")
    reader.member.close()


def test_what_was_read_is_committed_at_the_latest_when_a_member_leaves(
    cluster: Cluster, library: Library
) -> None:
    topic, group = cluster.create_topic(), cluster.name_group()
    produce(cluster, library, topic, 4)
    first = Reader(cluster, library, topic, group, by_itself=True)
    first.read(4)
    first.member.close()
    produce(cluster, library, topic, 1)

    second = Reader(cluster, library, topic, group, by_itself=True)
    assert second.read(1) == [4]
    second.member.close()


def test_groups_do_not_know_of_each_other(cluster: Cluster, library: Library) -> None:
    topic = cluster.create_topic()
    produce(cluster, library, topic, 2)

    for _ in range(2):
        reader = Reader(cluster, library, topic, cluster.name_group(), by_itself=False)
        assert reader.read(2) == [0, 1]
        reader.member.commit()
        reader.member.close()
