"""A clock that stands still until it is moved, for tests (`kohort.clock=manual`).

Timestamps, retention, expiry and the deadlines of groups follow it. The monotonic clock stays real:
it measures durations, and bounds the waits of fetches, because their clients wait in real time.
"""

from kohort.node.clock import Clock
from kohort.types import DeadlineMillis, Millis


class ManualDeadlines:
    """The time of the deadlines of groups: the milliseconds for which the clock was moved.

    All of them count. `DeadlineClock` ignores long gaps, which a moved clock has on purpose.
    """

    __slots__ = ("now",)

    def __init__(self) -> None:
        self.now = DeadlineMillis(0)


class ManualClock:
    """Begins with the time of the real clock."""

    def __init__(self, real: Clock) -> None:
        self._real = real
        self._started_ms = real.now()
        self.deadlines = ManualDeadlines()

    def now(self) -> Millis:
        return Millis(self._started_ms + self.deadlines.now)

    def monotonic(self) -> float:
        return self._real.monotonic()

    def move_to(self, at: DeadlineMillis) -> None:
        """`at` is a time of `deadlines`, and not before it."""
        assert at >= self.deadlines.now, "the clock never goes back"
        self.deadlines.now = at
