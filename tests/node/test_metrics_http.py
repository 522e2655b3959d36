"""The /metrics page over HTTP."""

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

import kohort
from kohort.node.broker import Address
from kohort.node.metrics_http import CONNECTIONS_MAX, MetricsServer
from kohort.node.metrics_table import METRICS
from kohort.node.server import NodeStartError
from kohort.settings.hosts import read_allowed_hosts
from kohort.settings.readers import BadValue
from kohort.types import GroupId
from kohort.wire.api.k03_metadata import MetadataRequest
from kohort.wire.api.k12_heartbeat import HeartbeatRequest
from tests.node.broker_harness import BrokerHarness, fetch_request
from tests.node.group_setup import AT_ONCE
from tests.node.metrics_reader import metric_value, parse, read
from tests.node.raw_client import Disconnected, RawClient, join_request
from tests.node.served_node import ServedNode
from tests.wait import wait_until


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedNode]:
    directory = tmp_path_factory.mktemp("served")
    with ServedNode(directory, AT_ONCE, arguments=("--metrics", "127.0.0.1:0")) as served:
        yield served


def url_of(served: ServedNode) -> str:
    line = next(line for line in served.log.splitlines() if "metrics-served" in line)
    return f"http://{line.rpartition('address=')[2]}/metrics"


def test_page_has_exactly_the_metrics_of_the_table() -> None:
    with kohort.Node(metrics="127.0.0.1:0") as node:
        text = read(node.metrics_url)

    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert names[: len(METRICS)] == [metric.name for metric in METRICS]
    assert all(name.startswith("process_") for name in names[len(METRICS) :])


def test_requests_are_counted_and_timed_by_api(served: ServedNode) -> None:
    before = parse(read(url_of(served)))
    with RawClient(served.address) as client:
        for _ in range(3):
            client.ask(MetadataRequest(topics=()), 9)
        client.ask(HeartbeatRequest(group_id=GroupId("none")), 4)
        waiting = client.send(fetch_request(max_wait_ms=200, name="none"), 12)
        client.receive(waiting)
        during = parse(read(url_of(served)))
    wait_until(lambda: metric_value(parse(read(url_of(served))), "kohort_connections") == 0)

    def grown(name: str, **labels: str) -> float:
        key = (name, tuple(sorted(labels.items())))
        return during[key] - before.get(key, 0.0)

    assert grown("kohort_request_seconds_count", api="Metadata") == 3
    assert 0 < grown("kohort_request_seconds_sum", api="Metadata") < 3
    assert grown("kohort_request_seconds_bucket", api="Metadata", le="+Inf") == 3
    errors = "kohort_request_errors_total"
    assert grown(errors, api="Heartbeat", error="UNKNOWN_MEMBER_ID") == 1
    assert grown(errors, api="Fetch", error="UNKNOWN_TOPIC_OR_PARTITION") == 1
    assert grown("kohort_bytes_in_total") > 100
    assert grown("kohort_bytes_out_total") > 100
    assert metric_value(during, "kohort_connections") == 1
    assert grown("kohort_connections_opened_total") == 1


def test_refused_connections_are_counted() -> None:
    with kohort.Node(metrics="127.0.0.1:0", settings={"max.connections": 0}) as node:
        host, _, port = node.bootstrap_servers.rpartition(":")
        with RawClient(Address(host=host, port=int(port))) as client, pytest.raises(Disconnected):
            client.receive_frame()
        page = parse(read(node.metrics_url))

    assert metric_value(page, "kohort_connections_refused_total") == 1
    assert metric_value(page, "kohort_connections_opened_total") == 0


def test_syncs_are_counted_and_timed(served: ServedNode) -> None:
    with RawClient(served.address) as client:
        client.ask(join_request("synced"), 9)

    page = parse(read(url_of(served)))

    assert metric_value(page, "kohort_sync_seconds_count") >= 1
    assert metric_value(page, "kohort_sync_seconds_sum") > 0


# The page


def speak(url: str, request: bytes) -> bytes:
    """Everything received until the disconnect."""
    host, _, port = url.split("/")[2].rpartition(":")
    with socket.create_connection((host, int(port)), 10) as asking:
        asking.sendall(request)
        answer = b""
        while data := receive(asking):
            answer += data
    return answer


def receive(asking: socket.socket) -> bytes:
    try:
        return asking.recv(1 << 20)
    except ConnectionResetError:
        return b""


@pytest.mark.parametrize(
    "request_line",
    ["GET / HTTP/1.1", "POST /metrics HTTP/1.1", "GET /metrics/x HTTP/1.1", "nonsense", ""],
)
def test_other_paths_are_not_found(served: ServedNode, request_line: str) -> None:
    answer = speak(url_of(served), f"{request_line}\r\nHost: localhost\r\n\r\n".encode())

    assert answer.startswith(b"HTTP/1.1 404 Not Found\r\n")


