"""The clock of deadlines: it counts only the time in which the event loop runs.

The loop reads it at least every `TICK_MS`. If much more time has passed, the loop did not run: the
process was stopped, its virtual machine was paused, or one piece of work took that long. No
heartbeat could be read meanwhile, so that time does not count. All deadlines are later by as much:
sessions, rebalances and waiting fetches have the time that they had left.
"""

from typing import Final, Protocol

from kohort.types import DeadlineMillis

TICK_MS: Final = 250

_COUNTED_S_MAX: Final = 2 * TICK_MS / 1000
"""The most that counts between two readings. A tick is rarely late by more than another tick."""

_ROUNDING_S: Final = 1e-6
"""Seconds are floating point numbers: without it a timer could be a millisecond late."""


class DeadlineTime(Protocol):
    """The time that timers compare their deadlines with."""

    now: DeadlineMillis


class DeadlineClock:
    __slots__ = ("_read_at", "_uncounted", "now")

    def __init__(self, monotonic: float) -> None:
        """`monotonic` is the time in seconds."""
        self._read_at = monotonic
        self._uncounted = 0.0
        self.now = DeadlineMillis(int(monotonic * 1000))

    def restart(self, monotonic: float) -> None:
        """The loop begins to run: the time since the last reading does not count."""
        self._uncounted += monotonic - self._read_at
        self._read_at = monotonic

    def advance(self, monotonic: float) -> float:
        """Set `now`. Return the seconds since the last reading that do not count, if any."""
        uncounted = monotonic - self._read_at - _COUNTED_S_MAX
        self._read_at = monotonic
        if uncounted > 0:
            self._uncounted += uncounted
        else:
            uncounted = 0.0
        counted = monotonic - self._uncounted + _ROUNDING_S
        self.now = int(counted * 1000)  # type: ignore[assignment]  # saves a call
        return uncounted
