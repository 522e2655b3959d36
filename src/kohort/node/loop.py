"""The node's event loop, without sockets, threads and clocks: one written order of effects.

`NodeLoop.iterate` is one iteration. Everything that could ask the node for more work during an
iteration (a completed fetch whose connection has another request, a finished sync, a due timer) is
an input of a later stage or of the next iteration. Nothing calls back into request handling.

The loop's three seams are its transport, its disk (the sync driver and the catalog) and its clock.
`server` drives it with sockets and threads, `sim.node` with simulated ones.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, Protocol

from kohort.coordinator.commands import Command
from kohort.node import dispatch, log_events
from kohort.node.broker import Broker
from kohort.node.clock import Clock
from kohort.node.connection import Connection, ConnectionTransport
from kohort.node.deadline_clock import TICK_MS, DeadlineClock, DeadlineTime
from kohort.node.metrics import Metrics
from kohort.node.request import WROTE_FILES, Request, SlicedWork
from kohort.node.request_memory import RequestMemory
from kohort.node.runtime import InconsistentState
from kohort.types import DeadlineMillis, Millis
from kohort.wire.errors import MalformedMessage, UnsupportedVersion

_CHECKPOINT_INTERVAL_MS: Final = 30_000

_LARGE_BYTES_MAX: Final = 16 * 1024 * 1024
"""Bytes of large responses made in one iteration; bounds the memory that waits to be sent."""

_SUSPENDED_S_MIN: Final = 1.0
"""Shorter gaps are normal on a busy machine, and neither logged nor counted."""

_SLICES_MAX: Final = 16
_SLICES_MIN: Final = 4
"""Slices of long work in one iteration, of all connections together: a few milliseconds. The second
is for earlier work, if requests that have just come have used up the first."""


class NodeTransport(Protocol):
    """The transports of all connections."""

    def send(self) -> None:
        """Send the data written since the last call."""


class NodeLoop:
    def __init__(
        self,
        broker: Broker,
        network: NodeTransport,
        clock: Clock,
        connections_max: int | None = None,
        *,
        group_deadlines: DeadlineTime | None = None,
    ) -> None:
        """`connections_max` is what the operating system allows, if that is known.

        `group_deadlines` is the time of group timers if it is moved by hand. Its owner calls
        `timers_due` after it has moved it.
        """
        self.broker = broker
        self.metrics: Metrics = broker.metrics
        self._network = network
        self._clock = clock
        self._deadline_clock = DeadlineClock(clock.monotonic())
        self._group_deadlines: DeadlineTime = group_deadlines or self._deadline_clock
        self._group_timers, self._fetch_timers = broker.groups.timers, broker.purgatory.timers
        self.next_deadline = broker.next_deadline
        if group_deadlines is not None:
            self.next_deadline = self._next_deadline_by_itself
        settings = broker.settings
        self.request_max_bytes: int = settings["socket.request.max.bytes"]
        self._request_items_max: int = settings["kohort.request.items.max"]
        self.request_memory = RequestMemory(settings["queued.max.request.bytes"])
        self.inflight_max: int = settings["kohort.connection.inflight.max"]
        self._connections_max: int = settings["max.connections"]
        if connections_max is not None:
            self._connections_max = min(self._connections_max, connections_max)
        self._connections_per_host_max: int = settings["max.connections.per.ip"]
        self._connections_by_host: Counter[str] = Counter()
        self.connections: dict[Connection, None] = {}
        self._due: list[Command] = []
        self._to_flush: list[Connection] = []
        self.flush_later = self._to_flush.append
        self._to_resume: dict[Connection, None] = {}
        self._large_bytes = 0
        self._sliced: dict[Request, SlicedWork] = {}
        """Requests whose work is not finished, in the order of their next slices."""
        self._slices_left = 0
        self.internal_error: Exception | None = None
        """The last internal error."""
        self._loading: Iterator[None] | None = None
        self.is_loaded = False
        self.is_stopping = False
        self.iteration_started_at = 0.0
        self._now = Millis(0)

    # One iteration

    def iterate(self, fed: Iterable[Connection] = ()) -> bool:
        """Run one iteration; `fed` are the connections that received bytes since the last one.

        Return whether the next iteration is due at once, even if nothing is received.
        """
        broker = self.broker
        groups, purgatory, syncer = broker.groups, broker.purgatory, broker.syncer
        # 1. Receive and decide.
        self._receive(fed)
        # 2. Append the records that were deferred, and apply them.
        if groups.deferred:
            groups.append_deferred()
        # 3. Complete fetches.
        if purgatory.ready:
            purgatory.complete(_LARGE_BYTES_MAX - self._large_bytes)
        # 4. Send the responses that need no sync.
        if self._to_flush:
            self._send()
        # 5. Write events.
        if groups.events or groups.appended:
            self._write_events()
        if broker.storage_errors.has_new:
            broker.storage_errors.write(self._now)
        # 6. Request a sync.
        if syncer is not None:
            syncer.end_iteration(broker.take_pending_syncs)
            if syncer.is_collecting:
                return True
        return bool(self._to_resume or self._sliced or purgatory.ready)

    @property
    def has_input(self) -> bool:
        """Whether the next iteration has something to do, even if nothing is received."""
        groups, purgatory = self.broker.groups, self.broker.purgatory
        return bool(
            self._due
            or self._to_resume
            or self._sliced
            or self._to_flush
            or groups.deferred
            or groups.events
            or groups.appended
            or purgatory.ready
        )

    def _receive(self, fed: Iterable[Connection]) -> None:
        """Handle due timers, requests of resumed and fed connections, and slices of long work."""
        self._read_clock()
        self._large_bytes = 0
        self._slices_left = _SLICES_MAX
        if self._due:
            self._fire_timers()
        if self._to_resume:
            resumed, self._to_resume = self._to_resume, {}
            self._handle_requests(resumed)
        self._handle_requests(fed)
        if self._sliced:
            self._run_slices(max(_SLICES_MIN, self._slices_left))

    def _read_clock(self) -> None:
        """One reading for the whole iteration, or for what is done between iterations."""
        clock, deadline_clock = self._clock, self._deadline_clock
        self._now = clock.now()
        self.iteration_started_at = monotonic = clock.monotonic()
        uncounted_s = deadline_clock.advance(monotonic)
        if uncounted_s > _SUSPENDED_S_MIN:
            self._report_suspension(uncounted_s)
        self._fetch_timers.now = deadline_clock.now
        self._group_timers.now = self._group_deadlines.now

    def _report_suspension(self, seconds: float) -> None:
        self.metrics.suspensions += 1
        self.metrics.suspended_seconds += seconds
        log_events.warning("loop-suspended", seconds=f"{seconds:.1f}")

    def _handle_requests(self, connections: Iterable[Connection]) -> None:
        for connection in connections:
            if self._large_bytes > _LARGE_BYTES_MAX:
                self.resume_later(connection)
                continue
            try:
                connection.handle_requests()
            except InconsistentState:
                raise
            except Exception as error:  # it affects only this connection
                connection.fail(error)

    def _run_slices(self, count: int) -> None:
        """Run that many slices, of one request after the other."""
        self._slices_left = count
        while self._sliced and self._slices_left > 0:
            self._slices_left -= 1
            request = next(iter(self._sliced))
            try:
                self._run_slice(request)
            except InconsistentState:
                raise
            except (MalformedMessage, UnsupportedVersion) as error:
                request.connection.close(str(error))
            except Exception as error:  # it affects only this connection
                request.connection.fail(error)

    def _run_slice(self, request: Request) -> None:
        """Run the next slice; the request is then the last in order, or it is finished."""
        work = self._sliced.pop(request)
        try:
            if work.send(self._now) is WROTE_FILES:
                self._slices_left = 0
        except StopIteration as end:
            dispatch.settle(self.broker, request, end.value)
        else:
            self._sliced[request] = work

    def _fire_timers(self) -> None:
        due, self._due = self._due, []
        for command in due:
            try:
                self.broker.groups.submit(command, self._now)
            except InconsistentState:
                raise
            except Exception as error:  # it affects only this timer
                self.report_internal_error(error, "timer")

    def _send(self) -> None:
        now = self._clock.monotonic()
        for connection in self._to_flush:
            try:
                connection.flush(now)
            except Exception as error:  # as above
                connection.fail(error)
        self._to_flush.clear()
        self._network.send()

    def _write_events(self) -> None:
        try:
            self.broker.write_events()
        except Exception as error:  # events are lost, groups are not
            self.report_internal_error(error, "events")

    # Inputs

    def connect(self, transport: ConnectionTransport, host: str, port: int) -> Connection | None:
        """Return a new connection, or None if the transport must be closed."""
        if self.is_stopping:
            return None
        exceeded = self._find_exceeded_limit(host)
        if exceeded is not None:
            log_events.warning("connection-refused", peer=f"{host}:{port}", reason=exceeded)
            self.metrics.connections_refused += 1
            return None
        connection = Connection(self, transport, host, port)
        self.connections[connection] = None
        self._connections_by_host[host] += 1
        self.metrics.connections_opened += 1
        self.metrics.connections = len(self.connections)
        return connection

    def next_timer(self) -> tuple[DeadlineMillis, float]:
        """When `timers_due` must be called next, and how many seconds that is from now.

        That is a tick if there is no earlier deadline: `DeadlineClock` must be read often.
        """
        self._read_clock()
        now = self._deadline_clock.now
        deadline = self.next_deadline()
        delay_ms = TICK_MS if deadline is None else max(0, min(deadline - now, TICK_MS))
        return DeadlineMillis(now + delay_ms), delay_ms / 1000

    def _next_deadline_by_itself(self) -> DeadlineMillis | None:
        """That of the fetches, unless a group timer is due already, for example without a delay."""
        timer = self._group_timers.earliest
        if timer is not None and timer <= self._group_deadlines.now:
            return self._deadline_clock.now
        return self._fetch_timers.earliest

    def _find_exceeded_limit(self, host: str) -> str | None:
        if len(self.connections) >= self._connections_max:
            return "max.connections"
        if self._connections_by_host[host] >= self._connections_per_host_max:
            return "max.connections.per.ip"
        return None

    def timers_due(self) -> list[Command]:
        """A deadline may have passed; due timers fire in the next iteration.

        Return the commands of the group timers that fire.
        """
        self._read_clock()
        self.broker.purgatory.fire_due(self._deadline_clock.now)
        due = self.broker.groups.take_due(self._group_deadlines.now)
        self._due += due
        return due

    def sync_finished(self, seconds: float) -> None:
        """The files of the last sync request are synced; `iterate` sends the waiting responses."""
        assert self.broker.syncer is not None, "nothing was synced"
        self.broker.syncer.finish(seconds)

    def submit_later(self, command: Command) -> None:
        """Have a command decided in the next iteration, like that of a due timer."""
        self._due.append(command)

    def resume(self, request: Request, work: SlicedWork) -> None:
        """Continue the work of a request that a fault has delayed, in the next iteration."""
        self._sliced[request] = work

    # Called by connections

    def handle(self, request: Request) -> bool:
        """Return whether there is more to do for it in later iterations."""
        work = dispatch.handle(self.broker, request, self._now)
        if work is None:
            return False
        self._sliced[request] = work
        while self._slices_left > 0 and request in self._sliced:
            self._slices_left -= 1
            self._run_slice(request)
        return request in self._sliced

    def continue_later(self, request: Request, work: SlicedWork) -> None:
        more = dispatch.continue_later(self.broker, request, work)
        if more is not None:
            self._sliced[request] = more

    def find_items_max(self, api_key: int) -> int:
        return dispatch.find_items_max(api_key, self._request_items_max)

    def refuse_version(self, frame: bytes) -> bytes | None:
        return dispatch.answer_unsupported(frame)

    def resume_later(self, connection: Connection) -> None:
        self._to_resume[connection] = None

    def count_large_response(self, size: int) -> None:
        self._large_bytes += size

    def abandon(self, request: Request) -> None:
        if not request.must_finish:
            self._sliced.pop(request, None)
        if request.fetch_number is not None:
            self.broker.purgatory.withdraw(request.fetch_number)

    def disconnected(self, connection: Connection) -> None:
        if self.connections.pop(connection, connection) is None:
            host = connection.host
            self._connections_by_host[host] -= 1
            if not self._connections_by_host[host]:
                del self._connections_by_host[host]
        self.metrics.connections = len(self.connections)

    def report_internal_error(self, error: Exception, peer: str) -> None:
        """Log and count a bug that concerns one connection or one timer."""
        self.metrics.internal_errors += 1
        self.internal_error = error
        log_events.internal_error("internal-error", peer=peer, error=error)

    # Starting, maintenance and stopping

    def start(self) -> None:
        """Begin to load groups; topics are served meanwhile."""
        self._deadline_clock.restart(self._clock.monotonic())
        self._loading = self.broker.load_groups(self._clock)

    def load(self) -> None:
        """Apply one chunk of `__consumer_offsets`, until `is_loaded`; raises LogError."""
        assert self._loading is not None, "not started, or already loaded"
        self._read_clock()
        for _ in self._loading:
            return
        self._loading = None
        self.is_loaded = True

    def clean(self, budget_bytes: int) -> bool:
        """Do a part of log retention and compaction; False while there is more to do.

        A small part at a time: compacting a large log at once would delay every response.
        """
        cleaned = self.broker.topics.catalog.clean(self._clock.now(), budget_bytes)
        if cleaned.failure is not None:
            log_events.warning("checkpoint-failed", reason=cleaned.failure)
        for partition in cleaned.partitions:
            if partition.cleaned.failure is not None:
                self.broker.storage_errors.note(partition.cleaned.failure)
        return cleaned.is_done

    @property
    def cleaning_interval_ms(self) -> int:
        """Cleaning also moves the checkpoint that a recovery starts from."""
        interval_ms: int = self.broker.settings["log.retention.check.interval.ms"]
        return min(interval_ms, _CHECKPOINT_INTERVAL_MS)

    def close_idle(self) -> None:
        """Called every `connections.max.idle.ms`."""
        for connection in tuple(self.connections):
            connection.close_if_idle()

    def shut_down(self) -> None:
        """Refuse new connections; the next iteration answers the parked requests."""
        self.is_stopping = True
        self.broker.shut_down(self._clock.now())
