"""The host of the node: its disk and clock. Starts, ends and restarts the node's process."""

from collections.abc import Callable
from enum import StrEnum
from typing import Protocol
from uuid import UUID

from kohort.coordinator.events import GroupEvent
from kohort.node.config import BrokerConfig
from kohort.sim.disk import DiskImage
from kohort.sim.network import Link, LinkEndpoint, SimulatedNetwork
from kohort.sim.node import ByteTap, NodeProcess, WallClock
from kohort.types import Uuid
from kohort.virtual_time.rng import RandomStreams
from kohort.virtual_time.scheduler import MS, Scheduler


class ExitKind(StrEnum):
    """How a process of the node ends."""

    KILL = "kill"
    """The process is killed; everything it wrote survives."""
    POWER = "power"
    """The host loses power; of unsynced data, anything may survive."""
    STOP = "stop"
    """A clean shutdown."""
    FAILED = "failed"
    """The node stopped itself because a sync failed; unsynced data is as after POWER."""


class NodeObserver(Protocol):
    """Is notified when the node starts, is resumed and ends, and of the events of its groups."""

    def node_started(self, process: NodeProcess, /) -> None: ...

    def node_ended(self, process: NodeProcess, exit_kind: ExitKind, /) -> None: ...

    def node_resumed(self, suspended: int, /) -> None: ...

    def groups_changed(self, events: list[GroupEvent], /) -> None: ...


class NodeHost:
    def __init__(
        self,
        scheduler: Scheduler,
        streams: RandomStreams,
        settings: BrokerConfig,
        *,
        tap: ByteTap,
        log: Callable[..., None],
        sync_ms: tuple[float, float],
    ) -> None:
        self.scheduler = scheduler
        self.tap = tap
        self.log = log
        self.clock = WallClock(scheduler)
        self.disk_image = DiskImage()
        self.network: SimulatedNetwork | None = None
        self.observers: list[NodeObserver] = []
        self.sync_ms = sync_ms
        self.slow_until = 0
        self.node_starts = 0
        self.process: NodeProcess | None = None
        self._settings = settings
        self._streams = streams
        self._ids = streams.named("ids")
        self._pace = streams.named("pace")
        self._pending_exit: tuple[ExitKind, int, str] | None = None
        self._is_powered = True

    # Starting and ending

    def start(self) -> None:
        if self.process is not None:
            return
        self._is_powered = True
        self.node_starts += 1
        self.process = NodeProcess(self, self._settings)
        self.log("start", f"number={self.node_starts}")
        self.process.start()

    def loaded(self, process: NodeProcess) -> None:
        self.log("loaded", f"groups={len(process.broker.coordinator.groups)}")
        for observer in self.observers:
            observer.node_started(process)

    def schedule_exit(self, exit_kind: ExitKind, down_ms: int, name: str, operations: int) -> None:
        """End the node now, or in the middle of its n-th disk operation from now."""
        if self.process is None or self._is_stopping:
            return
        self._pending_exit = (exit_kind, down_ms, name)
        if exit_kind is ExitKind.STOP:
            process = self.process
            process.stop(lambda: self.exited(process))
        elif operations:
            self.process.mount.fatal_operation = self.process.mount.operations + operations
        else:
            self.exited(self.process)

    @property
    def _is_stopping(self) -> bool:
        """Whether the process shuts down, or will as soon as it is resumed."""
        return self._pending_exit is not None and self._pending_exit[0] is ExitKind.STOP

    def failed(self, process: NodeProcess, error: BaseException) -> None:
        """The node must stop: the content of the disk is unknown."""
        self._pending_exit = (ExitKind.FAILED, 500, f"life {self.node_starts}")
        self.log("gives-up", str(error))
        self.exited(process)

    def not_started(self, process: NodeProcess, error: BaseException) -> None:
        self._pending_exit = (ExitKind.KILL, 300, f"life {self.node_starts}")
        self.log("gives-up", str(error))
        self.exited(process)

    def suspend(self, for_ms: int) -> None:
        """The process does not run for this time; a kill or a power failure still ends it."""
        if self.process is not None:
            self.process.suspend(for_ms)

    def resumed(self, suspended: int) -> None:
        self.log("resumed", f"after={suspended // MS}")
        for observer in self.observers:
            observer.node_resumed(suspended)

    def groups_changed(self, events: list[GroupEvent]) -> None:
        for observer in self.observers:
            observer.groups_changed(events)

    def exited(self, process: NodeProcess) -> None:
        if process is not self.process:
            return
        assert self._pending_exit is not None, "a process ends only with a pending exit"
        (exit_kind, down_ms, name), self._pending_exit = self._pending_exit, None
        self.process = None
        process.end()
        for observer in self.observers:
            observer.node_ended(process, exit_kind)
        self.log("down", exit_kind)
        assert self.network is not None
        links = self.network.links_of()
        if exit_kind in (ExitKind.POWER, ExitKind.FAILED):
            self.disk_image.power_off(self._streams.named("power", name))
        self._is_powered = exit_kind is not ExitKind.POWER
        for link in links:
            if exit_kind is ExitKind.POWER:
                link.power_lost()
            elif exit_kind is ExitKind.STOP:
                link.close_by_server()
            else:
                link.process_died()
        self.scheduler.after(down_ms * MS, self.start)

    def end_faults(self) -> None:
        """Stop injecting faults."""
        self.free_space()
        self.disk_image.failing_syncs = 0
        self.slow_until = 0
        if self.process is not None and not self._is_stopping:
            self.process.mount.fatal_operation = None
            self._pending_exit = None

    def free_space(self) -> None:
        self.disk_image.is_full = False

    # Accepting connections

    @property
    def is_reachable(self) -> bool:
        return self._is_powered

    def accept(self, link: Link) -> LinkEndpoint | None:
        return self.process.accept(link) if self.process is not None else None

    # Used by the process

    def sync_duration(self) -> int:
        shortest, longest = self.sync_ms
        if self.scheduler.now < self.slow_until:
            shortest, longest = longest, longest * 20
        return int(self._pace.uniform(shortest, longest) * MS)

    def load_duration(self) -> int:
        return int(self._pace.uniform(0.1, 5) * MS)

    def fresh_uuid(self) -> UUID:
        return UUID(int=self._ids.getrandbits(128), version=4)

    def fresh_topic_id(self) -> Uuid:
        return Uuid(self._ids.randbytes(16))
