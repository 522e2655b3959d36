"""Syncs files on a thread of its own, so that the event loop does not wait for the disk."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from time import monotonic, perf_counter, sleep
from typing import Final, Protocol

from kohort.log.errors import OutOfResources
from kohort.log.sync_queue import PendingSync
from kohort.node.storage_error_log import StorageErrorLog
from kohort.types import Millis

RETRY_S: Final = 0.2
"""The pause before an operation for which there was no descriptor or memory is repeated."""


class SyncOwner(Protocol):
    def sync_finished(self, future: "Future[float]", /) -> None:
        """Called on the event loop. The result is how many seconds the sync took."""


class SyncThread:
    """The result of a sync comes back to the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, server: SyncOwner) -> None:
        self._loop = loop
        self._server = server
        self._executor = ThreadPoolExecutor(1, "sync")
        self.take_delay: Callable[[], float] | None = None
        """Returns how many seconds longer the next sync takes, in tests."""

    def start(self, files: Sequence[PendingSync]) -> None:
        if self.take_delay is not None:
            self._executor.submit(sleep, self.take_delay())
        future = self._executor.submit(sync_all, files)
        future.add_done_callback(self._finished)

    def _finished(self, future: "Future[float]") -> None:
        self._loop.call_soon_threadsafe(self._server.sync_finished, future)

    def close(self) -> None:
        self._executor.shutdown(wait=True)


def sync_all(files: Sequence[PendingSync]) -> float:
    """Return how many seconds it took."""
    began = perf_counter()
    for file in files:
        _sync_one(file)
    return perf_counter() - began


def _sync_one(file: PendingSync) -> None:
    """Wait while the operating system has no descriptor or memory: nothing was synced then, so it
    is not a failed sync."""
    log = StorageErrorLog()
    while True:
        try:
            file.sync()
        except OutOfResources as error:
            log.note(error)
            log.write(Millis(round(monotonic() * 1000)))
            sleep(RETRY_S)
        else:
            return


class AwaitedSync:
    """Waits for a sync, or for its failure."""

    def __init__(self) -> None:
        self.event = asyncio.Event()

    def release(self) -> None:
        self.event.set()
