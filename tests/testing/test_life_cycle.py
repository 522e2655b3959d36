"""Start, stop, restart and kill of `kohort.Node` and of `kohort.Node.process`."""

import asyncio
import gc
import os
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

import kohort
from kohort.node.control.errors import ControlError
from kohort.node.server import NodeStartError
from kohort.settings.readers import BadValue
from kohort.testing.local_node import LocalNode
from kohort.types import ErrorCode
from tests.node.broker_harness import fetch_request
from tests.node.raw_client import Disconnected, join_alone, join_request
from tests.testing.node_client import connect, list_groups, list_topics, produce, read
from tests.wait import run_loop_iteration, wait_until

MakeNode = Callable[..., LocalNode[Any]]


@pytest.fixture(params=[kohort.Node, kohort.Node.process], ids=["thread", "process"])
def make_node(request: pytest.FixtureRequest) -> MakeNode:
    make: MakeNode = request.param
    return make


@pytest.fixture
def node(make_node: MakeNode) -> Iterator[LocalNode[Any]]:
    with make_node() as node:
        yield node


def directory_of(node: LocalNode[Any]) -> Path:
    return node._directory.make()  # noqa: SLF001  # where the temporary data is


# Start and stop


def test_second_start_is_an_error_and_the_node_continues(node: LocalNode[Any]) -> None:
    with pytest.raises(RuntimeError, match="already running; stop"):
        node.start()

    assert list_topics(node.bootstrap_servers) == ["__consumer_offsets"]
    node.stop()


def test_stopped_node_starts_again_with_its_port_and_its_data(node: LocalNode[Any]) -> None:
    servers = node.bootstrap_servers
    produce(servers, "orders", "a", "b")

    node.stop()
    node.start()

    assert node.bootstrap_servers == servers
    assert read(servers, "orders") == ["a", "b"]


def test_stopped_node_has_no_address_and_answers_no_request(node: LocalNode[Any]) -> None:
    node.stop()

    assert not node.is_running
    for use in (lambda: node.bootstrap_servers, lambda: node.request("status", {})):
        with pytest.raises(RuntimeError, match="not running; use it as a context manager"):
            use()


def test_stop_of_a_node_that_does_not_run_does_nothing(make_node: MakeNode) -> None:
    node = make_node()

    node.stop()
    node.kill()
    node.close()

    assert not node.is_running


def test_restart_keeps_all_ports_and_the_data(make_node: MakeNode) -> None:
    with make_node(metrics="127.0.0.1:0", control="127.0.0.1:0") as node:
        produce(node.bootstrap_servers, "orders", "a")
        addresses = node.bootstrap_servers, node.metrics_url, node.control_url

        node.restart()

        assert (node.bootstrap_servers, node.metrics_url, node.control_url) == addresses
        assert read(node.bootstrap_servers, "orders") == ["a"]


def test_killed_node_has_cut_its_connections_and_recovers(node: LocalNode[Any]) -> None:
    servers = node.bootstrap_servers
    produce(servers, "orders", "a", "b")
    with connect(servers) as client:
        join_alone(client, "billing")
        parked = client.send(fetch_request(2, "orders", max_wait_ms=600_000), 12)

        node.kill()

        with pytest.raises(Disconnected):
            client.receive(parked)
    assert not (directory_of(node) / ".kafka_cleanshutdown").exists()
    node.start()
    assert node.bootstrap_servers == servers
    assert read(servers, "orders") == ["a", "b"]
    assert list_groups(servers) == ["billing"]


def test_stop_is_a_clean_shutdown(node: LocalNode[Any]) -> None:
    node.stop()

    assert (directory_of(node) / ".kafka_cleanshutdown").exists()


def test_nothing_is_written_after_a_kill(node: LocalNode[Any]) -> None:
    produce(node.bootstrap_servers, "orders", "a")
    node.kill()

    def modified() -> dict[str, int]:
        paths = directory_of(node).rglob("*")
        return {str(path): path.stat().st_mtime_ns for path in paths}

    before = modified()
    gc.collect()
    assert modified() == before


