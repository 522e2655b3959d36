"""Connections as TCP has them: bytes arrive in order or not at all, when they arrive is chance.

Bytes are cut anywhere and late by any time; lost ones are sent again, which only takes longer. A
connection may be cut, which both ends hear of, or go silent, which nobody hears of. What happens
on one connection has no order with what happens on another.
"""

from collections import deque
from collections.abc import Callable
from random import Random
from typing import Protocol

from kohort.sim.dice import Dice
from kohort.sim.timeline import MS, Action, Timeline
from kohort.types import value


@value
class Weather:
    """How good the network is."""

    delay_ms_min: float
    delay_ms_max: float
    stall_chance: float
    """How often bytes are lost and sent again."""
    stall_ms_max: float
    split_chance: float
    """How often bytes that were written at once arrive in pieces."""


class End(Protocol):
    """Whoever sits at one end of a connection."""

    def data_received(self, data: bytes) -> None: ...

    def connection_lost(self) -> None: ...


class Caller(End, Protocol):
    def connected(self) -> None: ...


class Listener(Protocol):
    """Whoever can be called."""

    def accept(self, link: "Link") -> End | None:
        """None where nobody listens: the caller is refused."""

    @property
    def is_reachable(self) -> bool:
        """Whether there is a machine at all that could refuse."""


class Pipe:
    """One direction of a connection."""

    __slots__ = (
        "_blocked_until",
        "_chance",
        "_deliver",
        "_is_paused",
        "_pump_at",
        "_timeline",
        "_under_way",
        "is_muted",
        "weather",
    )

    def __init__(
        self, timeline: Timeline, weather: Weather, chance: Random, deliver: Callable[[bytes], None]
    ) -> None:
        self._timeline = timeline
        self.weather = weather
        self._chance = chance
        self._deliver = deliver
        self._under_way: deque[tuple[int, bytes | Action]] = deque()
        """When each piece is there at the earliest; in the order in which they arrive."""
        self._pump_at: int | None = None
        self._blocked_until = 0
        self._is_paused = False
        self.is_muted = False

    def send(self, data: bytes) -> None:
        if self.is_muted:
            return
        chance, weather = self._chance, self.weather
        while len(data) > 1 and chance.random() < weather.split_chance:
            size = chance.randrange(1, len(data))
            self._add(data[:size])
            data = data[size:]
        self._add(data)

    def finish(self, then: Action) -> None:
        """Once all that is under way has arrived."""
        self._add(then)

    def mute(self) -> None:
        """What is under way is lost, and so is what comes after."""
        self.is_muted = True
        self._under_way.clear()

    def block(self, until: int) -> None:
        """Nothing arrives before then."""
        self._blocked_until = max(self._blocked_until, until)

    def unblock(self) -> None:
        self._blocked_until = 0
        self._plan()

    def pause(self, *, is_paused: bool) -> None:
        """The reader does not read; what arrives waits for it."""
        self._is_paused = is_paused
        self._plan()

    def travel_time(self) -> int:
        weather, chance = self.weather, self._chance
        delay_ms = chance.uniform(weather.delay_ms_min, weather.delay_ms_max)
        if weather.stall_chance and chance.random() < weather.stall_chance:
            delay_ms += chance.uniform(weather.delay_ms_max, weather.stall_ms_max)
        return int(delay_ms * MS)

    def _add(self, what: bytes | Action) -> None:
        at = self._timeline.now + self.travel_time()
        if self._under_way:
            at = max(at, self._under_way[-1][0])
        self._under_way.append((at, what))
        self._plan()

    def _plan(self) -> None:
        if not self._under_way or self._is_paused:
            return
        at = max(self._under_way[0][0], self._blocked_until)
        if self._pump_at is None or at < self._pump_at:
            self._pump_at = at
            self._timeline.after(at - self._timeline.now, self._pump)

    def _pump(self) -> None:
        now = self._timeline.now
        self._pump_at = None
        while self._under_way and not self._is_paused:
            if max(self._under_way[0][0], self._blocked_until) > now:
                break
            what = self._under_way.popleft()[1]
            if isinstance(what, bytes):
                self._deliver(what)
            else:
                what()
        self._plan()


