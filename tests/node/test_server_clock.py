"""The wall clock is set while a real server waits: its deadlines do not move."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kohort.node.broker import Address
from kohort.node.clock import SystemClock
from kohort.node.config import BrokerConfig
from kohort.node.server import Server
from kohort.types import ErrorCode, Millis, Topic
from kohort.wire.api.k12_heartbeat import HeartbeatRequest
from kohort.wire.api.k19_create_topics import CreatableTopic, CreateTopicsRequest
from tests.node.broker_harness import fetch_request
from tests.node.raw_client import RawClient, join_alone, join_request
from tests.wait import wait_until

MINUTE_MS, HOUR_MS = 60_000, 3_600_000
DELAY_MS = 1_000

STEPS = pytest.mark.parametrize("step_ms", [-2 * MINUTE_MS, MINUTE_MS, -HOUR_MS, 3 * HOUR_MS])


class SettableClock(SystemClock):
    def __init__(self) -> None:
        self.ahead_ms = 0

    def now(self) -> Millis:
        return Millis(super().now() + self.ahead_ms)


class ServerThread:
    """A server with this clock, on a thread of its own."""

    def __init__(self, data: Path, settings: dict[str, Any]) -> None:
        self.clock = SettableClock()
        self._data = data
        self._settings = BrokerConfig(settings)
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        assert self._ready.wait(20), "the server did not start"

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._server = Server(self._settings, self._data, self.clock)
        self.address: Address = await self._server.start("127.0.0.1", 0)
        self._ready.set()
        await self._server.run()
        await self._server.stop()

    @property
    def parked(self) -> int:
        broker = self._server.broker
        return len(broker.purgatory) + broker.groups.open_tickets

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._server.stopping.set)
        self._thread.join()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerThread]:
    server = ServerThread(tmp_path, {"group.initial.rebalance.delay.ms": str(DELAY_MS)})
    yield server
    server.stop()


@pytest.fixture
def client(server: ServerThread) -> Iterator[RawClient]:
    with RawClient(server.address) as client:
        yield client


@STEPS
def test_a_waiting_fetch_is_answered(server: ServerThread, client: RawClient, step_ms: int) -> None:
    topic = CreatableTopic(name=Topic("t"), num_partitions=1, replication_factor=1)
    client.ask(CreateTopicsRequest(topics=(topic,)), 7)
    sent = client.send(fetch_request(max_wait_ms=DELAY_MS), 12)
    wait_until(lambda: server.parked, what="a parked fetch")

    server.clock.ahead_ms = step_ms

    assert client.receive(sent).error_code == 0


@STEPS
def test_a_waiting_join_is_answered(server: ServerThread, client: RawClient, step_ms: int) -> None:
    returned = client.ask(join_request("g"), 9)
    sent = client.send(join_request("g", returned.member_id), 9)
    wait_until(lambda: server.parked, what="a parked join")

    server.clock.ahead_ms = step_ms

    assert client.receive(sent).error_code == 0


@STEPS
def test_a_member_keeps_its_session(server: ServerThread, client: RawClient, step_ms: int) -> None:
    member = join_alone(client, "g")

    server.clock.ahead_ms = step_ms
    # It waits for a timer, so every deadline that is over has been found when it is answered.
    join_alone(client, "another")

    beat = HeartbeatRequest(
        group_id=member.group_id, generation_id=member.generation, member_id=member.member_id
    )
    assert ErrorCode(client.ask(beat, 4).error_code) == ErrorCode.NONE
