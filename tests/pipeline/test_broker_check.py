"""An unreachable broker fails batch reads, streams and the ingest in time, with the reason."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import SparkSession

import kohort
import kohort.pipeline
from kohort.pipeline.errors import BrokerUnavailable, TopicNotFound
from kohort.pipeline.ingest.options import IngestOptions
from kohort.pipeline.ingest.preflight import check_before_start
from kohort.pipeline.ingest.table_schema import BadSchema
from kohort.pipeline.source.broker_check import check_reachable
from kohort.pipeline.source.options import SourceOptions, read_source_options

TIMEOUT_MS = 1_000
MARGIN_S = 4.0
"""For a busy machine."""


@pytest.fixture
def closed_address() -> Iterator[str]:
    """A port that is bound, so that no other process uses it, and refuses connections."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


def source_options(servers: str) -> SourceOptions:
    options = {
        "kafka.bootstrap.servers": servers,
        "kafka.request.timeout.ms": str(TIMEOUT_MS),
        "subscribe": "t",
    }
    return read_source_options(options, is_streaming=True)


def ingest_options(servers: str, **more: str) -> IngestOptions:
    kafka = {"request.timeout.ms": str(TIMEOUT_MS)}
    given = {"bootstrap_servers": servers, "group_id": "g", "target": "d", **more}
    return IngestOptions(topics=("t",), kafka=kafka, **given)  # type: ignore[arg-type]  # mixed


def test_no_reachable_broker_is_an_error_with_every_address_and_reason(closed_address: str) -> None:
    servers = f"{closed_address},no-such-host.invalid:9092"
    started = time.monotonic()

    with pytest.raises(BrokerUnavailable) as caught:
        check_reachable(source_options(servers))

    assert time.monotonic() - started < TIMEOUT_MS / 1000 + MARGIN_S
    message = str(caught.value)
    assert message.startswith("no broker could be reached within 1 s: ")
    assert f"{closed_address} (connection refused)" in message
    assert "no-such-host.invalid:9092 (" in message


def test_one_reachable_broker_is_enough(closed_address: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_reachable(source_options(f"{closed_address},127.0.0.1:{server.getsockname()[1]}"))


def test_a_broker_that_starts_within_the_timeout_is_waited_for(
    closed_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = closed_address.replace("127.0.0.1", "127.0.0.2")
    host, _, port = address.rpartition(":")
    servers: list[socket.socket] = []
    monkeypatch.setattr(
        "kohort.pipeline.source.broker_check.time.sleep",
        lambda _: servers.append(socket.create_server((host, int(port)))),
    )

    check_reachable(source_options(address))

    (server,) = servers
    server.close()


# The ingest, before Spark starts


def test_an_ingest_checks_its_schema_before_it_connects(closed_address: str) -> None:
    with pytest.raises(BadSchema, match="unknown type FOO"):
        check_before_start(ingest_options(closed_address, schema="id FOO"))


def test_an_ingest_names_the_broker_that_it_cannot_reach(closed_address: str) -> None:
    with pytest.raises(BrokerUnavailable, match=rf"{closed_address} \(connection refused\)"):
        check_before_start(ingest_options(closed_address))


def test_an_ingest_names_a_topic_that_does_not_exist() -> None:
    with (
        kohort.Node(settings={"auto.create.topics.enable": False}) as node,
        pytest.raises(TopicNotFound, match="topic t does not exist"),
    ):
        check_before_start(ingest_options(node.bootstrap_servers))


# Spark


def test_a_batch_query_fails_within_the_request_timeout(
    spark: SparkSession, closed_address: str
) -> None:
    kohort.pipeline.register(spark)
    frame = spark.read.format("kohort").options(
        **{
            "kafka.bootstrap.servers": closed_address,
            "kafka.request.timeout.ms": str(TIMEOUT_MS),
            "subscribe": "t",
        }
    )

    with pytest.raises(PySparkException, match=rf"{closed_address} \(connection refused\)"):
        frame.load().count()


@pytest.mark.parametrize("group", [{}, {"group.id": "g"}])
def test_a_stream_fails_within_the_request_timeout(
    spark: SparkSession, closed_address: str, tmp_path: Path, group: dict[str, str]
) -> None:
    kohort.pipeline.register(spark)
    options = {
        "kafka.bootstrap.servers": closed_address,
        "kafka.request.timeout.ms": str(TIMEOUT_MS),
        "subscribe": "t",
        **group,
    }
    frame = spark.readStream.format("kohort").options(**options).load()
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path))

    query = writer.trigger(availableNow=True).start()

    with pytest.raises(StreamingQueryException, match=rf"{closed_address} \(connection refused\)"):
        query.awaitTermination(60)
