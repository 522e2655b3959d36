"""A node that cannot guarantee durability or consistency stops with an error."""

import asyncio
import threading
from pathlib import Path
from typing import NoReturn

import pytest

import kohort
from kohort.node.config import BrokerConfig
from kohort.node.server import NodeFailed, Server
from tests.wait import wait_until

CLEAN = ".kafka_cleanshutdown"


def break_an_invariant() -> NoReturn:
    raise AssertionError("broken")


def test_unexpected_error_stops_the_node_without_a_clean_shutdown(tmp_path: Path) -> None:
    async def play() -> None:
        server = Server(BrokerConfig(), tmp_path)
        await server.start("127.0.0.1", 0)
        asyncio.get_running_loop().call_soon(break_an_invariant)
        await server.run()
        await server.stop()

    with pytest.raises(NodeFailed, match="broken"):
        asyncio.run(play())

    assert not (tmp_path / CLEAN).exists()
    with kohort.Node(data=tmp_path):
        pass
    assert (tmp_path / CLEAN).exists()


def test_failed_last_sync_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> NoReturn:
        raise OSError("no such disk")

    async def play() -> None:
        server = Server(BrokerConfig({"kohort.durability": "fsync"}), tmp_path)
        await server.start("127.0.0.1", 0)
        monkeypatch.setattr("kohort.node.sync_thread.sync_all", fail)
        async with asyncio.timeout(20):
            await server.stop()

    with pytest.raises(NodeFailed, match="no such disk"):
        asyncio.run(play())

    assert not (tmp_path / CLEAN).exists()


def test_stopping_a_failed_node_raises_its_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    run_well = Server.run

    async def run(server: Server) -> None:
        asyncio.get_running_loop().call_soon(break_an_invariant)
        await run_well(server)

    monkeypatch.setattr(Server, "run", run)
    before = set(threading.enumerate())
    node = kohort.Node().start()
    wait_until(lambda: set(threading.enumerate()) <= before)

    with pytest.raises(NodeFailed, match="broken"):
        node.stop()
