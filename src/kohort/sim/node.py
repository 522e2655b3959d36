"""One process of the node on a simulated host.

It replaces sockets, threads and the clock by links and the scheduler. The event loop, the broker,
its connections and its log are the real ones.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol
from uuid import UUID

from kohort.coordinator.events import GroupEvent
from kohort.log.catalog import Catalog
from kohort.log.errors import LogError, StorageError
from kohort.log.sync_queue import PendingSync
from kohort.node.broker import Address, Broker
from kohort.node.config import BrokerConfig
from kohort.node.connection import Connection
from kohort.node.events_topic import EventWriter
from kohort.node.fetch_purgatory import FetchPurgatory
from kohort.node.loop import NodeLoop
from kohort.node.syncer import Syncer
from kohort.node.topics import Topics
from kohort.sim.disk import DiskImage, Killed, Mount
from kohort.sim.network import Link
from kohort.types import DeadlineMillis, Millis, Uuid
from kohort.virtual_time.scheduler import MS, ScheduledCall, Scheduler

EPOCH_MS: Final = 1_700_000_000_000
"""The node's clock at the start of a run."""

HOST, PORT = "node", 9092

_CLEANING_BUDGET_BYTES: Final = 256 * 1024
_CLEANING_PAUSE_MS: Final = 20
_ITERATION: Final = 10
"""Microseconds until the next iteration, if there is work for one."""


class ByteTap(Protocol):
    """Sees all bytes that the node receives and sends."""

    def received(self, link: Link, data: bytes) -> None: ...

    def sent(self, link: Link, data: bytes) -> None: ...


class HostInterface(Protocol):
    """What a process uses of its host."""

    scheduler: Scheduler
    clock: "WallClock"
    disk_image: DiskImage
    tap: ByteTap
    log: Callable[..., None]

    def sync_duration(self) -> int: ...

    def load_duration(self) -> int: ...

    def fresh_uuid(self) -> UUID: ...

    def fresh_topic_id(self) -> Uuid: ...

    def loaded(self, process: "NodeProcess") -> None: ...

    def not_started(self, process: "NodeProcess", error: BaseException) -> None: ...

    def failed(self, process: "NodeProcess", error: BaseException) -> None: ...

    def resumed(self, suspended: int) -> None: ...

    def groups_changed(self, events: list[GroupEvent]) -> None: ...

    def exited(self, process: "NodeProcess") -> None: ...


