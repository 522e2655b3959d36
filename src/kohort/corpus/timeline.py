"""Virtual time, and everything that is going to happen in it. Nothing here waits.

One heap, one order: what is due first happens first; of things due at once, what is foreseen comes
before what is done, and of either kind the one that was planned first.
"""

import heapq
from collections.abc import Callable
from typing import Final

from kohort.types import Millis

Action = Callable[[], object]
"""Something done; what it returns is of no interest."""

FORESEEN: Final = 0
"""A truth that comes with time alone, noted before the coordinator sees that time has come."""
DONE: Final = 1
"""What somebody does."""


class Appointment:
    """Something that will happen, unless it is cancelled first."""

    __slots__ = ("action",)

    def __init__(self, action: Action) -> None:
        self.action: Action | None = action

    def cancel(self) -> None:
        self.action = None


class Timeline:
    def __init__(self, now: Millis) -> None:
        self.now = now
        self._planned = 0
        self._heap: list[tuple[int, int, int, Appointment]] = []

    def at(self, when: int, action: Action, rank: int = DONE) -> Appointment:
        """At that moment; at once if it is over."""
        appointment = Appointment(action)
        self._planned += 1
        heapq.heappush(self._heap, (max(when, self.now), rank, self._planned, appointment))
        return appointment

    def after(self, delay_ms: int, action: Action) -> Appointment:
        return self.at(self.now + delay_ms, action)

    def next(self) -> tuple[int, int] | None:
        """When something is due, and of which rank it is."""
        heap = self._heap
        while heap and heap[0][3].action is None:
            heapq.heappop(heap)
        return heap[0][:2] if heap else None

    def step(self) -> None:
        """The next thing happens."""
        at, _, _, appointment = heapq.heappop(self._heap)
        self.now = Millis(at)
        action = appointment.action
        assert action is not None, "next() has looked"
        action()
