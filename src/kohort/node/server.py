"""The node on a loop: sockets, timers, the sync thread, and an orderly start and stop.

Everything that decides is in the broker; this file only carries bytes and time to it.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kohort.log.catalog import Catalog
from kohort.log.errors import LogError
from kohort.log.limits import Limits as LogLimits
from kohort.log.unsynced import Unsynced
from kohort.node import dispatch, journal
from kohort.node.broker import Address, Broker
from kohort.node.clock import SystemClock
from kohort.node.config import Settings
from kohort.node.connection import Connection
from kohort.node.metrics import Figures
from kohort.node.request import Request
from kohort.node.sockets import Sockets
from kohort.node.syncer import Syncer
from kohort.node.topics import Topics
from kohort.types import Millis

if TYPE_CHECKING:
    from kohort.node.metrics_page import MetricsPage

_CHECKPOINT_INTERVAL_MS: Final = 30_000
_CLEANING_BUDGET_BYTES: Final = 6 * 1024
_BETWEEN_CLEANINGS_S: Final = 0.0006
"""Cleaning has a share of the loop while there is work, in pieces that nobody has to wait long for:
some tenths of every millisecond."""


class CannotStart(Exception):
    """The node cannot run here; one sentence says why."""


class GaveUp(Exception):
    """The node had to stop, as it could promise nothing any more; one sentence says why."""


_LAST_WORDS_S: Final = 1.0
_BETWEEN_LOOKS_S: Final = 0.005


class Server:
    """One node: `start`, then `run` until told to stop, then `stop`."""

    def __init__(self, settings: Settings, data: Path) -> None:
        self._settings = settings
        self._data = data
        self._clock = SystemClock()
        self._connections: set[Connection] = set()
        self._is_stopping = False
        self._armed_at: Millis | None = None
        self._is_arming = False
        self._timer: asyncio.TimerHandle | None = None
        self._failure: GaveUp | None = None
        self._metrics_page: MetricsPage | None = None
        self.metrics_address: Address | None = None
        self.stopping = asyncio.Event()
        self.request_max_bytes: int = settings["socket.request.max.bytes"]
        self.inflight_max: int = settings["kohort.connection.inflight.max"]

    # Starting and stopping

    async def start(self, host: str, port: int, *, metrics: Address | None = None) -> Address:
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(self._notice)
        now = self._clock.now()
        catalog, recovered = Catalog.open(
            self._data,
            now,
            self._settings.topic_defaults(),
            limits=LogLimits(producer_id_expiration_ms=self._settings["producer.id.expiration.ms"]),
        )
        for cut in recovered:
            journal.warn(
                "tail-cut",
                path=cut.path,
                position=cut.position,
                bytes=cut.bytes_cut,
                reason=cut.reason,
            )
        self._catalog = catalog
        syncer = None
        if self._settings.is_fsync:
            syncer = Syncer(self._take_unsynced, self._call_soon, self._fail)
        self._syncer = syncer
        topics = Topics(catalog, self._settings)
        self._sockets = Sockets(self._loop, lambda: Connection(self))
        self.broker = Broker(
            self._settings,
            topics,
            syncer,
            call_soon=self._sockets.soon,
            call_afterwards=self._sockets.afterwards,
        )
        try:
            port = self._sockets.listen(host, port)
        except (OSError, UnicodeError) as error:
            self._sockets.close()
            self._close_files()
            raise CannotStart(f"cannot listen on {host}:{port}: {_reason(error)}") from error
        if metrics is not None:
            await self._serve_metrics(metrics)
        self.broker.address = self._advertised(host, port)
        self._load(self.broker.load_groups(self._clock.now))
        self._loop.call_later(self._housekeeping_interval, self._keep_house)
        self._loop.call_later(self._settings["connections.max.idle.ms"] / 1000, self._close_idle)
        return Address(host=host, port=port)

    async def run(self) -> None:
        """Until somebody sets `stopping`, or a sync fails and nothing can be promised any more."""
        await self.stopping.wait()

    async def stop(self) -> None:
        self._is_stopping = True
        self._sockets.stop_listening()
        if self._metrics_page is not None:
            self._metrics_page.stop()
        now = self._clock.now()
        self.broker.shut_down(now)
        if self._syncer is not None and self._failure is None:
            done = asyncio.Event()
            self._syncer.after(done.set)
            await done.wait()
        for connection in tuple(self._connections):
            connection.finish()
        await self._see_off()
        if self._timer is not None:
            self._timer.cancel()
        self._close_files()
        if self._failure is not None:
            raise self._failure

    async def _see_off(self) -> None:
        """Answers that are on their way get there, if they are read within a second."""
        end = self._loop.time() + _LAST_WORDS_S
        while self._sockets.open and self._loop.time() < end:
            await asyncio.sleep(_BETWEEN_LOOKS_S)
        self._sockets.close()
        await asyncio.sleep(0)

    async def _serve_metrics(self, asked: Address) -> None:
        # Imported only where it is wanted: Prometheus' library takes a while to load.
        from kohort.node.metrics_page import MetricsPage  # noqa: PLC0415

        page = MetricsPage(self.broker)
        try:
            port = await page.start(asked.host, asked.port)
        except (OSError, UnicodeError) as error:
            self._sockets.close()
            self._close_files()
            where = f"{asked.host}:{asked.port}"
            raise CannotStart(f"cannot serve metrics on {where}: {_reason(error)}") from error
        self._metrics_page = page
        self.metrics_address = Address(host=asked.host, port=port)
        journal.say("metrics-served", address=f"{asked.host}:{port}")

    def _close_files(self) -> None:
        if self._syncer is not None:
            self._syncer.close()
        if self._failure is None:
            self._catalog.close(self._clock.now())
        else:
            self._catalog.abandon()

    def _advertised(self, host: str, port: int) -> Address:
        given: str = self._settings["advertised.listeners"]
        if not given:
            return Address(host=host, port=port)
        name, _, number = given.rpartition("//")[2].rpartition(":")
        return Address(host=name, port=int(number))

    # As the connections' hub

    @property
    def figures(self) -> Figures:
        return self.broker.figures

    def handle(self, request: Request) -> None:
        dispatch.handle(self.broker, request, self._clock.now())
        if not self._is_arming:
            # Many may be taken up in one turn: deadlines are looked at once, at its end.
            self._is_arming = True
            self._sockets.afterwards(self._arm_late)

    def handle_unsupported(self, frame: bytes) -> bytes | None:
        return dispatch.answer_unsupported(frame)

    def joined(self, connection: Connection) -> bool:
        if self._is_stopping:
            return False
        if len(self._connections) >= self._settings["max.connections"]:
            journal.warn("connection-refused", peer=connection.peer, reason="max.connections")
            self.figures.connections_refused += 1
            return False
        self._connections.add(connection)
        self.figures.connections_opened += 1
        self.figures.connections = len(self._connections)
        return True

    def left(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self.figures.connections = len(self._connections)

    # Time

    def _arm_late(self) -> None:
        self._is_arming = False
        self._arm()

    def _arm(self) -> None:
        """One timer for the earliest deadline; a later one is found when this one fires."""
        deadline = self.broker.next_deadline()
        if deadline is None or (self._armed_at is not None and self._armed_at <= deadline):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._armed_at = deadline
        delay_ms = max(0, deadline - self._clock.now())
        self._timer = self._loop.call_later(delay_ms / 1000, self._wake)

    def _wake(self) -> None:
        self._armed_at = self._timer = None
        self.broker.fire_due(self._clock.now())
        self._arm()

    def _load(self, steps: Iterator[None]) -> None:
        """One chunk of history per turn of the loop: clients are answered in between."""
        try:
            is_done = next(steps, _DONE) is _DONE
        except LogError as error:
            self._fail(error)
            return
        if is_done:
            journal.say("groups-loaded", groups=len(self.broker.groups.coordinator.groups))
            self._arm()
        else:
            self._loop.call_soon(self._load, steps)

    @property
    def _housekeeping_interval(self) -> float:
        # Not only retention waits for it: it also moves the point a recovery begins from.
        interval_ms: int = self._settings["log.retention.check.interval.ms"]
        return min(interval_ms, _CHECKPOINT_INTERVAL_MS) / 1000

    def _keep_house(self) -> None:
        """A little at a time: compacting a large log at once would keep every client waiting."""
        cleaned = self._catalog.clean(self._clock.now(), _CLEANING_BUDGET_BYTES)
        if cleaned.failure is not None:
            journal.warn("checkpoint-failed", reason=cleaned.failure)
        delay_s = self._housekeeping_interval if cleaned.is_done else _BETWEEN_CLEANINGS_S
        self._loop.call_later(delay_s, self._keep_house)

    def _close_idle(self) -> None:
        for connection in tuple(self._connections):
            connection.close_if_idle()
        self._loop.call_later(self._settings["connections.max.idle.ms"] / 1000, self._close_idle)

    # Threads

    def _take_unsynced(self) -> tuple[Unsynced, ...]:
        return self.broker.take_unsynced()

    def _call_soon(self, then: Callable[[], None]) -> object:
        return self._loop.call_soon_threadsafe(then)

    def _fail(self, error: BaseException) -> None:
        """What the disk holds is no longer known, or cannot be read: nothing can be promised."""
        journal.warn("disk-failed", reason=error)
        self._give_up(f"the disk failed: {error}")

    def _notice(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """An error nobody has caught. One of ours is a broken invariant: nothing else may run."""
        loop.default_exception_handler(context)
        error = context.get("exception")
        if error is not None and not isinstance(error, OSError):
            self._give_up(f"an error that should not be: {error!r}")

    def _give_up(self, reason: str) -> None:
        self._failure = self._failure or GaveUp(reason)
        self.stopping.set()


def _reason(error: OSError | UnicodeError) -> str:
    """Without what asyncio adds, which names the address a second time."""
    if isinstance(error, UnicodeError):
        return "no host can have that name"
    if isinstance(error, socket.gaierror) or error.errno is None:
        return error.strerror or str(error)
    return os.strerror(error.errno)


_DONE: Final = object()
