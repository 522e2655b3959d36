"""Records: codecs, headers, timestamps, poll and iteration."""

import json
import time

import pytest

from kohort.client.errors import RecordDeserializationError
from kohort.wire.batch_header import TimestampType
from tests.client.node_cluster import Cluster, ProducedRecord, at, flatten, offsets, read
from tests.wait import wait_until

NOW_MS = time.time_ns() // 1_000_000


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_of_every_codec_are_read_with_all_fields(cluster: Cluster, codec: str) -> None:
    topic = cluster.create_topic()
    written = [
        ProducedRecord(
            key=b"key",
            value=codec.encode() * 500,
            headers=(("codec", codec.encode()), ("twice", b"1"), ("twice", b"2"), ("empty", b"")),
            timestamp_ms=NOW_MS,
        ),
        ProducedRecord(key=b"gone", value=None, timestamp_ms=NOW_MS + 1),
        *(
            ProducedRecord(value=b"v%d" % number, timestamp_ms=NOW_MS + 100)
            for number in range(300)
        ),
    ]
    cluster.produce(topic, written, codec=codec)

    with cluster.consumer() as consumer:
        consumer.subscribe([topic])
        records = read(consumer, len(written))

    assert offsets(records) == list(range(len(written)))
    assert [(each.key, each.value, each.headers, each.timestamp) for each in records] == [
        (each.key, each.value, each.headers, each.timestamp_ms) for each in written
    ]
    assert {(each.topic, each.partition, each.timestamp_type) for each in records} == {
        (topic, 0, TimestampType.CREATE_TIME)
    }


def test_poll_returns_at_most_max_records(cluster: Cluster) -> None:
    topic = cluster.create_topic(3)
    cluster.produce(topic, [ProducedRecord(partition=n % 3, value=b"%d" % n) for n in range(90)])

    with cluster.consumer(max_poll_records=10) as consumer:
        consumer.assign([at(topic, number) for number in range(3)])
        polls: list[int] = []

        def has_all() -> bool:
            polls.append(len(list(flatten(consumer.poll(50)))))
            return sum(polls) == 90

        wait_until(has_all, 20)
        assert max(polls) == 10
        consumer.seek_to_beginning()
        few = wait_until(lambda: consumer.poll(50, max_records=4), 20)

    assert len(list(flatten(few))) == 4


def test_poll_groups_records_by_partition(cluster: Cluster) -> None:
    topic = cluster.create_topic(2)
    cluster.produce(topic, [ProducedRecord(partition=n % 2, value=b"%d" % n) for n in range(20)])

    with cluster.consumer() as consumer:
        consumer.assign([at(topic, 0), at(topic, 1)])
        polled = wait_until(lambda: consumer.poll(50), 20)

    for partition, records in polled.items():
        assert {(each.topic, each.partition) for each in records} == {tuple(partition)}
        assert offsets(records) == list(range(len(records)))


def test_iteration_yields_each_record_once_and_ends_at_the_timeout(cluster: Cluster) -> None:
    topic = cluster.create_topic(2)
    cluster.produce(topic, [ProducedRecord(partition=n % 2, value=b"%d" % n) for n in range(1500)])

    with cluster.consumer(consumer_timeout_ms=1_500) as consumer:
        consumer.subscribe([topic])
        seen = sorted(int(record.value) for record in consumer)

    assert seen == list(range(1500))


def test_a_poll_without_records_returns_at_the_timeout(cluster: Cluster) -> None:
    topic = cluster.create_topic()

    with cluster.consumer() as consumer:
        consumer.assign([at(topic)])

        assert consumer.poll() == {}
        assert consumer.poll(timeout_ms=30) == {}


def test_a_batch_larger_than_the_fetch_limits_is_read(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    value = bytes(range(256)) * 3900
    cluster.produce(topic, [ProducedRecord(value=value), ProducedRecord(value=b"small")])

    with cluster.consumer(max_partition_fetch_bytes=100, fetch_max_bytes=100) as consumer:
        consumer.assign([at(topic)])
        records = read(consumer, 2)

    assert [each.value for each in records] == [value, b"small"]


def test_deserializers_are_applied(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    cluster.produce(
        topic, [ProducedRecord(key=b"k", value=b'{"n": 1}'), ProducedRecord(value=None)]
    )

    with cluster.consumer(key_deserializer=bytes.decode, value_deserializer=json.loads) as consumer:
        consumer.assign([at(topic)])
        records = read(consumer, 2)

    assert [(each.key, each.value) for each in records] == [("k", {"n": 1}), (None, None)]


def test_a_deserialization_error_names_the_record_and_can_be_skipped(
    cluster: Cluster,
) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, [ProducedRecord(value=value) for value in (b"1", b"2", b"three", b"4")])

    with cluster.consumer(value_deserializer=int) as consumer:
        consumer.assign([at(topic)])
        before = read(consumer, 2)
        with pytest.raises(RecordDeserializationError):
            consumer.poll(1000)
        with pytest.raises(RecordDeserializationError, match="offset 2") as caught:
            consumer.poll(1000)
        consumer.seek(caught.value.partition, caught.value.offset + 1)
        after = read(consumer, 1)

    assert isinstance(caught.value.__cause__, ValueError)
    assert [each.value for each in before + after] == [1, 2, 4]