def test_split_request_with_a_query_string_is_answered(served: ServedNode) -> None:
    host, _, port = url_of(served).split("/")[2].rpartition(":")
    with socket.create_connection((host, int(port)), 10) as asking:
        for piece in (b"GET /metr", b"ics?x=y HTTP/1.1\r\n", b"Host: localhost\r\n\r", b"\n"):
            asking.sendall(piece)
        answer = b""
        while data := receive(asking):
            answer += data

    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert f"Content-Length: {len(body)}\r\n".encode() in head + b"\r\n"


def test_oversized_request_is_disconnected(served: ServedNode) -> None:
    assert speak(url_of(served), b"GET /metrics HTTP/1.1\r\n" + b"x" * 10_000) == b""


HOST_NAMES_OF_OTHERS = [
    b"Host: evil.example",
    b"Host: evil.example:9464",
    b"Host: 127.0.0.1.evil.example",
    b"Host: localhost@evil.example",
    b"Host: 10.0.0.1",
    b"Host: 0.0.0.0",
    b"Host:",
    b"Host: localhost\r\nHost: evil.example",
    b"X-Host: localhost",
]


@pytest.mark.parametrize("header", HOST_NAMES_OF_OTHERS)
def test_request_for_another_host_name_is_refused(served: ServedNode, header: bytes) -> None:
    answer = speak(url_of(served), b"GET /metrics HTTP/1.1\r\n" + header + b"\r\n\r\n")

    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 421 Misdirected Request\r\n")
    assert body.count(b"\n") == 1
    assert b"--allowed-host" in body


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost:1", "[::1]:9464", "metrics.example", "NODE.example.:80", "10.1.2.3"],
)
def test_loopback_advertised_and_allowed_host_names_are_answered(host: str) -> None:
    request = f"GET /metrics HTTP/1.1\r\nhOST: \t{host} \r\n\r\n".encode()
    with kohort.Node(
        metrics="127.0.0.1:0",
        advertise="node.example",
        allowed_hosts=["metrics.example", "10.1.2.3"],
    ) as node:
        answer = speak(node.metrics_url, request)

    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")


def test_half_sent_requests_do_not_keep_scrapers_out(served: ServedNode) -> None:
    host, _, port = url_of(served).split("/")[2].rpartition(":")
    askers = [socket.create_connection((host, int(port)), 10) for _ in range(CONNECTIONS_MAX)]
    for asker in askers:
        asker.sendall(b"GET /metrics HTTP/1.1\r\nHost: loc")

    page = read(url_of(served))
    longest_waiting = receive(askers[0])
    askers[-1].sendall(b"alhost\r\n\r\n")
    latest = receive(askers[-1])
    for asker in askers:
        asker.close()

    assert "kohort_connections" in page
    assert longest_waiting == b""
    assert latest.startswith(b"HTTP/1.1 200 OK\r\n")


def test_number_of_connections_is_limited(served: ServedNode) -> None:
    host, _, port = url_of(served).split("/")[2].rpartition(":")
    askers = [socket.create_connection((host, int(port)), 10) for _ in range(5 * CONNECTIONS_MAX)]
    refused = [receive(asker) for asker in askers[: 4 * CONNECTIONS_MAX]]
    for asker in askers:
        asker.close()

    assert set(refused) == {b""}
    assert "kohort_connections" in read(url_of(served))


@pytest.mark.parametrize("sent", [b"", b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n"])
def test_half_sent_request_is_disconnected_after_the_time_limit(
    tmp_path: Path, sent: bytes
) -> None:
    harness = BrokerHarness(tmp_path)

    async def ask() -> bytes:
        page = MetricsServer(harness.broker, read_allowed_hosts(()), seconds_max=0.05).http
        port = await page.start("127.0.0.1", 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        try:
            return await asyncio.wait_for(reader.read(), 30)
        except ConnectionResetError:
            return b""
        finally:
            writer.close()
            page.stop()

    assert asyncio.run(ask()) == b""


def test_idle_connection_does_not_block_shutdown(tmp_path: Path) -> None:
    with ServedNode(tmp_path, arguments=("--metrics", "127.0.0.1:0")) as served:
        host, _, port = url_of(served).split("/")[2].rpartition(":")
        with socket.create_connection((host, int(port)), 10):
            assert served.stop() == 0

    assert "Traceback" not in served.log


# Asking for it


def test_node_without_metrics_has_no_metrics_url() -> None:
    with kohort.Node() as node, pytest.raises(RuntimeError, match="no metrics are served"):
        node.metrics_url  # noqa: B018  # a property that refuses


@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1", ":9464", "127.0.0.1:99999"])
def test_invalid_metrics_address_is_refused(address: str) -> None:
    with pytest.raises(BadValue, match="HOST:PORT"):
        kohort.Node(metrics=address)


def test_occupied_port_is_reported(served: ServedNode, tmp_path: Path) -> None:
    taken = url_of(served).split("/")[2]

    with (
        pytest.raises(
            NodeStartError, match=f"cannot serve metrics on {taken}: Address already in use"
        ),
        kohort.Node(metrics=taken, data=tmp_path / "data"),
    ):
        pass

    with kohort.Node(data=tmp_path / "data"):
        pass