def test_first_join_after_a_restart_finds_loaded_groups(make_node: MakeNode) -> None:
    with make_node() as node:
        with connect(node.bootstrap_servers) as client:
            join_alone(client, "billing")
        for end in (node.stop, node.kill):
            end()
            node.start()
            with connect(node.bootstrap_servers) as client:
                joined = client.ask(join_request("other"), 9)
                assert joined.error_code == ErrorCode.MEMBER_ID_REQUIRED
            assert node.request("status", {})["coordinator"] == "active"


# Data


def test_temporary_data_is_removed_when_the_with_statement_ends(make_node: MakeNode) -> None:
    with make_node() as node:
        data = directory_of(node)
        node.stop()
        assert data.exists()
        node.start()

    assert not data.exists()


def test_temporary_data_is_removed_with_an_unused_node(make_node: MakeNode) -> None:
    node = make_node().start()
    servers, data = node.bootstrap_servers, directory_of(node)
    watched = weakref.ref(node)

    del node
    gc.collect()

    assert watched() is None
    assert not data.exists()
    with pytest.raises(OSError, match="refused"):
        connect(servers)


def test_given_data_directory_is_kept(make_node: MakeNode, tmp_path: Path) -> None:
    with make_node(data=tmp_path / "data") as node:
        produce(node.bootstrap_servers, "orders", "a")

    with make_node(data=tmp_path / "data") as node:
        assert read(node.bootstrap_servers, "orders") == ["a"]


def test_closed_node_starts_empty(make_node: MakeNode) -> None:
    node = make_node().start()
    produce(node.bootstrap_servers, "orders", "a")
    node.close()

    with node:
        assert list_topics(node.bootstrap_servers) == ["__consumer_offsets"]


# Arguments


@pytest.mark.parametrize("port", [99_999, -1, "many", True, 1.5])
def test_impossible_port_is_refused_before_anything_starts(
    make_node: MakeNode, port: object
) -> None:
    with pytest.raises(BadValue, match=f"port {port!r}: not"):
        make_node(port=port)


@pytest.mark.parametrize("name", ["metrics", "control"])
def test_impossible_http_port_is_refused_before_anything_starts(
    make_node: MakeNode, name: str
) -> None:
    with pytest.raises(BadValue, match=f"{name} 127.0.0.1:99999: .* between 0 and 65535"):
        make_node(**{name: "127.0.0.1:99999"})


