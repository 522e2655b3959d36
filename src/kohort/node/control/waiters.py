"""Callers that wait for a condition. The node checks the conditions when something has happened."""

import asyncio
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from kohort.node.control.errors import ControlError

T = TypeVar("T")


class _ConditionWaiter(Generic[T]):
    __slots__ = ("find", "found")

    def __init__(self, find: Callable[[], T | None], found: "asyncio.Future[T]") -> None:
        self.find = find
        self.found = found


class Waiters:
    """True if there are any. `find` of a waiter returns None until its condition holds."""

    def __init__(self) -> None:
        self._waiters: dict[_ConditionWaiter[Any], None] = {}

    def __len__(self) -> int:
        return len(self._waiters)

    async def wait(self, find: Callable[[], T | None], timeout_s: float) -> T | None:
        """Return what `find` returns as soon as it is not None, or None after the timeout.

        The timeout is real time. A cancelled waiter is removed.
        """
        found = find()
        if found is not None:
            return found
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        waiter = _ConditionWaiter(find, future)
        self._waiters[waiter] = None
        try:
            async with asyncio.timeout(timeout_s):
                return await future
        except TimeoutError:
            # Retention, which may have shortened a log, runs between iterations.
            return find()
        finally:
            del self._waiters[waiter]

    def check(self) -> None:
        """Called after each event-loop iteration in which something has happened."""
        for waiter in tuple(self._waiters):
            if waiter.found.done():
                continue
            try:
                found = waiter.find()
            except Exception as error:  # it affects only this waiter, which raises it
                waiter.found.set_exception(error)
            else:
                if found is not None:
                    waiter.found.set_result(found)

    def refuse(self, reason: str) -> None:
        """End all waits with an error: the node stops."""
        for waiter in self._waiters:
            if not waiter.found.done():
                waiter.found.set_exception(ControlError(reason))
