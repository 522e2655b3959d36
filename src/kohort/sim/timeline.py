"""Virtual time, and everything that is going to happen in it.

One heap, one order: what is due first happens first, and of two things due at once the one that
was planned first. Nothing here waits, so a day passes as fast as its events can be told.
"""

import heapq
from collections.abc import Callable
from typing import Final

MS: Final = 1000
"""Time is counted in microseconds, so that two messages seldom arrive at the same moment."""

EVENTS_MAX: Final = 20_000
"""Within one virtual millisecond: beyond that nothing moves but somebody turning in circles."""

Action = Callable[[], None]


class TimeStandsStill(Exception):
    """Things happen without end, and time does not pass."""


class Appointment:
    """Something that will happen, unless it is cancelled first."""

    __slots__ = ("action",)

    def __init__(self, action: Action) -> None:
        self.action: Action | None = action

    def cancel(self) -> None:
        self.action = None


class Timeline:
    def __init__(self) -> None:
        self.now = 0
        self.events = 0
        self._watched_since = self._events_before = 0
        self._planned = 0
        self._heap: list[tuple[int, int, Appointment]] = []

    @property
    def now_ms(self) -> int:
        return self.now // MS

    def after(self, delay: int, action: Action) -> Appointment:
        """In so many microseconds."""
        appointment = Appointment(action)
        self._planned += 1
        heapq.heappush(self._heap, (self.now + max(0, delay), self._planned, appointment))
        return appointment

    def after_ms(self, delay_ms: float, action: Action) -> Appointment:
        return self.after(int(delay_ms * MS), action)

    def step(self, until: int) -> bool:
        """The next event, if there is one before that moment; otherwise it is that moment."""
        heap = self._heap
        while heap and heap[0][0] <= until:
            at, _, appointment = heapq.heappop(heap)
            action = appointment.action
            if action is None:
                continue
            appointment.action = None
            self.now = at
            self.events += 1
            if at - self._watched_since >= MS:
                self._watched_since, self._events_before = at, self.events
            elif self.events - self._events_before > EVENTS_MAX:
                raise TimeStandsStill(f"{EVENTS_MAX} events within a millisecond")
            action()
            return True
        self.now = max(self.now, until)
        return False

    def run(self, until: int) -> None:
        while self.step(until):
            pass