class Link:
    """One connection between a caller and whoever listens."""

    def __init__(self, network: "Network", number: int, owner: str, caller: Caller) -> None:
        self._network = network
        self._timeline = network.timeline
        self.number = number
        self.owner = owner
        self._caller: Caller | None = caller
        self._server: End | None = None
        chance = network.dice.named("link", owner, number)
        self.to_server = Pipe(self._timeline, network.weather, chance, self._reach_server)
        self.to_caller = Pipe(self._timeline, network.weather, chance, self._reach_caller)
        self.is_orphaned = False
        """The machine at the other end lost its power: it knows nothing of this connection."""

    @property
    def name(self) -> str:
        return f"{self.owner}.{self.number}"

    @property
    def has_caller(self) -> bool:
        return self._caller is not None

    @property
    def is_healthy(self) -> bool:
        """Whether everything that is sent arrives in the end."""
        return not (self.is_orphaned or self.to_server.is_muted or self.to_caller.is_muted)

    def open(self) -> None:
        until = self._network.blocked_until(self.owner)
        self.to_server.block(until)
        self.to_caller.block(until)
        self.to_server.finish(self._knock)

    def _knock(self) -> None:
        listener = self._network.listener
        if self._caller is None or not listener.is_reachable:
            return
        self._server = listener.accept(self)
        then = self._welcome if self._server is not None else self._lose_caller
        self.to_caller.finish(then)

    def _welcome(self) -> None:
        if self._caller is not None and self._server is not None:
            self._caller.connected()

    # What callers do

    def call(self, data: bytes) -> None:
        if self.is_orphaned and self._network.listener.is_reachable:
            # A machine that came back knows nothing of the connection, and says so.
            self.to_caller.is_muted = False
            self.to_caller.finish(self._lose_caller)
            return
        self.to_server.send(data)

    def hang_up(self) -> None:
        """The caller closes, or its process ends; the other end hears of it in time."""
        self._caller = None
        if not self.to_server.is_muted:
            self.to_server.finish(self._lose_server)
        self._network.forget(self)

    def vanish(self) -> None:
        """The caller's machine is gone: nobody tells the other end."""
        self._caller = None
        self.mute()
        self._network.forget(self)

    # What the node does

    def answer(self, data: bytes) -> None:
        self.to_caller.send(data)

    def dismiss(self) -> None:
        """The node closes; what it wrote before still arrives."""
        self._server = None
        if not self.to_caller.is_muted:
            self.to_caller.finish(self._lose_caller)

    # What befalls both

    def cut(self) -> None:
        """Both ends hear of it; what was under way is lost."""
        self.mute()
        delay = self.to_server.travel_time
        self._timeline.after(delay(), self._lose_server)
        self._timeline.after(delay(), self._lose_caller)

    def mute(self) -> None:
        """From here on nothing arrives, and nobody is told."""
        self.to_server.mute()
        self.to_caller.mute()

    def process_died(self) -> None:
        """The node's process is gone; its system tells the caller."""
        self._server = None
        self.to_server.mute()
        if not self.to_caller.is_muted:
            self.to_caller.finish(self._lose_caller)

    def power_lost(self) -> None:
        self._server = None
        self.is_orphaned = True
        self.mute()

    def _reach_server(self, data: bytes) -> None:
        if self._server is not None:
            self._server.data_received(data)

    def _reach_caller(self, data: bytes) -> None:
        if self._caller is not None:
            self._caller.data_received(data)

    def _lose_server(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.connection_lost()

    def _lose_caller(self) -> None:
        caller, self._caller = self._caller, None
        if caller is not None:
            self._network.forget(self)
            caller.connection_lost()


class Network:
    def __init__(
        self, timeline: Timeline, dice: Dice, weather: Weather, listener: Listener
    ) -> None:
        self.timeline = timeline
        self.dice = dice
        self.weather = weather
        self.listener = listener
        self._links: dict[str, Link] = {}
        self._opened: dict[str, int] = {}
        self._blocked: dict[str, int] = {}

    def connect(self, owner: str, caller: Caller) -> Link:
        number = self._opened[owner] = self._opened.get(owner, 0) + 1
        link = Link(self, number, owner, caller)
        self._links[link.name] = link
        link.open()
        return link

    def forget(self, link: Link) -> None:
        self._links.pop(link.name, None)

    def links_of(self, owner: str | None = None) -> list[Link]:
        """All there are in the order they were made, or one caller's."""
        return [link for link in self._links.values() if owner in (None, link.owner)]

    def isolate(self, owner: str, for_ms: int) -> None:
        """Whatever this caller says or is told takes so long to arrive."""
        until = self.timeline.now + for_ms * MS
        self._blocked[owner] = max(until, self.blocked_until(owner))
        for link in self.links_of(owner):
            link.to_server.block(until)
            link.to_caller.block(until)

    def blocked_until(self, owner: str) -> int:
        return self._blocked.get(owner, 0)

    def clear_up(self, weather: Weather) -> None:
        """Better weather from here on; stalls end, and who was silent is heard of again."""
        self.weather = weather
        self._blocked.clear()
        for link in self.links_of():
            for pipe in (link.to_server, link.to_caller):
                pipe.weather = weather
                pipe.unblock()
            if not link.is_healthy:
                link.cut()
