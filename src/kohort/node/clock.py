"""The clock of the node; nothing else in it reads the time."""

import time
from typing import Protocol

from kohort.types import Millis


class Clock(Protocol):
    def now(self) -> Millis: ...

    def monotonic(self) -> float:
        """Seconds, for measuring durations."""


class SystemClock:
    """The wall clock, but it never goes backwards, because deadlines depend on it."""

    def __init__(self) -> None:
        self._last = Millis(0)

    def now(self) -> Millis:
        self._last = Millis(max(self._last, time.time_ns() // 1_000_000))
        return self._last

    monotonic = staticmethod(time.monotonic)
