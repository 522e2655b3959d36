"""The clocks of the node; nothing else in it reads the time.

The wall clock gives timestamps, and the times that retention and expiry compare them with. It may
be set, forward or back, so no deadline depends on it: deadlines use the monotonic clock, through
`deadline_clock`.
"""

import time
from typing import Protocol

from kohort.types import Millis


class Clock(Protocol):
    def now(self) -> Millis:
        """The wall clock."""

    def monotonic(self) -> float:
        """Seconds, for deadlines and durations."""


class SystemClock:
    def now(self) -> Millis:
        return time.time_ns() // 1_000_000  # type: ignore[return-value]  # saves a call

    monotonic = staticmethod(time.monotonic)
