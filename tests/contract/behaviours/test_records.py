"""Producing and consuming records: every codec, with keys, headers and timestamps."""

import itertools
import threading
import time

import pytest

from kohort.wire.batch import Codec
from tests.contract.clients.client_library import (
    ClientLibrary,
    ConsumedRecord,
    ProducerRecord,
    RequestRejected,
    TopicAndPartition,
)
from tests.contract.cluster import Cluster
from tests.contract.expected_results import needs
from tests.contract.libraries import every_library
from tests.contract.member_crowd import crowd_of

NOW_MS = time.time_ns() // 1_000_000

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

every_codec = pytest.mark.parametrize(
    "codec", [pytest.param(codec, marks=needs(codec)) for codec in CODECS]
)


def some_records(at_ms: int = NOW_MS) -> list[ProducerRecord]:
    """Enough similar records to be worth compressing, with keys, headers and timestamps."""
    first = ProducerRecord(
        key=b"key",
        value=b"alike " * 500,
        headers=(("a", b"1"), ("twice", b"1"), ("twice", b"2"), ("empty", b"")),
        timestamp_ms=at_ms,
    )
    tombstone = ProducerRecord(key=b"gone", value=None, timestamp_ms=at_ms + 1)
    others = [ProducerRecord(value=b"v%d" % n, timestamp_ms=at_ms + 2 + n) for n in range(20)]
    return [first, tombstone, *others]


_FILLED: dict[Cluster, tuple[str, list[ProducerRecord]]] = {}
_FILLING = threading.Lock()


def topic_of_every_library(cluster: Cluster) -> tuple[str, list[ProducerRecord]]:
    """One topic with the records of every library that can produce, in many codecs."""
    with _FILLING:
        if cluster not in _FILLED:
            _FILLED[cluster] = cluster.create_topic(), []
            topic, written = _FILLED[cluster]
            producers = [each for each in every_library() if "producing" not in each.limitations]
            for producer, codec in itertools.product(producers, ("gzip", "lz4", "zstd")):
                records = some_records(NOW_MS + 100 * len(written))
                producer.produce(cluster.bootstrap_servers, topic, records, codec=codec)
                written += records
        return _FILLED[cluster]


def contents_of(records: list[ProducerRecord] | list[ConsumedRecord]) -> list[tuple[object, ...]]:
    return [(each.key, each.value, tuple(each.headers), each.timestamp_ms) for each in records]


@every_codec
def test_consumed_records_equal_the_produced_ones(
    cluster: Cluster, library: ClientLibrary, codec: str
) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        records = some_records()
        cluster.fill(crowd.topic, records, Codec[codec.upper()])

        crowd.join()
        crowd.read(len(records))

        assert contents_of(crowd.consumed) == contents_of(records)


@needs("producing")
@every_codec
def test_produced_records_are_stored_unchanged(
    cluster: Cluster, library: ClientLibrary, codec: str
) -> None:
    topic, records = cluster.create_topic(), some_records()

    offsets = library.produce(cluster.bootstrap_servers, topic, records, codec=codec)

    assert offsets == list(range(len(records)))
    batches = cluster.fetch(topic, 0)
    assert {batch.header.codec for batch in batches} == {Codec[codec.upper()]}
    found = [record for batch in batches for record in batch.records]
    assert [(record.key, record.value, record.timestamp) for record in found] == [
        (record.key, record.value, record.timestamp_ms) for record in records
    ]
    assert [(each.key, each.value) for each in found[0].headers] == list(records[0].headers)


def test_records_of_every_producer_library_are_consumed(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        topic, written = topic_of_every_library(cluster)

        crowd.join(topics=(topic,))
        crowd.read(len(written))

        assert contents_of(crowd.consumed) == contents_of(written)


@needs("producing")
def test_an_idempotent_producer_is_supported(cluster: Cluster, library: ClientLibrary) -> None:
    topic = cluster.create_topic(2)
    records = [ProducerRecord(partition=n % 2, value=b"%d" % n) for n in range(200)]

    offsets = library.produce(cluster.bootstrap_servers, topic, records, is_idempotent=True)

    assert offsets == [n // 2 for n in range(200)]
    headers = [batch.header for batch in cluster.fetch(topic, 0)]
    assert all(header.producer_id >= 0 for header in headers)
    assert headers[0].base_sequence == 0


@needs("producing")
def test_a_record_of_nearly_a_megabyte_is_accepted(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        value = bytes(range(256)) * 3900
        library.produce(cluster.bootstrap_servers, crowd.topic, [ProducerRecord(value=value)])

        crowd.join()
        crowd.read(1)

        assert crowd.consumed[0].value == value


@needs("producing")
def test_a_record_that_is_too_large_is_refused(cluster: Cluster, library: ClientLibrary) -> None:
    topic = cluster.create_topic()

    with pytest.raises(RequestRejected) as refused:
        library.produce(cluster.bootstrap_servers, topic, [ProducerRecord(value=bytes(2_000_000))])

    assert refused.value.name == "MESSAGE_TOO_LARGE"
    assert cluster.offset_range(topic, 0) == (0, 0)


def test_a_batch_larger_than_the_fetch_limit_is_consumed(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        crowd.cluster.fill(crowd.topic, [ProducerRecord(value=bytes(50_000)) for _ in range(10)])

        crowd.join(max_partition_bytes=1000)

        assert [offset for _, offset in crowd.read(10)] == list(range(10))


def test_a_batch_of_very_many_records_is_consumed(cluster: Cluster, library: ClientLibrary) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        crowd.cluster.fill(crowd.topic, [ProducerRecord(value=b"%d" % n) for n in range(5000)])

        crowd.join()

        assert crowd.read(5000)[-1] == (TopicAndPartition(crowd.topic, 0), 4999)


@needs("producing")
def test_log_append_time_is_the_broker_s_clock(cluster: Cluster, library: ClientLibrary) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        topic = cluster.create_topic(settings={"message.timestamp.type": "LogAppendTime"})
        written = [ProducerRecord(timestamp_ms=NOW_MS - 1_000_000)]

        library.produce(cluster.bootstrap_servers, topic, written)

        crowd.join(topics=(topic,))
        crowd.read(1)
        assert crowd.consumed[0].timestamp_ms >= NOW_MS


def test_empty_keys_and_values_differ_from_null(cluster: Cluster, library: ClientLibrary) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        records = [ProducerRecord(key=b"", value=b""), ProducerRecord(key=None, value=None)]
        crowd.cluster.fill(crowd.topic, records)

        crowd.join()
        crowd.read(2)

        assert [(each.key, each.value) for each in crowd.consumed] == [(b"", b""), (None, None)]
