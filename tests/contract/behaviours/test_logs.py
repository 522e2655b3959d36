"""What becomes of old records, and how readers take it."""

import time

import pytest

from tests.contract.behaviours.test_group_administration import administering
from tests.contract.claims import needs
from tests.contract.clients.library import Library, NoOffset, Place, Refused, Standing, Written
from tests.contract.cluster import Cluster
from tests.contract.crowd import crowd_of
from tests.waiting import wait_until

DEADLINE_S = 60
NOW_MS = time.time_ns() // 1_000_000


def test_records_go_when_their_time_is_over(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        topic = cluster.create_topic(settings={"retention.ms": 3_600_000})
        cluster.fill(topic, [Written(timestamp_ms=NOW_MS - 7_200_000) for _ in range(3)])

        wait_until(lambda: cluster.span(topic, 0) == (3, 3), DEADLINE_S, "the records to go")

        cluster.fill(topic, [Written()])
        crowd.join(topics=(topic,))
        assert crowd.read(1) == [(Place(topic, 0), 3)]


def test_records_go_when_there_is_too_much_of_them(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        settings = {"segment.bytes": 1 << 20, "retention.bytes": 1 << 20}
        topic = cluster.create_topic(settings=settings)
        for _ in range(4):
            cluster.fill(topic, [Written(value=bytes(600_000))])

        # Without the third there would be less than is to be kept.
        wait_until(lambda: cluster.span(topic, 0) == (2, 4), DEADLINE_S, "two of them to go")

        crowd.join(topics=(topic,))
        assert [offset for _, offset in crowd.read(2)] == [2, 3]


def test_of_every_key_the_last_record_stays(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        topic = cluster.create_topic(
            settings={
                "cleanup.policy": "compact",
                "min.cleanable.dirty.ratio": "0.01",
                "segment.ms": 100,
            }
        )
        for number in range(3):
            at = NOW_MS - 100_000 + number
            cluster.fill(topic, [Written(key=b"a", value=b"%d" % number, timestamp_ms=at)])
            cluster.fill(topic, [Written(key=b"b", value=b"%d" % number, timestamp_ms=at)])
        # Only what is in a closed segment is compacted: much later records close it.
        cluster.fill(topic, [Written(key=b"c", timestamp_ms=NOW_MS - 50_000)])
        cluster.fill(topic, [Written(key=b"d", timestamp_ms=NOW_MS)])

        wait_until(
            lambda: (
                [record.key for record in cluster.records(topic, 0)] == [b"a", b"b", b"c", b"d"]
            ),
            DEADLINE_S,
            "compaction",
        )

        crowd.join(topics=(topic,))
        seen = crowd.read(4)
        assert [offset for _, offset in seen] == [4, 5, 6, 7]
        assert [each.value for each in crowd.seen][:2] == [b"2", b"2"]


def test_a_reader_gets_past_batches_that_compaction_has_emptied(
    cluster: Cluster, library: Library
) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        settings = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
        topic = cluster.create_topic(settings={**settings, "segment.ms": 100})
        # The last batch of an idempotent producer stays, for the sake of its sequence.
        producer = cluster.new_producer_id()
        for number in range(3):
            written = [Written(key=b"a", timestamp_ms=NOW_MS - 100_000)]
            cluster.fill(topic, written, producer_id=producer, sequence=number)
        cluster.fill(topic, [Written(key=b"a", timestamp_ms=NOW_MS - 50_000)])
        cluster.fill(topic, [Written(key=b"b", timestamp_ms=NOW_MS)])

        wait_until(lambda: len(cluster.records(topic, 0)) == 2, DEADLINE_S, "compaction")
        assert [len(batch.records) for batch in cluster.fetch(topic, 0)] == [0, 1, 1]

        crowd.join(topics=(topic,))
        assert crowd.read(2) == [(Place(topic, 0), 3), (Place(topic, 0), 4)]


@needs("administration")
def test_records_are_deleted_from_outside(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 1) as crowd, administering(cluster, library) as admin:
        place = Place(crowd.topic, 0)
        crowd.fill(10)

        assert admin.delete_records(place, 4) == 4

        crowd.join()
        assert [offset for _, offset in crowd.read(6)] == [4, 5, 6, 7, 8, 9]
        assert crowd.members[0].span(place) == (4, 10)


@needs("administration")
def test_records_that_are_not_there_are_not_deleted(cluster: Cluster, library: Library) -> None:
    topic = cluster.create_topic()

    with administering(cluster, library) as admin, pytest.raises(Refused) as refused:
        admin.delete_records(Place(topic, 0), 1)

    assert refused.value.name == "OFFSET_OUT_OF_RANGE"


def test_a_group_that_stood_on_deleted_records_is_moved(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        place = Place(crowd.topic, 0)
        crowd.fill(10)
        cluster.commit(crowd.group, {place: Standing(offset=2)})
        cluster.delete_records(place, 7)

        crowd.join(reset="earliest")

        assert [offset for _, offset in crowd.read(3)] == [7, 8, 9]


def test_a_group_that_will_not_be_moved_is_told(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        place = Place(crowd.topic, 0)
        crowd.fill(10)
        cluster.commit(crowd.group, {place: Standing(offset=2)})
        cluster.delete_records(place, 7)
        member = crowd.join(reset="none")

        with pytest.raises(NoOffset):
            crowd.wait(lambda: False, "a complaint")

        crowd.set_apart(member)


@needs("administration", "latest-by-time")
def test_the_latest_record_by_time_is_found(cluster: Cluster, library: Library) -> None:
    topic = cluster.create_topic()
    times = (NOW_MS, NOW_MS + 5000, NOW_MS + 1000)
    cluster.fill(topic, [Written(timestamp_ms=at) for at in times])

    with administering(cluster, library) as admin:
        assert admin.latest_by_time(Place(topic, 0)) == 1
