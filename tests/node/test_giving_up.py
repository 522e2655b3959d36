"""A node that can promise nothing any more stops, and does not say that all is well."""

import asyncio
import threading
from pathlib import Path
from typing import NoReturn

import pytest

import kohort
from kohort.node.config import Settings
from kohort.node.server import GaveUp, Server
from tests.waiting import wait_until

CLEAN = ".kafka_cleanshutdown"


def break_an_invariant() -> NoReturn:
    raise AssertionError("broken")


def test_an_error_nobody_expected_stops_the_node_as_a_crash_would(tmp_path: Path) -> None:
    async def play() -> None:
        server = Server(Settings(), tmp_path)
        await server.start("127.0.0.1", 0)
        asyncio.get_running_loop().call_soon(break_an_invariant)
        await server.run()
        await server.stop()

    with pytest.raises(GaveUp, match="broken"):
        asyncio.run(play())

    assert not (tmp_path / CLEAN).exists()
    with kohort.Node(data=tmp_path):
        pass
    assert (tmp_path / CLEAN).exists()


def test_stopping_a_node_that_died_says_why_it_died(monkeypatch: pytest.MonkeyPatch) -> None:
    run_well = Server.run

    async def run(server: Server) -> None:
        asyncio.get_running_loop().call_soon(break_an_invariant)
        await run_well(server)

    monkeypatch.setattr(Server, "run", run)
    before = set(threading.enumerate())
    node = kohort.Node().start()
    wait_until(lambda: set(threading.enumerate()) <= before)

    with pytest.raises(GaveUp, match="broken"):
        node.stop()
