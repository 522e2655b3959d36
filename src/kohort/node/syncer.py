"""One sync for many: whatever was written meanwhile shares the next one.

A thread does the waiting. While it syncs one round, the next one gathers, and goes on gathering
for as long as every turn of the loop brings more: a sync costs as much as several requests, so a
crowd that comes together is to share one. A failed sync is not survivable, since nobody knows what
is on the disk after it: the node is told to stop.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from time import perf_counter
from typing import Final, Protocol

from kohort.node.metrics import SYNC_SECONDS, Histogram

_TURNS_MAX: Final = 4
"""For which a round gathers; protects those who came first from waiting for an endless stream."""


class Syncable(Protocol):
    def sync(self) -> None: ...


class Syncer:
    """Gathers what is unsynced and who waits for it; calls back on the thread that asked."""

    def __init__(
        self,
        take_unsynced: Callable[[], Iterable[Syncable]],
        call_soon: Callable[[Callable[[], None]], object],
        on_failure: Callable[[BaseException], None],
        executor: Executor | None = None,
    ) -> None:
        self._take_unsynced = take_unsynced
        self._call_soon = call_soon
        self._on_failure = on_failure
        self._executor = executor or ThreadPoolExecutor(1, "sync")
        self.seconds = Histogram(SYNC_SECONDS)
        self._waiting: list[Callable[[], None]] = []
        self._is_running = False
        self._is_requested = False
        self._has_failed = False

    @property
    def is_idle(self) -> bool:
        return not self._is_running and not self._waiting

    def after(self, then: Callable[[], None]) -> None:
        """Run `then` once everything written so far is on the disk."""
        self._waiting.append(then)
        self._request()

    def close(self) -> None:
        self._executor.shutdown(wait=True)

    def _request(self) -> None:
        if self._waiting and not self._is_running and not self._is_requested:
            self._is_requested = True
            self._call_soon(lambda: self._gather(_TURNS_MAX, 0))

    def _gather(self, turns: int, count_before: int) -> None:
        """At the end of a turn of the loop: whoever came in it shares the sync."""
        count = len(self._waiting)
        if turns and count > count_before:
            self._call_soon(lambda: self._gather(turns - 1, count))
        else:
            self._is_requested = False
            self._start()

    def _start(self) -> None:
        if self._is_running or self._has_failed or not self._waiting:
            return
        files = tuple(self._take_unsynced())
        waiting, self._waiting = self._waiting, []
        self._is_running = True
        future = self._executor.submit(_sync_all, files)
        future.add_done_callback(lambda done: self._call_soon(lambda: self._finish(done, waiting)))

    def _finish(self, done: "Future[float]", waiting: list[Callable[[], None]]) -> None:
        self._is_running = False
        error = done.exception()
        if error is not None:
            # Another sync might succeed and mean nothing: the system tells of a lost page once.
            self._has_failed = True
            self._on_failure(error)
            return
        self.seconds.add(done.result())
        for then in waiting:
            then()
        self._request()


def _sync_all(files: tuple[Syncable, ...]) -> float:
    """Returns how many seconds it took."""
    began = perf_counter()
    for file in files:
        file.sync()
    return perf_counter() - began
