"""Deadlines by key. Moving one later, which every heartbeat does, costs one dictionary write."""

import heapq
from typing import Final, Generic, TypeVar

from kohort.types import Millis

K = TypeVar("K")

_STALE_MIN: Final = 1000
"""Below so many entries it is not worth looking for those that mean nothing any more."""


class Timers(Generic[K]):
    """Set, moved and cancelled by key; due ones come out in the order of time, then of arrival.

    The heap may hold a deadline that has since moved later or away. It is looked at again when
    its old time comes, so a timer that keeps moving has one entry, not one per move.
    """

    def __init__(self) -> None:
        self._deadlines: dict[K, Millis] = {}
        self._scheduled: dict[K, Millis] = {}
        self._heap: list[tuple[Millis, int, K]] = []
        self._arrivals = 0

    def __len__(self) -> int:
        return len(self._deadlines)

    def set(self, key: K, deadline: Millis) -> None:
        self._deadlines[key] = deadline
        scheduled = self._scheduled.get(key)
        if scheduled is None or deadline < scheduled:
            self._schedule(key, deadline)

    def cancel(self, key: K) -> None:
        self._deadlines.pop(key, None)

    def next_deadline(self) -> Millis | None:
        """When to look again: never later than the next timer is due, at times earlier."""
        return self._heap[0][0] if self._heap else None

    def take_due(self, now: Millis) -> list[K]:
        due: list[K] = []
        while self._heap and self._heap[0][0] <= now:
            at, _, key = heapq.heappop(self._heap)
            if self._scheduled.get(key) != at:
                continue  # an entry that a later, earlier-set one has replaced
            del self._scheduled[key]
            deadline = self._deadlines.get(key)
            if deadline is None:
                continue
            if deadline > now:
                self._schedule(key, deadline)
            else:
                del self._deadlines[key]
                due.append(key)
        return due

    def _schedule(self, key: K, deadline: Millis) -> None:
        self._scheduled[key] = deadline
        self._arrivals += 1
        heapq.heappush(self._heap, (deadline, self._arrivals, key))
        if len(self._heap) > _STALE_MIN and len(self._heap) > 2 * len(self._deadlines):
            self._sweep()

    def _sweep(self) -> None:
        """Drop what was cancelled or has moved, or far deadlines would pile up until their time."""
        self._heap = [
            entry
            for entry in self._heap
            if entry[2] in self._deadlines and self._scheduled.get(entry[2]) == entry[0]
        ]
        heapq.heapify(self._heap)
        self._scheduled = {key: at for at, _, key in self._heap}
