"""Retention, compaction and deletion of records."""

import time

import pytest

from tests.contract.behaviours.test_group_administration import administering
from tests.contract.clients.client_library import (
    ClientLibrary,
    CommittedOffset,
    NoValidOffset,
    ProducerRecord,
    RequestRejected,
    TopicAndPartition,
)
from tests.contract.cluster import Cluster
from tests.contract.expected_results import needs
from tests.contract.member_crowd import crowd_of
from tests.wait import wait_until

DEADLINE_S = 60
NOW_MS = time.time_ns() // 1_000_000


def test_records_are_deleted_after_their_retention_time(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        topic = cluster.create_topic(settings={"retention.ms": 3_600_000})
        cluster.fill(topic, [ProducerRecord(timestamp_ms=NOW_MS - 7_200_000) for _ in range(3)])

        wait_until(
            lambda: cluster.offset_range(topic, 0) == (3, 3), DEADLINE_S, "the records to go"
        )

        cluster.fill(topic, [ProducerRecord()])
        crowd.join(topics=(topic,))
        assert crowd.read(1) == [(TopicAndPartition(topic, 0), 3)]


def test_records_are_deleted_beyond_the_retention_size(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        settings = {"segment.bytes": 1 << 20, "retention.bytes": 1 << 20}
        topic = cluster.create_topic(settings=settings)
        for _ in range(4):
            cluster.fill(topic, [ProducerRecord(value=bytes(600_000))])

        # Without the third segment the log would be smaller than the retention size.
        wait_until(
            lambda: cluster.offset_range(topic, 0) == (2, 4), DEADLINE_S, "two of them to go"
        )

        crowd.join(topics=(topic,))
        assert [offset for _, offset in crowd.read(2)] == [2, 3]


def test_compaction_keeps_the_last_record_of_every_key(
    cluster: Cluster, library: ClientLibrary
) -> None:
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
            cluster.fill(topic, [ProducerRecord(key=b"a", value=b"%d" % number, timestamp_ms=at)])
            cluster.fill(topic, [ProducerRecord(key=b"b", value=b"%d" % number, timestamp_ms=at)])
        # Only closed segments are compacted; a record with a much later timestamp closes one.
        cluster.fill(topic, [ProducerRecord(key=b"c", timestamp_ms=NOW_MS - 50_000)])
        cluster.fill(topic, [ProducerRecord(key=b"d", timestamp_ms=NOW_MS)])

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
        assert [each.value for each in crowd.consumed][:2] == [b"2", b"2"]


def test_a_consumer_skips_batches_that_compaction_has_emptied(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        settings = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
        topic = cluster.create_topic(settings={**settings, "segment.ms": 100})
        # The last batch of an idempotent producer is kept because of its sequence number.
        producer = cluster.new_producer_id()
        for number in range(3):
            written = [ProducerRecord(key=b"a", timestamp_ms=NOW_MS - 100_000)]
            cluster.fill(topic, written, producer_id=producer, sequence=number)
        cluster.fill(topic, [ProducerRecord(key=b"a", timestamp_ms=NOW_MS - 50_000)])
        cluster.fill(topic, [ProducerRecord(key=b"b", timestamp_ms=NOW_MS)])

        wait_until(lambda: len(cluster.records(topic, 0)) == 2, DEADLINE_S, "compaction")
        assert [len(batch.records) for batch in cluster.fetch(topic, 0)] == [0, 1, 1]

        crowd.join(topics=(topic,))
        assert crowd.read(2) == [(TopicAndPartition(topic, 0), 3), (TopicAndPartition(topic, 0), 4)]


@needs("administration")
def test_records_before_an_offset_are_deleted(cluster: Cluster, library: ClientLibrary) -> None:
    with crowd_of(cluster, library, 1) as crowd, administering(cluster, library) as admin:
        tp = TopicAndPartition(crowd.topic, 0)
        crowd.fill(10)

        assert admin.delete_records(tp, 4) == 4

        crowd.join()
        assert [offset for _, offset in crowd.read(6)] == [4, 5, 6, 7, 8, 9]
        assert crowd.members[0].offset_range(tp) == (4, 10)


@needs("administration")
def test_deleting_records_beyond_the_end_is_refused(
    cluster: Cluster, library: ClientLibrary
) -> None:
    topic = cluster.create_topic()

    with administering(cluster, library) as admin, pytest.raises(RequestRejected) as refused:
        admin.delete_records(TopicAndPartition(topic, 0), 1)

    assert refused.value.name == "OFFSET_OUT_OF_RANGE"


def test_a_group_whose_committed_offset_was_deleted_is_reset(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        tp = TopicAndPartition(crowd.topic, 0)
        crowd.fill(10)
        cluster.commit(crowd.group, {tp: CommittedOffset(offset=2)})
        cluster.delete_records(tp, 7)

        crowd.join(reset="earliest")

        assert [offset for _, offset in crowd.read(3)] == [7, 8, 9]


def test_a_group_without_a_reset_policy_gets_an_error(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        tp = TopicAndPartition(crowd.topic, 0)
        crowd.fill(10)
        cluster.commit(crowd.group, {tp: CommittedOffset(offset=2)})
        cluster.delete_records(tp, 7)
        member = crowd.join(reset="none")

        with pytest.raises(NoValidOffset):
            crowd.wait(lambda: False, "a complaint")

        crowd.set_apart(member)


@needs("administration", "latest-by-time")
def test_the_record_with_the_greatest_timestamp_is_found(
    cluster: Cluster, library: ClientLibrary
) -> None:
    topic = cluster.create_topic()
    times = (NOW_MS, NOW_MS + 5000, NOW_MS + 1000)
    cluster.fill(topic, [ProducerRecord(timestamp_ms=at) for at in times])

    with administering(cluster, library) as admin:
        assert admin.latest_by_time(TopicAndPartition(topic, 0)) == 1
