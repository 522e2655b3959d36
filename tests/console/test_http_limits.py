"""Host headers, half-sent requests, many connections and bursts of feeds, over sockets."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import pytest

from kohort.console.app import FEEDS_MAX
from kohort.console.limited_protocol import HttpLimits
from kohort.console.server import Console
from tests.client.node_cluster import Cluster
from tests.console.http_client import TIMEOUT_S, HttpClient
from tests.wait import wait_until

QUICK = HttpLimits(head_s=0.05, body_s=0.05)
PATIENT = HttpLimits(connections_max=8, head_s=600, body_s=600)

HALF_A_HEAD = b"GET /overview HTTP/1.1\r\nHost: loc"
HALF_A_BODY = b"POST /groups/g/reset HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nabc"
FEED = b"GET /overview.feed HTTP/1.1\r\nHost: localhost\r\n\r\n"


@contextmanager
def connected(url: str, sent: bytes = b"") -> Iterator[socket.socket]:
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), TIMEOUT_S) as asking:
        asking.sendall(sent)
        yield asking


def receive(asking: socket.socket) -> bytes:
    try:
        return asking.recv(1 << 20)
    except ConnectionResetError:
        return b""


def receive_all(asking: socket.socket) -> bytes:
    received = b""
    while data := receive(asking):
        received += data
    return received


@contextmanager
def limited(node: Cluster, limits: HttpLimits) -> Iterator[str]:
    with Console(node.bootstrap_servers, listen="127.0.0.1:0", limits=limits) as console:
        yield console.url


# Host names


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:1", "10.0.0.1", ""])
@pytest.mark.parametrize("path", ["/overview", "/overview.json", "/overview.feed", "/static/x"])
def test_a_request_for_another_host_name_is_refused(console: Console, host: str, path: str) -> None:
    request = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()

    with connected(console.url, request) as asking:
        head, _, body = receive_all(asking).partition(b"\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 421 ")
    assert body == b"this console is not served under this host name: allow it with --allowed-host"


def test_an_allowed_host_name_is_answered(node: Cluster) -> None:
    with Console(
        node.bootstrap_servers, listen="127.0.0.1:0", allowed_hosts=["console.example"]
    ) as console:
        client = HttpClient(console.url)

        allowed = client.get("/overview", host="console.example:8080")
        other = client.get("/overview", host="evil.example")

    assert (allowed.status, other.status) == (200, 421)


# Half-sent requests


@pytest.mark.parametrize("sent", [b"", HALF_A_HEAD, HALF_A_BODY], ids=["nothing", "head", "body"])
def test_a_half_sent_request_is_disconnected_after_the_time_limit(
    node: Cluster, sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with limited(node, QUICK) as url, connected(url, sent) as asking:
        received = receive_all(asking)

    assert received == b""
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("sent", [b"", HALF_A_HEAD, HALF_A_BODY], ids=["nothing", "head", "body"])
def test_half_sent_requests_do_not_block_the_console(node: Cluster, sent: bytes) -> None:
    with limited(node, PATIENT) as url, ExitStack() as opened:
        waiting = [
            opened.enter_context(connected(url, sent)) for _ in range(3 * PATIENT.connections_max)
        ]

        page = HttpClient(url).get("/overview")
        longest_waiting = receive(waiting[0])

    assert page.status == 200
    assert longest_waiting == b""


def test_connections_beyond_the_limit_do_not_disturb_open_pages(node: Cluster) -> None:
    with limited(node, PATIENT) as url, ExitStack() as opened:
        feeds = [opened.enter_context(connected(url, FEED)) for _ in range(PATIENT.connections_max)]
        started = [receive(each) for each in feeds]
        further = opened.enter_context(connected(url, FEED))

        assert receive(further) == b""
        assert all(each.startswith(b"HTTP/1.1 200 OK") for each in started)
        assert all(receive(each) for each in feeds)


def test_a_client_that_does_not_read_its_responses_is_disconnected(node: Cluster) -> None:
    pages = b"GET /overview HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with limited(node, HttpLimits(unread_s=0.05)) as url, connected(url) as asking:

        def is_disconnected() -> bool:
            try:
                asking.sendall(pages * 50)
            except (ConnectionResetError, BrokenPipeError):
                return True
            return False

        assert wait_until(is_disconnected, TIMEOUT_S, "the disconnection")


def test_huge_headers_are_rejected(console: Console) -> None:
    with connected(console.url, b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000) as it:
        assert receive(it)[:13] in (b"HTTP/1.1 400 ", b"")


# Feeds


def test_a_burst_of_feeds_does_not_exceed_the_limit(node: Cluster) -> None:
    with limited(node, HttpLimits()) as url, ExitStack() as opened:
        burst = [opened.enter_context(connected(url)) for _ in range(FEEDS_MAX + 50)]
        for each in burst:
            each.sendall(FEED)
        statuses = [receive(each)[:12] for each in burst]

    assert statuses.count(b"HTTP/1.1 200") == FEEDS_MAX
    assert statuses.count(b"HTTP/1.1 503") == 50


def test_closed_feeds_are_no_longer_counted(node: Cluster) -> None:
    with limited(node, HttpLimits()) as url:
        for _ in range(2):
            with ExitStack() as opened:
                burst = [opened.enter_context(connected(url)) for _ in range(FEEDS_MAX)]
                for each in burst:
                    each.sendall(FEED)

        def is_accepted() -> bool:
            with connected(url, FEED) as asking:
                return receive(asking).startswith(b"HTTP/1.1 200")

        assert wait_until(is_accepted, TIMEOUT_S, "a feed")
