"""The machine a node runs on, and each life of the node on it.

What `server` does with a loop, sockets and a thread is done here with the timeline, links and
appointments. The broker, its connections, its syncer and its log are the real ones.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from typing import Any, Final, Protocol, TypeVar, cast
from uuid import UUID

from kohort.log.catalog import Catalog
from kohort.log.errors import LogError, StorageError
from kohort.log.unsynced import Unsynced
from kohort.node import dispatch
from kohort.node.broker import Address, Broker
from kohort.node.config import Settings
from kohort.node.connection import Connection
from kohort.node.metrics import Figures
from kohort.node.request import Request
from kohort.node.syncer import Syncer
from kohort.node.topics import Topics
from kohort.sim.disk import Killed, Mount, Platters
from kohort.sim.network import Link
from kohort.sim.timeline import MS, Appointment, Timeline
from kohort.types import Millis, Uuid

T = TypeVar("T")

EPOCH_MS: Final = 1_700_000_000_000
"""When the world begins, by the node's clock."""

HOST, PORT = "node", 9092

_CLEANING_BUDGET_BYTES: Final = 256 * 1024
_BETWEEN_CLEANINGS_MS: Final = 20
_TURN: Final = 10
"""Microseconds until something is called soon."""


class Tap(Protocol):
    """Reads along at the node's sockets."""

    def received(self, link: Link, data: bytes) -> None: ...

    def sent(self, link: Link, data: bytes) -> None: ...


class Host(Protocol):
    """What a process needs of the machine it runs on."""

    timeline: Timeline
    clock: "WallClock"
    platters: Platters
    tap: Tap
    tell: Callable[..., None]

    def sync_duration(self) -> int: ...

    def load_duration(self) -> int: ...

    def fresh_uuid(self) -> UUID: ...

    def fresh_topic_id(self) -> Uuid: ...

    def loaded(self, process: "Process") -> None: ...

    def not_started(self, process: "Process", error: BaseException) -> None: ...

    def failed(self, process: "Process", error: BaseException) -> None: ...

    def died(self, process: "Process") -> None: ...


class WallClock:
    """The machine's clock: it may jump, and what the node reads never steps back in one life."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self.skew_ms = 0

    def read(self) -> int:
        return EPOCH_MS + self._timeline.now // MS + self.skew_ms


class Lifetime:
    """The node's clock: as SystemClock, over a simulated one."""

    def __init__(self, wall: WallClock) -> None:
        self._wall = wall
        self._last = Millis(0)

    def now(self) -> Millis:
        self._last = Millis(max(self._last, self._wall.read()))
        return self._last


class Transport:
    """What asyncio would give a connection to write to."""

    def __init__(self, link: Link, tap: Tap) -> None:
        self._link = link
        self._tap = tap
        self._is_closing = False

    def get_extra_info(self, name: str) -> object:
        return (self._link.owner, self._link.number) if name == "peername" else None

    def write(self, data: bytes) -> None:
        if not self._is_closing:
            self._tap.sent(self._link, data)
            self._link.answer(data)

    def is_closing(self) -> bool:
        return self._is_closing

    def pause_reading(self) -> None:
        self._link.to_server.pause(is_paused=True)

    def resume_reading(self) -> None:
        self._link.to_server.pause(is_paused=False)

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._link.dismiss()

    abort = close


class _Socket:
    """The node's end of a link: everything that arrives goes into the real connection."""

    def __init__(self, process: "Process", link: Link, connection: Connection) -> None:
        self._process = process
        self._link = link
        self._connection = connection

    def data_received(self, data: bytes) -> None:
        self._process.tap.received(self._link, data)
        self._process.enter(lambda: self._connection.data_received(data))

    def connection_lost(self) -> None:
        self._process.enter(lambda: self._connection.connection_lost(None))


class SyncThread(Executor):
    """A sync takes its time, and keeps what was written when it began."""

    def __init__(self, process: "Process", platters: Platters, duration: Callable[[], int]) -> None:
        self._process = process
        self._platters = platters
        self._duration = duration

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> "Future[T]":
        future: Future[T] = Future()
        marks = self._platters.mark()

        def finish() -> None:
            with self._process.mount.as_of(marks):
                try:
                    result = fn(*args, **kwargs)
                except Exception as error:  # as a thread hands it over
                    future.set_exception(error)
                    return
            future.set_result(result)

        self._process.later(self._duration(), finish)
        return future


