"""One range, read as a worker reads it: whatever happens to the broker, each record once."""

import socket
from pathlib import Path

import pyarrow as pa
import pytest

from kohort.pipeline.errors import DataLost, NothingCame
from kohort.pipeline.source.options import SourceOptions, read_source_options
from kohort.pipeline.source.reading import Task, read_task
from kohort.types import Topic
from tests.client.clusters import Cluster, Written, at
from tests.node.serving import Served

SMALL = {"kafka.max.partition.fetch.bytes": "20000", "kafka.reconnect.backoff.max.ms": "200"}


def options_for(cluster: Cluster, **given: str) -> SourceOptions:
    names = {name.replace("__", "."): text for name, text in given.items()}
    servers = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribe": "any"}
    return read_source_options({**servers, **SMALL, **names}, is_streaming=True)


def offsets_of(batches: list[pa.RecordBatch]) -> list[int]:
    return [offset for batch in batches for offset in batch.column("offset").to_pylist()]


def fill(cluster: Cluster, count: int) -> Topic:
    """In batches of a hundred at most, so that there is much to fetch."""
    topic = cluster.create_topic()
    for start in range(0, count, 100):
        records = [Written(value=b"x" * 100) for _ in range(min(100, count - start))]
        cluster.produce(topic, records)
    return topic


def test_a_range_is_read_to_its_end_and_no_further(cluster: Cluster) -> None:
    topic = fill(cluster, 1000)

    batches = list(read_task(Task(topic, 0, 300, 700), options_for(cluster)))

    assert offsets_of(batches) == list(range(300, 700))


def test_a_broker_that_restarts_in_the_middle_costs_time_and_no_data(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with Served(tmp_path, port=port) as served:
        cluster = Cluster(bootstrap_servers=served.bootstrap_servers)
        topic = fill(cluster, 2000)
        reading = read_task(Task(topic, 0, 0, 2000), options_for(cluster))
        batches = [next(reading)]
        served.kill()
        with Served(tmp_path, port=port):
            batches += reading

    assert offsets_of(batches) == list(range(2000))


def test_records_that_go_while_they_are_read_are_an_error(cluster: Cluster) -> None:
    topic = fill(cluster, 2000)
    reading = read_task(Task(topic, 0, 0, 2000), options_for(cluster))
    next(reading)

    cluster.delete_before(at(topic), 1990)

    with pytest.raises(DataLost, match="failOnDataLoss=false"):
        list(reading)


def test_records_that_go_while_they_are_read_may_be_passed_over(cluster: Cluster) -> None:
    topic = fill(cluster, 2000)
    reading = read_task(Task(topic, 0, 0, 2000), options_for(cluster, failOnDataLoss="false"))
    batches = [next(reading)]

    cluster.delete_before(at(topic), 1990)
    batches += reading

    offsets = offsets_of(batches)
    assert offsets == sorted(set(offsets))
    assert offsets[-10:] == list(range(1990, 2000))
    assert len(offsets) < 2000


def test_a_broker_that_gives_nothing_is_not_waited_for_for_ever(cluster: Cluster) -> None:
    topic = fill(cluster, 10)
    options = options_for(cluster, fetchTimeoutMs="500")

    with pytest.raises(NothingCame, match="at offset 10"):
        list(read_task(Task(topic, 0, 0, 20), options))
