"""Deadlines by key. Moving one later, which every heartbeat does, costs one dictionary write.

Timers are set with a delay, which counts from `Timers.now`. The owner of the timers keeps that time
up to date, with the node's deadline clock or with virtual time.
"""

import heapq
from typing import Final, Generic, TypeVar

from kohort.types import DeadlineMillis

K = TypeVar("K")

_STALE_MIN: Final = 1000
"""The heap is not swept for stale entries while it has fewer entries than this."""


class Timers(Generic[K]):
    """Timers are set, moved and cancelled by key, and fire in the order of deadline, then arrival.

    The heap may contain a deadline that was moved later or cancelled. It is checked when its old
    time comes, so a timer that is moved often has one entry, not one per move.
    """

    def __init__(self) -> None:
        self._deadlines: dict[K, DeadlineMillis] = {}
        self._scheduled: dict[K, DeadlineMillis] = {}
        self._heap: list[tuple[DeadlineMillis, int, K]] = []
        self._arrivals = 0
        self.now = DeadlineMillis(0)
        self.earliest: DeadlineMillis | None = None
        """When to check next: not later than the next deadline, sometimes earlier."""

    def __len__(self) -> int:
        return len(self._deadlines)

    def set(self, key: K, delay_ms: int) -> None:
        deadline: DeadlineMillis = self.now + delay_ms  # type: ignore[assignment]  # saves a call
        self._deadlines[key] = deadline
        scheduled = self._scheduled.get(key)
        if scheduled is None or deadline < scheduled:
            self._schedule(key, deadline)

    def cancel(self, key: K) -> None:
        self._deadlines.pop(key, None)

    def take_due(self, now: DeadlineMillis) -> list[K]:
        """Set the time, and return the keys of the timers that are due."""
        self.now = now
        due: list[K] = []
        while self._heap and self._heap[0][0] <= now:
            at, _, key = heapq.heappop(self._heap)
            if self._scheduled.get(key) != at:
                continue  # a stale entry: an earlier deadline was set after it
            del self._scheduled[key]
            deadline = self._deadlines.get(key)
            if deadline is None:
                continue
            if deadline > now:
                self._schedule(key, deadline)
            else:
                del self._deadlines[key]
                due.append(key)
        self.earliest = self._heap[0][0] if self._heap else None
        return due

    def _schedule(self, key: K, deadline: DeadlineMillis) -> None:
        self._scheduled[key] = deadline
        self._arrivals += 1
        heapq.heappush(self._heap, (deadline, self._arrivals, key))
        self.earliest = self._heap[0][0]
        if len(self._heap) > _STALE_MIN and len(self._heap) > 2 * len(self._deadlines):
            self._sweep()

    def _sweep(self) -> None:
        """Drop stale entries. Otherwise distant deadlines would accumulate until their time."""
        self._heap = [
            entry
            for entry in self._heap
            if entry[2] in self._deadlines and self._scheduled.get(entry[2]) == entry[0]
        ]
        heapq.heapify(self._heap)
        self.earliest = self._heap[0][0] if self._heap else None
        self._scheduled = {key: at for at, _, key in self._heap}