def test_start_on_a_used_port_fails_and_may_be_repeated(
    make_node: MakeNode, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        node = make_node(port=port, data=tmp_path / "data")
        with pytest.raises(NodeStartError, match=f"127.0.0.1:{port}: Address already in use"):
            node.start()

    with node:
        assert node.bootstrap_servers == f"127.0.0.1:{port}"


# Threads and asyncio


def test_concurrent_calls_leave_a_node_that_works(node: LocalNode[Any]) -> None:
    errors: list[Exception] = []
    calls = [node.restart, node.kill, node.start, node.stop, node.restart, node.start]

    def call(method: Callable[[], object]) -> None:
        try:
            method()
        except Exception as error:  # reported by the test
            errors.append(error)

    threads = [threading.Thread(target=call, args=(method,)) for method in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert not any(thread.is_alive() for thread in threads)
    assert all("already running" in str(error) for error in errors)
    if not node.is_running:
        node.start()
    produce(node.bootstrap_servers, "orders", "a")


def test_request_that_waits_ends_when_the_node_stops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entered = threading.Event()

    async def wait_forever(*_: object) -> dict[str, Any]:
        entered.set()
        await asyncio.Event().wait()
        return {}

    monkeypatch.setattr("kohort.node.control.operations.OPERATIONS", {"wait": wait_forever})
    messages: list[str] = []

    def ask(started: LocalNode[Any]) -> None:
        try:
            started.request("wait", {})
        except ControlError as error:
            messages.append(str(error))

    with kohort.Node() as started:
        thread = threading.Thread(target=ask, args=(started,))
        thread.start()
        assert entered.wait(20)
    thread.join(20)

    assert messages == ["cannot wait: the node has stopped"]


def test_node_works_in_async_with(make_node: MakeNode) -> None:
    async def play() -> tuple[int, bytes | None]:
        iterations = 0

        async def count() -> None:
            nonlocal iterations
            while True:
                await run_loop_iteration()
                iterations += 1

        counting = asyncio.create_task(count())
        async with make_node() as node:
            counting.cancel()
            started = iterations
            servers = node.bootstrap_servers
            async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
                await producer.send_and_wait("orders", b"1")
            consumer = AIOKafkaConsumer(
                "orders",
                bootstrap_servers=servers,
                group_id="billing",
                auto_offset_reset="earliest",
            )
            async with consumer:
                record = await asyncio.wait_for(anext(consumer), 30)
        assert not node.is_running
        return started, record.value

    iterations, value = asyncio.run(play())

    assert iterations > 1
    assert value == b"1"


def test_cancelled_async_start_leaves_no_node(make_node: MakeNode) -> None:
    node = make_node()

    async def play() -> None:
        starting = asyncio.ensure_future(node.__aenter__())
        await run_loop_iteration()
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting

    asyncio.run(play())

    assert not node.is_running


# Settings


def test_group_forms_at_once_with_a_short_session(make_node: MakeNode) -> None:
    with make_node() as node, connect(node.bootstrap_servers) as client:
        assert join_alone(client, "billing", session_ms=10).generation == 1


def test_node_like_kafka_refuses_a_short_session(make_node: MakeNode) -> None:
    with make_node(like_kafka=True) as node, connect(node.bootstrap_servers) as client:
        refused = client.ask(join_request("billing", session_ms=5_999), 9)

    assert refused.error_code == ErrorCode.INVALID_SESSION_TIMEOUT


@pytest.mark.parametrize("like_kafka", [False, True])
def test_explicit_settings_have_precedence(make_node: MakeNode, *, like_kafka: bool) -> None:
    settings = {"group.min.session.timeout.ms": 700, "group.initial.rebalance.delay.ms": 1}
    with (
        make_node(settings=settings, like_kafka=like_kafka) as node,
        connect(node.bootstrap_servers) as client,
    ):
        refused = client.ask(join_request("billing", session_ms=699), 9)
        assert join_alone(client, "billing", session_ms=700).generation == 1

    assert refused.error_code == ErrorCode.INVALID_SESSION_TIMEOUT


# Failures


def test_node_that_ended_by_itself_says_so_and_starts_again() -> None:
    with kohort.Node.process() as node:
        os.kill(node.pid, 9)
        failure = wait_until(lambda: node.failure, what="the process has ended")

        assert failure is not None
        assert "exit code -9; its last log lines are" in str(failure)
        with pytest.raises(type(failure), match="exit code -9"):
            node.stop()
        node.start()
        assert list_topics(node.bootstrap_servers) == ["__consumer_offsets"]


def test_error_of_a_process_that_cannot_start_has_its_log(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(NodeStartError, match=r"(?s)exit code 1; .*file cannot be used"):
        kohort.Node.process(data=tmp_path / "file").start()


def test_node_on_a_thread_loads_neither_the_consumer_nor_http_and_package_metadata() -> None:
    """They take longer to import than the node takes to start."""
    program = (
        "import sys, kohort\n"
        "with kohort.Node() as node: node.create_topic('orders')\n"
        "print(*sys.modules)"
    )

    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    slow = {"kohort.client.consumer", "http.client", "importlib.metadata", "email.message"}
    assert slow & set(printed.stdout.split()) == set()
