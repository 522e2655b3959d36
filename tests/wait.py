"""Waits for conditions with a deadline, which tests use instead of sleeping."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_POLL_INTERVAL_S = 0.01
_LOOP_INTERVAL_S = 0.0005

_NEVER = threading.Event()


def wait_until(condition: Callable[[], T], deadline_s: float = 10.0, what: str = "") -> T:
    """Returns the first true value of the condition; fails after the deadline."""
    end = time.monotonic() + deadline_s
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < end, f"not within {deadline_s} s: {what or condition}"
        pause(_POLL_INTERVAL_S)


async def wait_until_async(
    condition: Callable[[], T], deadline_s: float = 10.0, what: str = ""
) -> T:
    """Like wait_until, without blocking the event loop."""
    end = time.monotonic() + deadline_s
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < end, f"not within {deadline_s} s: {what or condition}"
        await run_loop_iteration()


async def run_loop_iteration() -> None:
    """Run one iteration of the event loop."""
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    loop.call_later(_LOOP_INTERVAL_S, done.set_result, None)
    await done


def pause(seconds: float) -> None:
    """Wait for a random time; not for a condition, which wait_until is for."""
    _NEVER.wait(seconds)
