"""Drives the node's event loop with asyncio: sockets, timers, the sync thread, start and stop.

Nothing is decided here: this file carries bytes and time to `NodeLoop`.
"""

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kohort.coordinator.commands import Command
from kohort.extras import require_extra
from kohort.log.catalog import Catalog
from kohort.log.catalog_file import CatalogTopic
from kohort.log.errors import LogError, OutOfResources
from kohort.log.limits import Limits as LogLimits
from kohort.log.os_disk import OsDisk
from kohort.node import dispatch, log_events
from kohort.node.addresses import (
    BROKER_EXPOSED,
    CONTROL_EXPOSED,
    METRICS_EXPOSED,
    HttpEndpoint,
    advertised_address,
    is_exposed,
    usable_address,
)
from kohort.node.broker import Address, Broker
from kohort.node.clock import Clock, SystemClock
from kohort.node.config import BrokerConfig
from kohort.node.connection import Connection
from kohort.node.control.errors import ControlError
from kohort.node.control.waiters import Waiters
from kohort.node.damage_report import report_repair
from kohort.node.data_directory import prepare_data_directory
from kohort.node.loop import NodeLoop
from kohort.node.manual_clock import ManualClock
from kohort.node.manual_time import ManualTime
from kohort.node.request import Request, SlicedWork
from kohort.node.runtime import InconsistentState
from kohort.node.socket_transport import Channel, SocketTransport
from kohort.node.storage_error_log import StorageErrorLog
from kohort.node.sync_thread import RETRY_S, AwaitedSync, SyncThread
from kohort.node.syncer import Syncer
from kohort.node.system_limits import connections_max, start_failure
from kohort.node.topics import Topics
from kohort.types import DeadlineMillis

if TYPE_CHECKING:
    from kohort.node.control.fault_table import FaultTable
    from kohort.node.http_server import HttpServer

_CLEANING_BUDGET_BYTES: Final = 6 * 1024
_CLEANING_PAUSE_S: Final = 0.0006
"""While there is something to clean: a few tenths of every millisecond, so that no response waits
long for it."""

_CLOSING_S: Final = 1.0
"""How long clients have to read the last responses when the node stops."""

_CLOSING_POLL_S: Final = 0.005
_LOADING_POLL_S: Final = 0.001

_SETTLING_PASSES_MAX: Final = 1_000
"""Event-loop iterations for which `settle` waits for long work. Other clients may bring more work
without end."""


class NodeStartError(Exception):
    """The node cannot start. The message gives the reason in one sentence."""


class NodeFailed(Exception):
    """The node stopped because it could no longer guarantee durability or consistency."""


