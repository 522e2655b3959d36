"""A scheduler of calls in virtual time.

Calls run in one order: by time, then by rank, then in the order in which they were scheduled. Time
jumps from call to call, so a day takes as long as the calls in it.
"""

import heapq
from collections.abc import Callable
from typing import Final

from kohort.types import Millis

Action = Callable[[], object]

MS: Final = 1000
"""Units per millisecond of a scheduler that counts microseconds."""

EARLY: Final = 0
"""The rank of calls that run before all others that are due at the same time."""
NORMAL: Final = 1


class Livelock(Exception):
    """Calls schedule each other endlessly, and time does not advance."""


class ScheduledCall:
    """A call that will run, unless it is cancelled first."""

    __slots__ = ("action",)

    def __init__(self, action: Action) -> None:
        self.action: Action | None = action

    def cancel(self) -> None:
        self.action = None


class Scheduler:
    def __init__(
        self, now: int = 0, *, units_per_ms: int = 1, calls_per_ms_max: int | None = None
    ) -> None:
        """With `calls_per_ms_max`, more calls within one virtual millisecond raise Livelock."""
        self.now = now
        self.calls = 0
        """The number of calls that have run."""
        self._units_per_ms = units_per_ms
        self._calls_per_ms_max = calls_per_ms_max
        self._ms_began = self._calls_before_ms = 0
        self._scheduled = 0
        self._heap: list[tuple[int, int, int, ScheduledCall]] = []

    @property
    def now_ms(self) -> Millis:
        return Millis(self.now // self._units_per_ms)

    def at(self, when: int, action: Action, rank: int = NORMAL) -> ScheduledCall:
        """Schedule a call for a time; for now if that time has passed."""
        call = ScheduledCall(action)
        self._scheduled += 1
        heapq.heappush(self._heap, (max(when, self.now), rank, self._scheduled, call))
        return call

    def after(self, delay: int, action: Action) -> ScheduledCall:
        return self.at(self.now + delay, action)

    def after_ms(self, delay_ms: float, action: Action) -> ScheduledCall:
        return self.at(self.now + int(delay_ms * self._units_per_ms), action)

    def next(self) -> tuple[int, int] | None:
        """The time and the rank of the next call, if there is one."""
        heap = self._heap
        while heap and heap[0][3].action is None:
            heapq.heappop(heap)
        return heap[0][:2] if heap else None

    def step(self, until: int) -> bool:
        """Run the next call if it is due by then; if not, set the time to `until`."""
        following = self.next()
        if following is None or following[0] > until:
            self.now = max(self.now, until)
            return False
        at, _, _, call = heapq.heappop(self._heap)
        action, call.action = call.action, None
        assert action is not None, "next() drops cancelled calls"
        self.now = at
        self.calls += 1
        if self._calls_per_ms_max is not None:
            self._check_progress(self._calls_per_ms_max)
        action()
        return True

    def run(self, until: int) -> None:
        while self.step(until):
            pass

    def _check_progress(self, calls_max: int) -> None:
        if self.now - self._ms_began >= self._units_per_ms:
            self._ms_began, self._calls_before_ms = self.now, self.calls
        elif self.calls - self._calls_before_ms > calls_max:
            raise Livelock(f"more than {calls_max} calls within a millisecond")
