"""The machine a node runs on: its disk, its clock, and how one life of the node follows another."""

from collections.abc import Callable
from enum import StrEnum
from typing import Protocol
from uuid import UUID

from kohort.node.config import Settings
from kohort.sim.dice import Dice
from kohort.sim.disk import Platters
from kohort.sim.network import End, Link, Network
from kohort.sim.node import Process, Tap, WallClock
from kohort.sim.timeline import MS, Timeline
from kohort.types import Uuid


class Death(StrEnum):
    """How a life of the node ends."""

    KILL = "kill"
    """The process is gone; what it wrote is there."""
    POWER = "power"
    """The machine is gone; of what was not synced, anything may be there."""
    STOP = "stop"
    """In good order."""
    FAILED = "failed"
    """The node has given up, because a sync failed; what was not synced is as after POWER."""


class Watcher(Protocol):
    """Whoever must know of the node's lives."""

    def node_started(self, process: Process, /) -> None: ...

    def node_ended(self, process: Process, death: Death, /) -> None: ...


class Machine:
    def __init__(
        self,
        timeline: Timeline,
        dice: Dice,
        settings: Settings,
        *,
        tap: Tap,
        tell: Callable[..., None],
        sync_ms: tuple[float, float],
    ) -> None:
        self.timeline = timeline
        self.tap = tap
        self.tell = tell
        self.clock = WallClock(timeline)
        self.platters = Platters()
        self.network: Network | None = None
        self.watchers: list[Watcher] = []
        self.sync_ms = sync_ms
        self.slow_until = 0
        self.lives = 0
        self.process: Process | None = None
        self._settings = settings
        self._dice = dice
        self._ids = dice.named("ids")
        self._pace = dice.named("pace")
        self._fate: tuple[Death, int, str] | None = None
        self._is_powered = True

    # Lives

    def start(self) -> None:
        if self.process is not None:
            return
        self._is_powered = True
        self.lives += 1
        self.process = Process(self, self._settings)
        self.tell("start", f"life={self.lives}")
        self.process.start()

    def loaded(self, process: Process) -> None:
        self.tell("loaded", f"groups={len(process.broker.groups.coordinator.groups)}")
        for watcher in self.watchers:
            watcher.node_started(process)

    def doom(self, death: Death, down_ms: int, name: str, operations: int) -> None:
        """The node dies at once, or in the middle of the so-manieth thing it asks of the disk."""
        if self.process is None or self.process.is_stopping:
            return
        self._fate = (death, down_ms, name)
        if death is Death.STOP:
            process = self.process
            process.stop(lambda: self.died(process))
        elif operations:
            self.process.mount.fatal_operation = self.process.mount.operations + operations
        else:
            self.died(self.process)

    def failed(self, process: Process, error: BaseException) -> None:
        """The node must not go on: nobody knows what the disk holds."""
        self._fate = (Death.FAILED, 500, f"life {self.lives}")
        self.tell("gives-up", str(error))
        self.died(process)

    def not_started(self, process: Process, error: BaseException) -> None:
        self._fate = (Death.KILL, 300, f"life {self.lives}")
        self.tell("gives-up", str(error))
        self.died(process)

    def died(self, process: Process) -> None:
        if process is not self.process:
            return
        assert self._fate is not None, "nobody dies here without a reason"
        (death, down_ms, name), self._fate = self._fate, None
        self.process = None
        process.end()
        for watcher in self.watchers:
            watcher.node_ended(process, death)
        self.tell("dies", death)
        assert self.network is not None
        links = self.network.links_of()
        if death in (Death.POWER, Death.FAILED):
            self.platters.power_off(self._dice.named("power", name))
        self._is_powered = death is not Death.POWER
        for link in links:
            if death is Death.POWER:
                link.power_lost()
            elif death is Death.STOP:
                link.dismiss()
            else:
                link.process_died()
        self.timeline.after(down_ms * MS, self.start)

    def heal(self) -> None:
        """From here on it does what it should."""
        self.make_room()
        self.platters.failing_syncs = 0
        self.slow_until = 0
        if self.process is not None and not self.process.is_stopping:
            self.process.mount.fatal_operation = None
            self._fate = None

    def make_room(self) -> None:
        self.platters.is_full = False

    # Calling it

    @property
    def is_reachable(self) -> bool:
        return self._is_powered

    def accept(self, link: Link) -> End | None:
        return self.process.accept(link) if self.process is not None else None

    # What a process asks of its machine

    def sync_duration(self) -> int:
        shortest, longest = self.sync_ms
        if self.timeline.now < self.slow_until:
            shortest, longest = longest, longest * 20
        return int(self._pace.uniform(shortest, longest) * MS)

    def load_duration(self) -> int:
        return int(self._pace.uniform(0.1, 5) * MS)

    def fresh_uuid(self) -> UUID:
        return UUID(int=self._ids.getrandbits(128), version=4)

    def fresh_topic_id(self) -> Uuid:
        return Uuid(self._ids.randbytes(16))
