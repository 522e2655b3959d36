"""The /metrics page over HTTP."""

import http.client
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

import kohort
from kohort.node.broker import Address
from kohort.node.metrics_table import METRICS
from kohort.node.server import NodeStartError
from kohort.settings.readers import BadValue
from kohort.types import GroupId
from kohort.wire.api.k03_metadata import MetadataRequest
from kohort.wire.api.k12_heartbeat import HeartbeatRequest
from tests.node.broker_harness import fetch_request
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
    answer = speak(url_of(served), f"{request_line}\r\nHost: x\r\n\r\n".encode())

    assert answer.startswith(b"HTTP/1.1 404 Not Found\r\n")


def test_split_request_with_a_query_string_is_answered(served: ServedNode) -> None:
    host, _, port = url_of(served).split("/")[2].rpartition(":")
    with socket.create_connection((host, int(port)), 10) as asking:
        for piece in (b"GET /metr", b"ics?x=y HTTP/1.1\r\n", b"Host: x\r\n\r", b"\n"):
            asking.sendall(piece)
        answer = b""
        while data := receive(asking):
            answer += data

    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert f"Content-Length: {len(body)}\r\n".encode() in head + b"\r\n"


def test_oversized_request_is_disconnected(served: ServedNode) -> None:
    assert speak(url_of(served), b"GET /metrics HTTP/1.1\r\n" + b"x" * 10_000) == b""


def test_number_of_connections_is_limited(served: ServedNode) -> None:
    host, _, port = url_of(served).split("/")[2].rpartition(":")
    askers = [socket.create_connection((host, int(port)), 10) for _ in range(17)]
    refused = receive(askers[-1])
    for asker in askers:
        asker.close()

    assert refused == b""
    assert wait_until(lambda: answers(url_of(served)))


def answers(url: str) -> bool:
    try:
        return bool(read(url))
    except (ConnectionError, http.client.HTTPException):
        return False


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
