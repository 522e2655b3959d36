"""The node's event loop, without sockets, threads and clocks: one written order of effects.

`NodeLoop.iterate` is one iteration. Everything that could ask the node for more work during an
iteration (a completed fetch whose connection has another request, a finished sync, a due timer) is
an input of a later stage or of the next iteration. Nothing calls back into request handling.

The loop's three seams are its transport, its disk (the sync driver and the catalog) and its clock.
`server` drives it with sockets and threads, `sim.node` with simulated ones.
"""

from collections.abc import Iterable, Iterator
from typing import Final, Protocol

from kohort.coordinator.commands import Command
from kohort.node import dispatch, log_events
from kohort.node.broker import Broker
from kohort.node.clock import Clock
from kohort.node.connection import Connection, ConnectionTransport
from kohort.node.deadline_clock import TICK_MS, DeadlineClock
from kohort.node.metrics import Metrics
from kohort.node.request import Request
from kohort.node.runtime import InconsistentState
from kohort.types import DeadlineMillis, Millis

_CHECKPOINT_INTERVAL_MS: Final = 30_000

_LARGE_BYTES_MAX: Final = 16 * 1024 * 1024
"""Bytes of large responses made in one iteration; bounds the memory that waits to be sent."""

_SUSPENDED_S_MIN: Final = 1.0
"""Shorter gaps are normal on a busy machine, and neither logged nor counted."""


class NodeTransport(Protocol):
    """The transports of all connections."""

    def send(self) -> None:
        """Send the data written since the last call."""


class NodeLoop:
    def __init__(self, broker: Broker, network: NodeTransport, clock: Clock) -> None:
        self.broker = broker
        self.metrics: Metrics = broker.metrics
        self.next_deadline = broker.next_deadline
        self._network = network
        self._clock = clock
        self._deadline_clock = DeadlineClock(clock.monotonic())
        self._group_timers, self._fetch_timers = broker.groups.timers, broker.purgatory.timers
        settings = broker.settings
        self.request_max_bytes: int = settings["socket.request.max.bytes"]
        self.inflight_max: int = settings["kohort.connection.inflight.max"]
        self._connections_max: int = settings["max.connections"]
        self.connections: dict[Connection, None] = {}
        self._due: list[Command] = []
        self._to_flush: list[Connection] = []
        self.flush_later = self._to_flush.append
        self._to_resume: dict[Connection, None] = {}
        self._large_bytes = 0
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
        self._read_clock()
        self._large_bytes = 0
        if self._due:
            self._fire_timers()
        if self._to_resume:
            resumed, self._to_resume = self._to_resume, {}
            self._handle_requests(resumed)
        self._handle_requests(fed)
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
        return bool(self._to_resume or purgatory.ready)

    def _read_clock(self) -> None:
        """One reading for the whole iteration, or for what is done between iterations."""
        clock, deadline_clock = self._clock, self._deadline_clock
        self._now = clock.now()
        self.iteration_started_at = monotonic = clock.monotonic()
        uncounted_s = deadline_clock.advance(monotonic)
        if uncounted_s > _SUSPENDED_S_MIN:
            self._report_suspension(uncounted_s)
        self._group_timers.now = self._fetch_timers.now = deadline_clock.now

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
        if len(self.connections) >= self._connections_max:
            log_events.warning(
                "connection-refused", peer=f"{host}:{port}", reason="max.connections"
            )
            self.metrics.connections_refused += 1
            return None
        connection = Connection(self, transport, host, port)
        self.connections[connection] = None
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

    def timers_due(self) -> None:
        """A deadline may have passed; due timers fire in the next iteration."""
        self._read_clock()
        self._due += self.broker.take_due(self._deadline_clock.now)

    def sync_finished(self, seconds: float) -> None:
        """The files of the last sync request are synced; `iterate` sends the waiting responses."""
        assert self.broker.syncer is not None, "nothing was synced"
        self.broker.syncer.finish(seconds)

    # Called by connections

    def handle(self, request: Request) -> None:
        dispatch.handle(self.broker, request, self._now)

    def refuse_version(self, frame: bytes) -> bytes | None:
        return dispatch.answer_unsupported(frame)

    def resume_later(self, connection: Connection) -> None:
        self._to_resume[connection] = None

    def count_large_response(self, size: int) -> None:
        self._large_bytes += size

    def abandon(self, request: Request) -> None:
        if request.fetch_number is not None:
            self.broker.purgatory.withdraw(request.fetch_number)

    def disconnected(self, connection: Connection) -> None:
        self.connections.pop(connection, None)
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
