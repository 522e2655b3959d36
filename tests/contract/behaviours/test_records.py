"""What producers write is what consumers read, in every codec and with every extra."""

import itertools
import threading
import time

import pytest

from kohort.wire.batch import Codec
from tests.contract.claims import needs
from tests.contract.clients.library import Library, Place, Refused, Seen, Written
from tests.contract.cluster import Cluster
from tests.contract.crowd import crowd_of
from tests.contract.libraries import every_library

NOW_MS = time.time_ns() // 1_000_000

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

every_codec = pytest.mark.parametrize(
    "codec", [pytest.param(codec, marks=needs(codec)) for codec in CODECS]
)


def some_records(at_ms: int = NOW_MS) -> list[Written]:
    """Enough of them, and alike enough, to be worth compressing; with every extra."""
    first = Written(
        key=b"key",
        value=b"alike " * 500,
        headers=(("a", b"1"), ("twice", b"1"), ("twice", b"2"), ("empty", b"")),
        timestamp_ms=at_ms,
    )
    tombstone = Written(key=b"gone", value=None, timestamp_ms=at_ms + 1)
    others = [Written(value=b"v%d" % n, timestamp_ms=at_ms + 2 + n) for n in range(20)]
    return [first, tombstone, *others]


_FILLED: dict[Cluster, tuple[str, list[Written]]] = {}
_FILLING = threading.Lock()


def topic_of_every_library(cluster: Cluster) -> tuple[str, list[Written]]:
    """One topic of a cluster, with what every library that can has written, in many codecs."""
    with _FILLING:
        if cluster not in _FILLED:
            _FILLED[cluster] = cluster.create_topic(), []
            topic, written = _FILLED[cluster]
            producers = [each for each in every_library() if "producing" not in each.lacks]
            for producer, codec in itertools.product(producers, ("gzip", "lz4", "zstd")):
                records = some_records(NOW_MS + 100 * len(written))
                producer.produce(cluster.bootstrap_servers, topic, records, codec=codec)
                written += records
        return _FILLED[cluster]


def told_by(records: list[Written] | list[Seen]) -> list[tuple[object, ...]]:
    return [(each.key, each.value, tuple(each.headers), each.timestamp_ms) for each in records]


@every_codec
def test_records_are_read_as_they_were_written(
    cluster: Cluster, library: Library, codec: str
) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        records = some_records()
        cluster.fill(crowd.topic, records, Codec[codec.upper()])

        crowd.join()
        crowd.read(len(records))

        assert told_by(crowd.seen) == told_by(records)


@needs("producing")
@every_codec
def test_records_are_written_as_they_were_to_be(
    cluster: Cluster, library: Library, codec: str
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


def test_records_of_every_library_are_read(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        topic, written = topic_of_every_library(cluster)

        crowd.join(topics=(topic,))
        crowd.read(len(written))

        assert told_by(crowd.seen) == told_by(written)


@needs("producing")
def test_an_idempotent_producer_is_taken_at_its_word(cluster: Cluster, library: Library) -> None:
    topic = cluster.create_topic(2)
    records = [Written(partition=n % 2, value=b"%d" % n) for n in range(200)]

    offsets = library.produce(cluster.bootstrap_servers, topic, records, is_idempotent=True)

    assert offsets == [n // 2 for n in range(200)]
    headers = [batch.header for batch in cluster.fetch(topic, 0)]
    assert all(header.producer_id >= 0 for header in headers)
    assert headers[0].base_sequence == 0


@needs("producing")
def test_a_record_of_nearly_a_megabyte_goes_through(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        value = bytes(range(256)) * 3900
        library.produce(cluster.bootstrap_servers, crowd.topic, [Written(value=value)])

        crowd.join()
        crowd.read(1)

        assert crowd.seen[0].value == value


@needs("producing")
def test_a_record_that_is_too_large_is_refused(cluster: Cluster, library: Library) -> None:
    topic = cluster.create_topic()

    with pytest.raises(Refused) as refused:
        library.produce(cluster.bootstrap_servers, topic, [Written(value=bytes(2_000_000))])

    assert refused.value.name == "MESSAGE_TOO_LARGE"
    assert cluster.span(topic, 0) == (0, 0)


def test_a_batch_that_is_larger_than_a_reader_likes_is_read(
    cluster: Cluster, library: Library
) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        crowd.cluster.fill(crowd.topic, [Written(value=bytes(50_000)) for _ in range(10)])

        crowd.join(partition_bytes=1000)

        assert [offset for _, offset in crowd.read(10)] == list(range(10))


def test_a_batch_of_very_many_records_is_read(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        crowd.cluster.fill(crowd.topic, [Written(value=b"%d" % n) for n in range(5000)])

        crowd.join()

        assert crowd.read(5000)[-1] == (Place(crowd.topic, 0), 4999)


@needs("producing")
def test_the_broker_s_clock_is_kept_where_the_topic_wants_it(
    cluster: Cluster, library: Library
) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        topic = cluster.create_topic(settings={"message.timestamp.type": "LogAppendTime"})
        written = [Written(timestamp_ms=NOW_MS - 1_000_000)]

        library.produce(cluster.bootstrap_servers, topic, written)

        crowd.join(topics=(topic,))
        crowd.read(1)
        assert crowd.seen[0].timestamp_ms >= NOW_MS


def test_an_empty_key_and_an_empty_value_are_not_missing_ones(
    cluster: Cluster, library: Library
) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        records = [Written(key=b"", value=b""), Written(key=None, value=None)]
        crowd.cluster.fill(crowd.topic, records)

        crowd.join()
        crowd.read(2)

        assert [(each.key, each.value) for each in crowd.seen] == [(b"", b""), (None, None)]
