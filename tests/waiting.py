"""Waiting, as tests do it: for something to become true, with a deadline."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_BETWEEN_LOOKS_S = 0.01
_BETWEEN_TURNS_S = 0.0005

_NEVER = threading.Event()


def wait_until(condition: Callable[[], T], deadline_s: float = 10.0, what: str = "") -> T:
    """What the condition gave once it was true; fails if it was not within the deadline."""
    end = time.monotonic() + deadline_s
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < end, f"not within {deadline_s} s: {what or condition}"
        pause(_BETWEEN_LOOKS_S)


async def reach(condition: Callable[[], T], deadline_s: float = 10.0, what: str = "") -> T:
    """The same, on an event loop that is to go on meanwhile."""
    end = time.monotonic() + deadline_s
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < end, f"not within {deadline_s} s: {what or condition}"
        await let_it_turn()


async def let_it_turn() -> None:
    """Everything that is ready on this event loop has its turn."""
    loop = asyncio.get_running_loop()
    turned = loop.create_future()
    loop.call_later(_BETWEEN_TURNS_S, turned.set_result, None)
    await turned


def pause(seconds: float) -> None:
    """Not to wait for something to have happened, but to draw a moment by chance."""
    _NEVER.wait(seconds)