class Server:
    """One node: `start`, then `run` until `stopping` is set, then `stop`."""

    def __init__(self, settings: BrokerConfig, data: Path, clock: Clock | None = None) -> None:
        self._settings = settings
        self._data = data
        real_clock = clock or SystemClock()
        self._manual_clock = ManualClock(real_clock) if settings.has_manual_clock else None
        self.clock: Clock = self._manual_clock or real_clock
        self.manual_time: ManualTime | None = None
        """With a manual clock, once the node is started."""
        self._armed_at: DeadlineMillis | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_iteration_scheduled = False
        self._failure: NodeFailed | None = None
        self._awaited_syncs: list[AwaitedSync] = []
        self._load_errors = StorageErrorLog()
        self._sync_thread: SyncThread | None = None
        self._http_servers: list[HttpServer] = []
        self.metrics_address: Address | None = None
        self.control_address: Address | None = None
        self._is_closed = False
        self._loaded = asyncio.Event()
        self.stopping = asyncio.Event()
        self.waiters = Waiters()

    # Starting and stopping

    async def start(
        self,
        host: str,
        port: int,
        *,
        metrics: HttpEndpoint | None = None,
        control: HttpEndpoint | None = None,
    ) -> Address:
        """Return an address that clients on this machine can connect to."""
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(self._on_uncaught)
        self._catalog = self._open_catalog()
        syncer = None
        if self._settings.is_fsync:
            self._sync_thread = SyncThread(self._loop, self)
            syncer = Syncer(self._sync_thread)
        broker = Broker(self._settings, Topics(self._catalog, self._settings), syncer)
        self._transport: SocketTransport[Connection] = SocketTransport(
            self._loop, self._connect, self._settings["kohort.response.unsent.max.bytes"]
        )
        manual_clock = self._manual_clock
        self._node = NodeLoop(
            broker,
            self._transport,
            self.clock,
            connections_max(),
            group_deadlines=None if manual_clock is None else manual_clock.deadlines,
        )
        try:
            port = self._transport.listen(host, port)
        except (OSError, UnicodeError) as error:
            self._close()
            where = Address(host=host, port=port)
            raise NodeStartError(f"cannot listen on {where}: {start_failure(error)}") from error
        listening, bound = Address(host=host, port=port), self._transport.bound_hosts
        usable = usable_address(listening, bound)
        broker.address = advertised_address(self._settings, usable)
        if is_exposed(bound):
            log_events.warning(
                "exposed", address=listening, advertised=broker.address, warning=BROKER_EXPOSED
            )
        if metrics is not None:
            await self._serve_metrics(metrics)
        if control is not None:
            await self._serve_control(control)
        self._loop.add_reader(self._transport.fileno(), self._on_ready)
        self._node.start()
        self._arm()
        self._load()
        self._loop.call_soon(self._load_handlers, dispatch.load_handlers())
        self._start_maintenance()
        return usable

    def _start_maintenance(self) -> None:
        if self._manual_clock is not None:
            self.manual_time = ManualTime(self._manual_clock, self._node, self)
            return
        self._loop.call_later(self._node.cleaning_interval_ms / 1000, self._clean)
        self._loop.call_later(self._idle_interval_s, self._close_idle)

    @property
    def broker(self) -> Broker:
        return self._node.broker

    @cached_property
    def faults(self) -> "FaultTable":
        """The faults of this node, for tests."""
        from kohort.node.control.fault_table import FaultTable  # noqa: PLC0415  # rarely needed

        return FaultTable(self.broker, self._disk, self._continue_after, self._sync_thread)

    def submit(self, command: Command) -> None:
        """Have a command of the group coordinator decided and carried out now."""
        self._node.submit_later(command)
        self._iterate()

    def _continue_after(self, seconds: float, request: Request, work: SlicedWork) -> None:
        """Real time passes, also if the node's clock is set by hand."""
        self._loop.call_later(seconds, self._resume, request, work)

    def _resume(self, request: Request, work: SlicedWork) -> None:
        self._node.resume(request, work)
        self._iterate()

    def _open_catalog(self) -> Catalog:
        prepare_data_directory(self._data, self._settings.data_directory_mode)
        self._disk = OsDisk(self._data, self._settings["kohort.open.files.max"] or None)
        catalog, recovered = Catalog.open(
            self._disk,
            self.clock.now(),
            self._settings.topic_defaults(),
            limits=LogLimits(
                producer_id_expiration_ms=self._settings["producer.id.expiration.ms"],
                decompressed_bytes_max=self._settings["kohort.batch.decompressed.max.bytes"],
                batch_records_max=self._settings["kohort.batch.records.max"],
            ),
            accepted_losses=self._settings.accepted_losses,
        )
        for repair in recovered:
            report_repair(repair)
        catalog.on_repair = report_repair
        return catalog

    async def wait_until_loaded(self) -> bool:
        """Until groups are served, or `__consumer_offsets` is refused. False if it stops first."""
        waits = [asyncio.ensure_future(each.wait()) for each in (self._loaded, self.stopping)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
        return not self.stopping.is_set()

    async def run(self) -> None:
        """Until `stopping` is set, or the node has to stop by itself."""
        await self.stopping.wait()

    async def stop(self) -> None:
        self._transport.stop_listening()
        self.waiters.refuse("the node stopped during the wait")
        self._stop_http()
        if self._failure is None:
            await self._shut_down()
        for connection in tuple(self._node.connections):
            connection.finish()
        await self._disconnect_all()
        if self._timer is not None:
            self._timer.cancel()
        self._close()
        if self._failure is not None:
            raise self._failure

    def abandon(self) -> None:
        """Stop as a crash does: nothing more is written, and all clients are disconnected."""
        self._stop_http()
        self._loop.remove_reader(self._transport.fileno())
        if self._timer is not None:
            self._timer.cancel()
        self._close(is_clean=False)

    def _stop_http(self) -> None:
        for each in self._http_servers:
            each.stop()

    async def _shut_down(self) -> None:
        """Answer what is parked, and wait for the last sync."""
        self._node.shut_down()
        self._iterate()
        if self.broker.syncer is not None:
            await self._sync(self.broker.syncer)
            self._iterate()

    async def _sync(self, syncer: Syncer) -> None:
        """Wait until everything written so far is synced, or the disk has failed."""
        awaited = AwaitedSync()
        self._awaited_syncs.append(awaited)
        syncer.hold(awaited)
        self._schedule_iteration()
        await awaited.event.wait()
        self._awaited_syncs.remove(awaited)

    async def wait_for_sync(self) -> None:
        """Return when everything written so far is synced; without fsync, at once."""
        if self.broker.syncer is not None:
            await self._sync(self.broker.syncer)

    async def _disconnect_all(self) -> None:
        """Disconnect all clients, after a short time for reading the last responses."""
        end = self._loop.time() + _CLOSING_S
        while self._transport.channels and self._loop.time() < end:
            await asyncio.sleep(_CLOSING_POLL_S)
        self._loop.remove_reader(self._transport.fileno())

    async def _serve_metrics(self, asked: HttpEndpoint) -> None:
        # Imported only if needed: prometheus_client is slow to import.
        with require_extra("the metrics page of a node"):
            from kohort.node.metrics_http import MetricsServer  # noqa: PLC0415

        hosts = asked.allowed_hosts.including(asked.listen.host).including(self.broker.address.host)
        page = MetricsServer(self.broker, hosts).http
        listening = await self._listen_http(page, asked.listen, "metrics")
        self.metrics_address = usable_address(listening, page.bound_hosts)
        log_events.info("metrics-served", address=listening)
        if is_exposed(page.bound_hosts):
            log_events.warning("metrics-exposed", address=listening, warning=METRICS_EXPOSED)

    async def _serve_control(self, asked: HttpEndpoint) -> None:
        # Imported only if needed, so that other nodes start faster.
        from kohort.node.control.http import ControlServer  # noqa: PLC0415

        hosts = asked.allowed_hosts.including(asked.listen.host).including(self.broker.address.host)
        http = ControlServer(self, hosts).http
        listening = await self._listen_http(http, asked.listen, "control operations")
        self.control_address = usable_address(listening, http.bound_hosts)
        log_events.info("control-served", address=listening)
        if is_exposed(http.bound_hosts):
            log_events.warning("control-exposed", address=listening, warning=CONTROL_EXPOSED)

    async def _listen_http(self, http: "HttpServer", asked: Address, what: str) -> Address:
        try:
            port = await http.start(asked.host, asked.port)
        except (OSError, UnicodeError) as error:
            self._stop_http()
            self._close()
            raise NodeStartError(
                f"cannot serve {what} on {asked}: {start_failure(error)}"
            ) from error
        self._http_servers.append(http)
        return Address(host=asked.host, port=port)

    def _close(self, *, is_clean: bool = True) -> None:
        self._is_closed = True
        self._transport.close()
        if self._sync_thread is not None:
            self._sync_thread.close()
        if self._failure is None and is_clean:
            self._catalog.close(self.clock.now())
        else:
            self._catalog.abandon()

    # Iterations

    def _connect(self, channel: Channel[Connection], host: str, port: int) -> Connection | None:
        return self._node.connect(channel, host, port)

    def _on_ready(self) -> None:
        """Sockets are ready."""
        if self._is_closed:
            return
        for connections in self._transport.read_ready():
            self._iterate(connections)

    def _on_timer(self) -> None:
        self._armed_at = self._timer = None
        self.fire_timers()

    def fire_timers(self) -> list[Command]:
        """Handle the timers that are due; return the commands of those of groups."""
        fired = self._node.timers_due()
        self._iterate()
        return fired

    async def settle(self) -> None:
        """Handle what has been received, and wait until everything that has begun is done.

        Raises `ControlError` if the node stops.
        """
        while not self._node.is_loaded and not self.stopping.is_set():
            await asyncio.sleep(_LOADING_POLL_S)
        self._on_ready()
        syncer = self.broker.syncer
        for _ in range(_SETTLING_PASSES_MAX):
            if syncer is None or syncer.is_idle:
                await asyncio.sleep(0)
            else:
                await self._sync(syncer)
            if self.stopping.is_set():
                raise ControlError("the node is stopping, so its clock was not moved further")
            if not self._is_iteration_scheduled and (syncer is None or syncer.is_idle):
                return

    def _on_scheduled(self) -> None:
        # Requests that arrived meanwhile join this iteration and its sync.
        self._is_iteration_scheduled = False
        self._on_ready()

    def _iterate(self, fed: Sequence[Connection] = ()) -> None:
        """Run one iteration, then schedule the next one if there is work for it."""
        if self._failure is not None or self._is_closed:
            return
        has_waiters = self.waiters and (fed or self._node.has_input)
        try:
            has_work = self._node.iterate(fed)
        except InconsistentState as error:
            self._stop_for_bug(error)
            return
        if has_waiters:
            self.waiters.check()
        if has_work:
            self._schedule_iteration()
        deadline, armed_at = self._node.next_deadline(), self._armed_at
        if armed_at is None or (deadline is not None and deadline < armed_at):
            self._arm()

    def _schedule_iteration(self) -> None:
        if not self._is_iteration_scheduled:
            self._is_iteration_scheduled = True
            self._loop.call_soon(self._on_scheduled)

    def _arm(self) -> None:
        """One timer for the earliest deadline; a later one is found when this one fires."""
        if self._timer is not None:
            self._timer.cancel()
        self._armed_at, delay_s = self._node.next_timer()
        self._timer = self._loop.call_later(delay_s, self._on_timer)

    def sync_finished(self, future: "Future[float]") -> None:
        error = future.exception()
        if self._is_closed:
            return
        if error is None:
            self._node.sync_finished(future.result())
            self._iterate()
        else:
            assert self.broker.syncer is not None, "nothing was synced"
            self.broker.syncer.fail()
            self._fail(error)

    # Control operations

    def delete_topics(self, topics: Sequence[CatalogTopic]) -> None:
        """Raises StorageError."""
        try:
            self.broker.delete_topics(topics, self.clock.now())
        except InconsistentState as error:
            self._stop_for_bug(error)
            raise
        self._iterate()

    # Work between iterations

    def _load(self) -> None:
        """Load one chunk of `__consumer_offsets` at a time; requests are handled in between."""
        try:
            self._node.load()
        except OutOfResources as error:
            self._load_errors.note(error)
            self._load_errors.write(self.clock.now())
            self._node.start()
            self._loop.call_later(RETRY_S, self._load)
            return
        except LogError as error:
            self._fail(error)
            return
        if self._node.is_loaded:
            self._loaded.set()
            if self.broker.groups_refusal is None:
                log_events.info("groups-loaded", groups=len(self.broker.coordinator.groups))
            self._iterate()
        else:
            self._loop.call_soon(self._load)

    def _load_handlers(self, loading: Iterator[None]) -> None:
        """Import one handler at a time. Later there may be no file descriptor left for it."""
        for _ in loading:
            self._loop.call_soon(self._load_handlers, loading)
            return

    def _clean(self) -> None:
        if self._is_closed:
            return
        is_done = self._node.clean(_CLEANING_BUDGET_BYTES)
        delay_s = self._node.cleaning_interval_ms / 1000 if is_done else _CLEANING_PAUSE_S
        self._loop.call_later(delay_s, self._clean)

    @property
    def _idle_interval_s(self) -> float:
        interval_ms: int = self._settings["connections.max.idle.ms"]
        return interval_ms / 1000

    def _close_idle(self) -> None:
        self._node.close_idle()
        self._loop.call_later(self._idle_interval_s, self._close_idle)

    # Failures

    def _fail(self, error: BaseException) -> None:
        """Stop because the disk failed: its content is unknown or unreadable."""
        log_events.warning("disk-failed", reason=error)
        self._stop_with(f"the disk failed: {error}")

    def _on_uncaught(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Handle an uncaught exception. Unless the operating system caused it, it is a bug."""
        error = context.get("exception")
        if error is None or isinstance(error, OSError):
            loop.default_exception_handler(context)
        else:
            self._stop_for_bug(error)

    def _stop_for_bug(self, error: BaseException) -> None:
        cause = error.__cause__ or error
        log_events.internal_error("stopped-by-bug", error=cause)
        self._stop_with(
            f"internal error ({type(cause).__name__}: {cause}); this is a bug in Kohort, please"
            " report the traceback above. The node stopped because memory and log may differ."
            " Everything acknowledged is stored, so the node can be started again"
        )

    def _stop_with(self, reason: str) -> None:
        self._failure = self._failure or NodeFailed(reason)
        self.stopping.set()
        for awaited in self._awaited_syncs:
            awaited.release()