class Process:
    """One life of the node, from its start to its end; as the connections' hub."""

    def __init__(self, machine: Host, settings: Settings) -> None:
        self._machine = machine
        self._timeline = machine.timeline
        self._settings = settings
        self._clock = Lifetime(machine.clock)
        self._connections: dict[Connection, None] = {}
        self._timer: Appointment | None = None
        self._armed_at: Millis | None = None
        self.tap = machine.tap
        self.mount = Mount(machine.platters)
        self.is_running = False
        self.is_stopping = False
        self.is_loaded = False
        self.request_max_bytes: int = settings["socket.request.max.bytes"]
        self.inflight_max: int = settings["kohort.connection.inflight.max"]

    # Starting and ending

    def start(self) -> None:
        self.is_running = True
        self.enter(self._start)

    def _start(self) -> None:
        settings, machine = self._settings, self._machine
        try:
            catalog, recovered = Catalog.open(
                self.mount, self._clock.now(), settings.topic_defaults(), cluster_id="simulated"
            )
        except StorageError as error:
            if not machine.platters.is_full:
                raise
            # Whoever has started it hears why, and makes room.
            machine.not_started(self, error)
            return
        for cut in recovered:
            machine.tell("mended", f"{cut.path}@{cut.position}", f"-{cut.bytes_cut}", cut.reason)
        self.catalog = catalog
        self.syncer: Syncer | None = None
        if settings.is_fsync:
            executor = SyncThread(self, machine.platters, machine.sync_duration)
            self.syncer = Syncer(self._take_unsynced, self._call_soon, self._fail, executor)
        topics = Topics(catalog, settings, machine.fresh_topic_id)
        self.broker = Broker(
            settings,
            topics,
            self.syncer,
            fresh_uuid=machine.fresh_uuid,
            call_soon=self._call_soon,
        )
        self.broker.address = Address(host=HOST, port=PORT)
        self._load(self.broker.load_groups(self._clock.now))
        self.later(self._housekeeping_ms * MS, self._keep_house)
        self.later(self._settings["connections.max.idle.ms"] * MS, self._close_idle)

    def end(self) -> None:
        """Nothing of this life happens any more."""
        self.is_running = False
        self.mount.die()

    def stop(self, then: Callable[[], None]) -> None:
        """In good order, as on SIGTERM."""
        self.is_stopping = True

        def finish() -> None:
            for connection in tuple(self._connections):
                connection.finish()
            try:
                self.catalog.close(self._clock.now())
            except StorageError as error:
                if not self._machine.platters.is_full:
                    raise
                self._machine.tell("gives-up", str(error))
            then()

        def begin() -> None:
            self.broker.shut_down(self._clock.now())
            if self.syncer is None:
                finish()
            else:
                self.syncer.after(finish)

        self.enter(begin)

    def enter(self, action: Callable[[], None]) -> None:
        """All that this process does, it does in here: a crash ends it wherever it is."""
        if not self.is_running:
            return
        try:
            action()
        except Killed:
            self._machine.died(self)

    def later(self, delay: int, action: Callable[[], None]) -> Appointment:
        return self._timeline.after(delay, lambda: self.enter(action))

    def _call_soon(self, then: Callable[[], None]) -> object:
        return self.later(_TURN, then)

    def _load(self, steps: Iterator[None]) -> None:
        try:
            is_done = next(steps, _DONE) is _DONE
        except LogError as error:
            self._fail(error)
            return
        if is_done:
            self.is_loaded = True
            self._machine.loaded(self)
            self._arm()
        else:
            self.later(self._machine.load_duration(), lambda: self._load(steps))

    def _take_unsynced(self) -> tuple[Unsynced, ...]:
        return self.broker.take_unsynced()

    def _fail(self, error: BaseException) -> None:
        self._machine.failed(self, error)

    # As the connections' hub

    @property
    def figures(self) -> Figures:
        return self.broker.figures

    def accept(self, link: Link) -> _Socket | None:
        if not self.is_running or self.is_stopping:
            return None
        transport = Transport(link, self.tap)
        connection = Connection(self)
        self.enter(lambda: connection.connection_made(cast(Any, transport)))
        return _Socket(self, link, connection)

    def handle(self, request: Request) -> None:
        dispatch.handle(self.broker, request, self._clock.now())
        self._arm()

    def handle_unsupported(self, frame: bytes) -> bytes | None:
        return dispatch.answer_unsupported(frame)

    def joined(self, connection: Connection) -> bool:
        self._connections[connection] = None
        return True

    def left(self, connection: Connection) -> None:
        self._connections.pop(connection, None)

    # Time

    def _arm(self) -> None:
        deadline = self.broker.next_deadline()
        if deadline is None or (self._armed_at is not None and self._armed_at <= deadline):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._armed_at = deadline
        delay_ms = max(0, deadline - self._clock.now())
        self._timer = self.later(delay_ms * MS, self._wake)

    def _wake(self) -> None:
        self._armed_at = self._timer = None
        self.broker.fire_due(self._clock.now())
        self._arm()

    @property
    def _housekeeping_ms(self) -> int:
        interval_ms: int = self._settings["log.retention.check.interval.ms"]
        return interval_ms

    def _keep_house(self) -> None:
        cleaned = self.catalog.clean(self._clock.now(), _CLEANING_BUDGET_BYTES)
        delay_ms = self._housekeeping_ms if cleaned.is_done else _BETWEEN_CLEANINGS_MS
        self.later(delay_ms * MS, self._keep_house)

    def _close_idle(self) -> None:
        for connection in tuple(self._connections):
            connection.close_if_idle()
        self.later(self._settings["connections.max.idle.ms"] * MS, self._close_idle)


_DONE: Final = object()