class WallClock:
    """The host's wall clock. It may be set, forward or back."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.skew_ms = 0

    def read(self) -> int:
        return EPOCH_MS + self._scheduler.now // MS + self.skew_ms


class ProcessClock:
    """The node's clocks, like SystemClock but over simulated time.

    The monotonic clock goes on while the process is suspended, as after SIGSTOP.
    """

    def __init__(self, wall: WallClock, scheduler: Scheduler) -> None:
        self._wall = wall
        self._scheduler = scheduler

    def now(self) -> Millis:
        return Millis(self._wall.read())

    def monotonic(self) -> float:
        return self._scheduler.now / (1000 * MS)


class LinkTransport:
    """The transport of a node connection, over a link."""

    def __init__(self, link: Link, tap: ByteTap) -> None:
        self._link = link
        self._tap = tap
        self._is_closing = False

    def write(self, data: bytes) -> None:
        if not self._is_closing:
            self._tap.sent(self._link, data)
            self._link.send_to_client(data)

    def is_closing(self) -> bool:
        return self._is_closing

    def pause_reading(self) -> None:
        self._link.to_server.pause(is_paused=True)

    def resume_reading(self) -> None:
        self._link.to_server.pause(is_paused=False)

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._link.close_by_server()

    abort = close


class _Socket:
    """The node's endpoint of a link: feeds data to the real connection.

    While the process is suspended, the host accepts connections and data for it.
    """

    def __init__(self, process: "NodeProcess", link: Link) -> None:
        self._process = process
        self._link = link
        self._connection: Connection | None = None

    def open(self) -> bool:
        """The process accepts the connection, or refuses it."""
        process, link = self._process, self._link
        self._connection = process.connect(link)
        return self._connection is not None

    def open_or_close(self) -> None:
        if not self.open():
            self._link.close_by_server()

    def data_received(self, data: bytes) -> None:
        self._process.enter(lambda: self._read(data))

    def _read(self, data: bytes) -> None:
        if self._connection is not None:
            self._process.tap.received(self._link, data)
            self._process.receive(self._connection, data)

    def connection_lost(self) -> None:
        self._process.enter(self._lose)

    def _lose(self) -> None:
        if self._connection is not None:
            self._connection.lost()


class SimulatedSync:
    """A sync takes time and covers only data that was written before it started."""

    def __init__(
        self, process: "NodeProcess", disk_image: DiskImage, duration: Callable[[], int]
    ) -> None:
        self._process = process
        self._disk_image = disk_image
        self._duration = duration

    def start(self, files: Sequence[PendingSync]) -> None:
        marks = self._disk_image.mark()
        duration = self._duration()

        def finish() -> None:
            try:
                with self._process.mount.as_of(marks):
                    for file in files:
                        file.sync()
            except Exception as error:  # as the sync thread does
                self._process.sync_failed(error)
            else:
                self._process.sync_finished(duration / (1000 * MS))

        self._process.later(duration, finish)


class ObservedEventWriter(EventWriter):
    """Shows the checkers what it writes to `__kohort_events`."""

    def __init__(
        self,
        topics: Topics,
        settings: BrokerConfig,
        purgatory: FetchPurgatory,
        observe: Callable[[list[GroupEvent]], None],
    ) -> None:
        super().__init__(topics, settings, purgatory)
        self._observe = observe

    def write(self, events: list[GroupEvent]) -> None:
        self._observe(events)
        super().write(events)


class NodeProcess:
    """One process of the node; drives the real event loop."""

    def __init__(self, host: HostInterface, settings: BrokerConfig) -> None:
        self._host = host
        self._scheduler = host.scheduler
        self._settings = settings
        self._clock = ProcessClock(host.clock, host.scheduler)
        self._timer: ScheduledCall | None = None
        self._armed_at: DeadlineMillis | None = None
        self._fed: dict[Connection, None] = {}
        self._is_iteration_scheduled = False
        self._backlog: deque[Callable[[], object]] = deque()
        self._suspended_at: int | None = None
        self._suspended_until = 0
        self.tap = host.tap
        self.mount = Mount(host.disk_image)
        self.is_running = False

    @property
    def broker(self) -> Broker:
        return self.loop.broker

    @property
    def is_loaded(self) -> bool:
        return self.is_running and self.loop.is_loaded

    @property
    def is_stopping(self) -> bool:
        return self.loop.is_stopping

    # Starting and ending

    def start(self) -> None:
        self.is_running = True
        self.enter(self._start)

    def _start(self) -> None:
        settings, host = self._settings, self._host
        try:
            catalog, recovered = Catalog.open(
                self.mount, self._clock.now(), settings.topic_defaults(), cluster_id="simulated"
            )
        except StorageError as error:
            if not host.disk_image.is_full:
                raise
            # The host frees space and starts another process.
            host.not_started(self, error)
            return
        for cut in recovered:
            host.log(
                "recovered", f"{cut.path}@{cut.position}", f"-{cut.bytes_truncated}", cut.reason
            )
        self.catalog = catalog
        self.syncer: Syncer | None = None
        if settings.is_fsync:
            self.syncer = Syncer(SimulatedSync(self, host.disk_image, host.sync_duration))
        topics = Topics(catalog, settings, host.fresh_topic_id)
        broker = Broker(settings, topics, self.syncer, fresh_uuid=host.fresh_uuid)
        broker.address = Address(host=HOST, port=PORT)
        broker.events = ObservedEventWriter(topics, settings, broker.purgatory, host.groups_changed)
        self.loop = NodeLoop(broker, self, self._clock)
        self.loop.start()
        self._arm()
        self._load()
        self.later(self._cleaning_interval_ms * MS, self._clean)
        self.later(settings["connections.max.idle.ms"] * MS, self._close_idle)

    def end(self) -> None:
        """Run nothing of this process any more."""
        self.is_running = False
        self._backlog.clear()
        self.mount.die()

    def stop(self, then: Callable[[], None]) -> None:
        """Shut down cleanly, as on SIGTERM."""

        def finish() -> None:
            for connection in tuple(self.loop.connections):
                connection.finish()
            try:
                self.catalog.close(self._clock.now())
            except StorageError as error:
                if not self._host.disk_image.is_full:
                    raise
                self._host.log("gives-up", str(error))
            then()

        def begin() -> None:
            self.loop.shut_down()
            self._iterate()
            if self.syncer is None:
                finish()
            else:
                self.syncer.hold(_SyncWaiter(lambda: self.later(_ITERATION, finish)))
                self._schedule_iteration()

        self.enter(begin)

    def enter(self, action: Callable[[], object]) -> None:
        """Run an action of this process, now or when it is resumed. A crash may interrupt it
        anywhere."""
        if not self.is_running:
            return
        if self._suspended_at is not None:
            self._backlog.append(action)
            return
        try:
            action()
        except Killed:
            self._host.exited(self)

    def later(self, delay: int, action: Callable[[], object]) -> ScheduledCall:
        return self._scheduler.after(delay, lambda: self.enter(action))

    # Suspending

    def suspend(self, for_ms: int) -> None:
        """Run nothing for this time, as between SIGSTOP and SIGCONT."""
        scheduler = self._scheduler
        if self._suspended_at is None:
            self._suspended_at = scheduler.now
        self._suspended_until = max(self._suspended_until, scheduler.now + for_ms * MS)
        scheduler.after(for_ms * MS, self._resume)

    def _resume(self) -> None:
        """Run what has become due meanwhile, in that order."""
        now, since = self._scheduler.now, self._suspended_at
        if not self.is_running or since is None or now < self._suspended_until:
            return
        self._host.resumed(now - since)
        self._suspended_at = None
        while self._backlog:
            self.enter(self._backlog.popleft())

    # Iterations

    def accept(self, link: Link) -> _Socket | None:
        if not self.is_running or self.is_stopping:
            return None
        socket = _Socket(self, link)
        if self._suspended_at is not None:
            self.enter(socket.open_or_close)
            return socket
        return socket if socket.open() else None

    def connect(self, link: Link) -> Connection | None:
        return self.loop.connect(LinkTransport(link, self.tap), link.owner, link.number)

    def receive(self, connection: Connection, data: bytes) -> None:
        """Data that arrives at almost the same time is handled in one iteration."""
        connection.feed(data)
        self._fed[connection] = None
        self._schedule_iteration()

    def send(self) -> None:
        """Nothing to do: links accept all data at once."""

    def _schedule_iteration(self) -> None:
        if not self._is_iteration_scheduled:
            self._is_iteration_scheduled = True
            self.later(_ITERATION, self._on_scheduled)

    def _on_scheduled(self) -> None:
        self._is_iteration_scheduled = False
        fed, self._fed = self._fed, {}
        self._iterate(fed)

    def _on_timer(self) -> None:
        self._armed_at = self._timer = None
        self.loop.timers_due()
        self._iterate()

    def _iterate(self, fed: Iterable[Connection] = ()) -> None:
        has_work = self.loop.iterate(fed)
        if self.loop.internal_error is not None:
            raise self.loop.internal_error
        if has_work:
            self._schedule_iteration()
        self._arm()

    def _arm(self) -> None:
        deadline, armed_at = self.loop.next_deadline(), self._armed_at
        if armed_at is not None and (deadline is None or armed_at <= deadline):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._armed_at, delay_s = self.loop.next_timer()
        self._timer = self.later(round(delay_s * 1000) * MS, self._on_timer)

    def sync_finished(self, seconds: float) -> None:
        self.loop.sync_finished(seconds)
        self._iterate()

    def sync_failed(self, error: BaseException) -> None:
        assert self.syncer is not None, "nothing was synced"
        self.syncer.fail()
        self._fail(error)

    def _fail(self, error: BaseException) -> None:
        self._host.failed(self, error)

    # Work between iterations

    def _load(self) -> None:
        try:
            self.loop.load()
        except LogError as error:
            self._fail(error)
            return
        if self.loop.is_loaded:
            self._host.loaded(self)
            self._iterate()
        else:
            self.later(self._host.load_duration(), self._load)

    @property
    def _cleaning_interval_ms(self) -> int:
        interval_ms: int = self._settings["log.retention.check.interval.ms"]
        return interval_ms

    def _clean(self) -> None:
        is_done = self.loop.clean(_CLEANING_BUDGET_BYTES)
        delay_ms = self._cleaning_interval_ms if is_done else _CLEANING_PAUSE_MS
        self.later(delay_ms * MS, self._clean)

    def _close_idle(self) -> None:
        self.loop.close_idle()
        self.later(self._settings["connections.max.idle.ms"] * MS, self._close_idle)


class _SyncWaiter:
    """Waits for a sync, as a response does."""

    def __init__(self, then: Callable[[], object]) -> None:
        self._then = then

    def release(self) -> None:
        self._then()
