"""Batches syncs: everything that was written before a round starts shares its sync.

One round runs at a time. While it runs, the next one collects. A round also waits for further
iterations of the event loop while each brings more to sync, up to a limit: one sync costs as much
as several requests. The sync itself is the disk driver's; its completion is an input of the loop.

A failed sync is final: the operating system reports a lost page once, so a later sync could succeed
without the data being on disk. The node must stop.
"""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from kohort.log.sync_queue import PendingSync
from kohort.node.metrics import SYNC_SECONDS, Histogram

_COLLECTING_ITERATIONS_MAX: Final = 4
"""Iterations for which a round collects; bounds the wait of the first response in it."""


class Held(Protocol):
    """Something that waits for a sync."""

    def release(self) -> None: ...


class SyncDriver(Protocol):
    """Syncs files without blocking the loop, and reports to `NodeLoop.sync_finished`."""

    def start(self, files: Sequence[PendingSync]) -> None: ...


class Syncer:
    def __init__(self, driver: SyncDriver) -> None:
        self._driver = driver
        self.seconds = Histogram(SYNC_SECONDS)
        self._waiting: list[Held] = []
        self._running: list[Held] | None = None
        self._iterations = 0
        self._count_before = 0
        self._has_failed = False

    @property
    def is_idle(self) -> bool:
        return self._running is None and not self._waiting

    @property
    def is_collecting(self) -> bool:
        """Whether a round waits to be started by one of the next iterations."""
        return bool(self._waiting) and self._running is None and not self._has_failed

    def hold(self, held: Held) -> None:
        """Release it once everything written so far is synced."""
        self._waiting.append(held)

    def end_iteration(self, take_pending_syncs: Callable[[], Sequence[PendingSync]]) -> None:
        """Start a round, unless this iteration brought more to sync and may not be the last."""
        if not self.is_collecting:
            return
        count = len(self._waiting)
        if count > self._count_before and self._iterations < _COLLECTING_ITERATIONS_MAX:
            self._iterations += 1
            self._count_before = count
            return
        self._iterations = self._count_before = 0
        self._running, self._waiting = self._waiting, []
        self._driver.start(take_pending_syncs())

    def finish(self, seconds: float) -> None:
        """The running round is on disk."""
        assert self._running is not None, "no sync was started"
        self.seconds.add(seconds)
        released, self._running = self._running, None
        for held in released:
            held.release()

    def fail(self) -> None:
        """The running round failed: what waits is never released."""
        self._has_failed = True
        self._running = None
