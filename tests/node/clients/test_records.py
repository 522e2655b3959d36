"""What real producers write is what real consumers read, in every codec and with every extra."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.node.clients.conftest import LIBRARIES, Cluster
from tests.node.clients.library import Library, Member, Seen, Wanted, Written
from tests.waiting import wait_until

NOW_MS = time.time_ns() // 1_000_000


@contextmanager
def reading(cluster: Cluster, library: Library, topic: str) -> Iterator[Member]:
    wanted = Wanted(topic=topic, group=cluster.name_group())
    member = library.join(cluster.bootstrap_servers, wanted)
    try:
        yield member
    finally:
        member.close()


def read(member: Member, count: int) -> list[Seen]:
    seen: list[Seen] = []

    def has_all() -> bool:
        seen.extend(member.poll())
        return len(seen) >= count

    wait_until(has_all, 20, f"{count} records")
    return sorted(seen, key=lambda each: (each.partition, each.offset))


def written_in(codec: str, at: int) -> list[Written]:
    """Enough of them, and alike enough, to be worth compressing."""
    first = Written(
        key=b"key",
        value=codec.encode() * 500,
        headers=(("codec", codec.encode()), ("twice", b"1"), ("twice", b"2"), ("empty", b"")),
        timestamp_ms=at,
    )
    tombstone = Written(key=b"gone", value=None, timestamp_ms=at + 1)
    return [first, tombstone, *(Written(value=b"v%d" % n, timestamp_ms=at + 2) for n in range(20))]


@pytest.mark.parametrize("reader", LIBRARIES, ids=lambda reader: f"read-by-{reader.name}")
def test_every_library_reads_what_another_wrote_in_any_codec(
    cluster: Cluster, library: Library, reader: Library
) -> None:
    topic = cluster.create_topic()
    written: list[Written] = []
    for codec in (codec for codec in library.codecs if codec in reader.codecs):
        records = written_in(codec, NOW_MS + len(written))
        offsets = library.produce(cluster.bootstrap_servers, topic, records, codec=codec)
        assert offsets == list(range(len(written), len(written) + len(records)))
        written += records

    with reading(cluster, reader, topic) as member:
        seen = read(member, len(written))

    assert [each.offset for each in seen] == list(range(len(written)))
    assert [(each.key, each.value, tuple(each.headers), each.timestamp_ms) for each in seen] == [
        (each.key, each.value, tuple(each.headers), each.timestamp_ms) for each in written
    ]


def test_an_idempotent_producer_is_taken_at_its_word(cluster: Cluster, library: Library) -> None:
    topic = cluster.create_topic(2)
    records = [Written(partition=n % 2, value=b"%d" % n) for n in range(200)]

    offsets = library.produce(cluster.bootstrap_servers, topic, records, is_idempotent=True)

    assert offsets == [n // 2 for n in range(200)]


def test_records_are_found_by_their_time(cluster: Cluster, library: Library) -> None:
    topic = cluster.create_topic()
    records = [Written(value=b"%d" % n, timestamp_ms=NOW_MS + 1000 * n) for n in range(5)]
    library.produce(cluster.bootstrap_servers, topic, records)

    with reading(cluster, library, topic) as member:
        read(member, 5)

        assert member.offset_for_time(0, NOW_MS) == 0
        assert member.offset_for_time(0, NOW_MS + 1001) == 2
        assert member.offset_for_time(0, NOW_MS + 999_000) is None
        assert member.span(0) == (0, 5)


def test_a_reader_goes_back_where_it_is_told(cluster: Cluster, library: Library) -> None:
    topic = cluster.create_topic()
    library.produce(cluster.bootstrap_servers, topic, [Written(value=b"%d" % n) for n in range(5)])

    with reading(cluster, library, topic) as member:
        read(member, 5)
        assert member.position(0) == 5
        member.seek(0, 3)

        assert [each.offset for each in read(member, 2)] == [3, 4]


def test_a_record_of_nearly_a_megabyte_goes_through(cluster: Cluster, library: Library) -> None:
    topic = cluster.create_topic()
    value = bytes(range(256)) * 3900
    library.produce(cluster.bootstrap_servers, topic, [Written(value=value)])

    with reading(cluster, library, topic) as member:
        (seen,) = read(member, 1)

    assert seen.value == value
