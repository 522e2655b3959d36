"""Read a range as a worker does: each record once, even if the broker restarts."""

import logging
import socket
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from kohort.pipeline.errors import DataLost, FetchTimeout, MalformedBatch
from kohort.pipeline.source.options import SourceOptions, read_source_options
from kohort.pipeline.source.read_task import RangePartition, read_range
from kohort.types import Topic
from tests.client.malformed_topic import END, READABLE, malformed_topic
from tests.client.node_cluster import Cluster, ProducedRecord, at
from tests.node.served_node import ServedNode

SMALL = {"kafka.max.partition.fetch.bytes": "20000", "kafka.reconnect.backoff.max.ms": "200"}


def options_for(cluster: Cluster, **given: str) -> SourceOptions:
    names = {name.replace("__", "."): text for name, text in given.items()}
    servers = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribe": "any"}
    return read_source_options({**servers, **SMALL, **names}, is_streaming=True)


def offsets_of(batches: list[pa.RecordBatch]) -> list[int]:
    return [offset for batch in batches for offset in batch.column("offset").to_pylist()]


def fill(cluster: Cluster, count: int) -> Topic:
    """In batches of at most a hundred records, so that there are many fetches."""
    topic = cluster.create_topic()
    for start in range(0, count, 100):
        records = [ProducedRecord(value=b"x" * 100) for _ in range(min(100, count - start))]
        cluster.produce(topic, records)
    return topic


def test_a_range_is_read_exactly(cluster: Cluster) -> None:
    topic = fill(cluster, 1000)

    batches = list(read_range(RangePartition(topic, 0, 300, 700), options_for(cluster)))

    assert offsets_of(batches) == list(range(300, 700))


def test_a_broker_restart_loses_no_record(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with ServedNode(tmp_path, port=port) as served:
        cluster = Cluster(bootstrap_servers=served.bootstrap_servers)
        topic = fill(cluster, 2000)
        reading = read_range(RangePartition(topic, 0, 0, 2000), options_for(cluster))
        batches = [next(reading)]
        served.kill()
        with ServedNode(tmp_path, port=port):
            batches += reading

    assert offsets_of(batches) == list(range(2000))


def test_records_deleted_during_the_read_are_an_error(cluster: Cluster) -> None:
    topic = fill(cluster, 2000)
    reading = read_range(RangePartition(topic, 0, 0, 2000), options_for(cluster))
    next(reading)

    cluster.delete_before(at(topic), 1990)

    with pytest.raises(DataLost, match="failOnDataLoss=false"):
        list(reading)


def test_records_deleted_during_the_read_are_skipped_if_allowed(cluster: Cluster) -> None:
    topic = fill(cluster, 2000)
    reading = read_range(
        RangePartition(topic, 0, 0, 2000), options_for(cluster, failOnDataLoss="false")
    )
    batches = [next(reading)]

    cluster.delete_before(at(topic), 1990)
    batches += reading

    offsets = offsets_of(batches)
    assert offsets == sorted(set(offsets))
    assert offsets[-10:] == list(range(1990, 2000))
    assert len(offsets) < 2000


def test_a_broker_that_returns_nothing_fails_the_task_in_time(cluster: Cluster) -> None:
    topic = fill(cluster, 10)
    options = options_for(cluster, fetchTimeoutMs="500")

    with pytest.raises(FetchTimeout, match="at offset 10"):
        list(read_range(RangePartition(topic, 0, 0, 20), options))


@pytest.fixture
def malformed(tmp_path: Path) -> Iterator[tuple[Cluster, Topic]]:
    with malformed_topic(tmp_path) as found:
        yield found


def test_a_malformed_batch_is_an_error_that_names_it(malformed: tuple[Cluster, Topic]) -> None:
    cluster, topic = malformed
    reading = read_range(RangePartition(topic, 0, 0, END), options_for(cluster))

    assert offsets_of([next(reading)]) == [0]
    with pytest.raises(MalformedBatch, match=rf"{topic}-0 is corrupt at offset 1: .* records") as e:
        next(reading)
    assert str(e.value).endswith("; skipMalformedBatches=true continues without it")


def test_malformed_batches_are_skipped_reported_and_counted_if_allowed(
    malformed: tuple[Cluster, Topic], caplog: pytest.LogCaptureFixture
) -> None:
    cluster, topic = malformed
    options = options_for(cluster, skipMalformedBatches="true")

    with caplog.at_level(logging.WARNING, logger="kohort.pipeline"):
        batches = list(read_range(RangePartition(topic, 0, 0, END), options))

    assert offsets_of(batches) == READABLE
    what = f"of {topic}-0, which cannot be decoded"
    lines = caplog.messages
    assert [line.partition(": ")[0] for line in lines] == [
        f"skipped offsets 1 to 3 {what}",
        f"skipped offsets 4 to 6 {what}",
        f"skipped offsets 7 to 9 {what}",
        f"skipped offsets 10 to 11 {what}",
        "skipped 11 offsets in 4 ranges that cannot be decoded",
    ]
    assert "crc" in lines[3]
