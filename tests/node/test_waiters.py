"""Waiters: who is answered, when conditions are checked, and that nothing polls."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from kohort.node.broker import Address
from kohort.node.config import BrokerConfig
from kohort.node.control.errors import ControlError
from kohort.node.control.operations import run_operation
from kohort.node.control.waiters import Waiters
from kohort.node.server import Server
from kohort.wire.api.k03_metadata import MetadataRequest
from tests.node.raw_client import RawClient, join_alone
from tests.wait import wait_until_async

T = TypeVar("T")

SETTINGS = {"group.initial.rebalance.delay.ms": "0"}
LONG_S = 60.0


class Condition:
    """A condition that a test makes true, and that counts its checks."""

    def __init__(self) -> None:
        self.found: str | None = None
        self.checks = 0

    def __call__(self) -> str | None:
        self.checks += 1
        return self.found


def start_wait(waiters: Waiters, condition: Callable[[], T | None]) -> "asyncio.Task[T | None]":
    return asyncio.create_task(waiters.wait(condition, LONG_S))


def test_condition_that_holds_is_answered_at_once() -> None:
    condition = Condition()
    condition.found = "yes"

    assert asyncio.run(Waiters().wait(condition, 0)) == "yes"


def test_waiter_is_answered_by_the_check_after_its_condition_holds() -> None:
    async def play() -> tuple[str | None, int]:
        waiters, condition = Waiters(), Condition()
        waiting = start_wait(waiters, condition)
        await wait_until_async(lambda: len(waiters) == 1)
        waiters.check()
        condition.found = "yes"
        waiters.check()
        waiters.check()
        return await waiting, condition.checks

    assert asyncio.run(play()) == ("yes", 3)


def test_each_of_many_waiters_is_answered_by_its_own_condition() -> None:
    async def play() -> list[str | None]:
        waiters = Waiters()
        conditions = [Condition() for _ in range(200)]
        waiting = [start_wait(waiters, condition) for condition in conditions]
        await wait_until_async(lambda: len(waiters) == 200)
        for number, condition in enumerate(conditions):
            condition.found = str(number)
            waiters.check()
        found = await asyncio.gather(*waiting)
        assert not waiters
        return found

    assert asyncio.run(play()) == [str(number) for number in range(200)]


def test_cancelled_waiter_is_removed() -> None:
    async def play() -> int:
        waiters, condition = Waiters(), Condition()
        waiting = start_wait(waiters, condition)
        await wait_until_async(lambda: len(waiters) == 1)
        waiting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await waiting
        assert not waiters
        waiters.check()
        return condition.checks

    assert asyncio.run(play()) == 1


def test_timeout_removes_the_waiter_after_a_last_check() -> None:
    async def play() -> tuple[str | None, int]:
        waiters, condition = Waiters(), Condition()
        found = await waiters.wait(condition, 0.01)
        assert not waiters
        return found, condition.checks

    assert asyncio.run(play()) == (None, 2)


def test_failing_condition_affects_only_its_waiter() -> None:
    is_broken = False

    def fail() -> None:
        assert not is_broken, "broken"

    async def play() -> str | None:
        nonlocal is_broken
        waiters, condition = Waiters(), Condition()
        failing, waiting = start_wait(waiters, fail), start_wait(waiters, condition)
        await wait_until_async(lambda: len(waiters) == 2)
        is_broken = True
        condition.found = "yes"
        waiters.check()
        with pytest.raises(AssertionError, match="broken"):
            await failing
        return await waiting

    assert asyncio.run(play()) == "yes"


# With a server


async def with_server(
    data: Path, play: Callable[[Server, Address], Awaitable[None]], **settings: str
) -> None:
    server = Server(BrokerConfig({**SETTINGS, **settings}), data)
    address = await server.start("127.0.0.1", 0)
    await wait_until_async(lambda: server.broker.coordinator.phase == "active")
    try:
        await play(server, address)
    finally:
        await server.stop()


def test_conditions_are_not_checked_while_nothing_happens(tmp_path: Path) -> None:
    async def play(server: Server, _: Address) -> None:
        condition = Condition()

        # The node reads its clock several times a second meanwhile.
        assert await server.waiters.wait(condition, 1.0) is None

        assert condition.checks == 2

    asyncio.run(with_server(tmp_path, play))


def test_conditions_are_checked_after_a_request(tmp_path: Path) -> None:
    async def play(server: Server, address: Address) -> None:
        condition = Condition()
        waiting = start_wait(server.waiters, condition)
        await wait_until_async(lambda: condition.checks == 1)
        condition.found = "yes"

        await asyncio.to_thread(ask_for_metadata, address)

        assert await waiting == "yes"

    asyncio.run(with_server(tmp_path, play))


def ask_for_metadata(address: Address) -> None:
    with RawClient(address) as client:
        client.ask(MetadataRequest(), 9)


def test_stopping_node_refuses_its_waiters(tmp_path: Path) -> None:
    async def play() -> None:
        server = Server(BrokerConfig(SETTINGS), tmp_path)
        await server.start("127.0.0.1", 0)
        waiting = asyncio.create_task(
            run_operation(server, "wait", {"group": "billing", "timeout": LONG_S})
        )
        await wait_until_async(lambda: bool(server.waiters))
        await server.stop()
        with pytest.raises(ControlError, match="the node stopped during the wait"):
            await waiting

    asyncio.run(play())


@pytest.mark.parametrize("durability", ["fsync", "os"])
def test_group_is_waited_for_with_and_without_fsync(tmp_path: Path, durability: str) -> None:
    async def play(server: Server, address: Address) -> None:
        body = {"group": "billing", "members": "1", "stable": "true"}
        waiting = asyncio.create_task(run_operation(server, "wait", body))
        await wait_until_async(lambda: bool(server.waiters))

        await asyncio.to_thread(join_group, address)

        found = await waiting
        assert (found["state"], found["generation"]) == ("Stable", 1)
        assert server.broker.syncer is None or server.broker.syncer.is_idle

    asyncio.run(with_server(tmp_path, play, **{"kohort.durability": durability}))


def join_group(address: Address) -> None:
    with RawClient(address) as client:
        join_alone(client, "billing")
