"""Simulated TCP connections: bytes arrive in order or not at all, with random delays.

Data is split at random positions. Lost packets only add delay. A connection may break, which both
endpoints notice, or go silent, which neither notices. There is no order between connections.
"""

from collections import deque
from collections.abc import Callable
from random import Random
from typing import Protocol

from kohort.types import value
from kohort.virtual_time.rng import RandomStreams
from kohort.virtual_time.scheduler import MS, Action, Scheduler


@value
class NetworkConditions:
    """Random delays, stalls and splits of a network."""

    delay_ms_min: float
    delay_ms_max: float
    stall_chance: float
    """Probability that data is delayed by a retransmission."""
    stall_ms_max: float
    split_chance: float
    """Probability that data arrives in pieces."""


class LinkEndpoint(Protocol):
    """One endpoint of a link."""

    def data_received(self, data: bytes) -> None: ...

    def connection_lost(self) -> None: ...


class LinkClient(LinkEndpoint, Protocol):
    def connected(self) -> None: ...


class LinkServer(Protocol):
    """Accepts connections."""

    def accept(self, link: "Link") -> LinkEndpoint | None:
        """None refuses the connection."""

    @property
    def is_reachable(self) -> bool:
        """Whether the host is up, so that it can refuse a connection."""


class Pipe:
    """One direction of a connection."""

    __slots__ = (
        "_blocked_until",
        "_deliver",
        "_is_paused",
        "_pump_at",
        "_rng",
        "_scheduler",
        "_under_way",
        "conditions",
        "is_muted",
    )

    def __init__(
        self,
        scheduler: Scheduler,
        conditions: NetworkConditions,
        rng: Random,
        deliver: Callable[[bytes], None],
    ) -> None:
        self._scheduler = scheduler
        self.conditions = conditions
        self._rng = rng
        self._deliver = deliver
        self._under_way: deque[tuple[int, bytes | Action]] = deque()
        """Data in flight with its earliest arrival time, in order."""
        self._pump_at: int | None = None
        self._blocked_until = 0
        self._is_paused = False
        self.is_muted = False

    def send(self, data: bytes) -> None:
        if self.is_muted:
            return
        rng, conditions = self._rng, self.conditions
        while len(data) > 1 and rng.random() < conditions.split_chance:
            size = rng.randrange(1, len(data))
            self._add(data[:size])
            data = data[size:]
        self._add(data)

    def finish(self, then: Action) -> None:
        """Run an action after all data in flight has arrived."""
        self._add(then)

    def mute(self) -> None:
        """Drop the data in flight and all later data."""
        self.is_muted = True
        self._under_way.clear()

    def block(self, until: int) -> None:
        """Deliver nothing before this time."""
        self._blocked_until = max(self._blocked_until, until)

    def unblock(self) -> None:
        self._blocked_until = 0
        self._plan()

    def pause(self, *, is_paused: bool) -> None:
        """The receiver stops reading; data waits."""
        self._is_paused = is_paused
        self._plan()

    def travel_time(self) -> int:
        conditions, rng = self.conditions, self._rng
        delay_ms = rng.uniform(conditions.delay_ms_min, conditions.delay_ms_max)
        if conditions.stall_chance and rng.random() < conditions.stall_chance:
            delay_ms += rng.uniform(conditions.delay_ms_max, conditions.stall_ms_max)
        return int(delay_ms * MS)

    def _add(self, what: bytes | Action) -> None:
        at = self._scheduler.now + self.travel_time()
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
            self._scheduler.after(at - self._scheduler.now, self._pump)

    def _pump(self) -> None:
        now = self._scheduler.now
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
    """One connection between a client and the node."""

    def __init__(
        self, network: "SimulatedNetwork", number: int, owner: str, client: LinkClient
    ) -> None:
        self._network = network
        self._scheduler = network.scheduler
        self.number = number
        self.owner = owner
        self._client: LinkClient | None = client
        self._server: LinkEndpoint | None = None
        rng = network.streams.named("link", owner, number)
        self.to_server = Pipe(self._scheduler, network.conditions, rng, self._reach_server)
        self.to_client = Pipe(self._scheduler, network.conditions, rng, self._reach_client)
        self.is_orphaned = False
        """The node's host has lost power and does not know this connection any more."""

    @property
    def name(self) -> str:
        return f"{self.owner}.{self.number}"

    @property
    def has_client(self) -> bool:
        return self._client is not None

    @property
    def is_healthy(self) -> bool:
        """Whether all data arrives eventually."""
        return not (self.is_orphaned or self.to_server.is_muted or self.to_client.is_muted)

    def open(self) -> None:
        until = self._network.blocked_until(self.owner)
        self.to_server.block(until)
        self.to_client.block(until)
        self.to_server.finish(self._accept)

    def _accept(self) -> None:
        listener = self._network.listener
        if self._client is None or not listener.is_reachable:
            return
        self._server = listener.accept(self)
        then = self._on_accepted if self._server is not None else self._lose_client
        self.to_client.finish(then)

    def _on_accepted(self) -> None:
        if self._client is not None and self._server is not None:
            self._client.connected()

    # Client side

    def send_to_server(self, data: bytes) -> None:
        if self.is_orphaned and self._network.listener.is_reachable:
            # A restarted host resets connections that it does not know.
            self.to_client.is_muted = False
            self.to_client.finish(self._lose_client)
            return
        self.to_server.send(data)

    def close(self) -> None:
        """The client closes, or its process ends; the node notices later."""
        self._client = None
        if not self.to_server.is_muted:
            self.to_server.finish(self._lose_server)
        self._network.forget(self)

    def vanish(self) -> None:
        """The client's host is gone; the node does not notice."""
        self._client = None
        self.mute()
        self._network.forget(self)

    # Node side

    def send_to_client(self, data: bytes) -> None:
        self.to_client.send(data)

    def close_by_server(self) -> None:
        """The node closes; data it has written still arrives."""
        self._server = None
        if not self.to_client.is_muted:
            self.to_client.finish(self._lose_client)

    # Faults

    def cut(self) -> None:
        """Break the connection. Both endpoints notice; data in flight is lost."""
        self.mute()
        delay = self.to_server.travel_time
        self._scheduler.after(delay(), self._lose_server)
        self._scheduler.after(delay(), self._lose_client)

    def mute(self) -> None:
        """Deliver nothing any more. No endpoint notices."""
        self.to_server.mute()
        self.to_client.mute()

    def process_died(self) -> None:
        """The node's process is gone; its operating system resets the connection."""
        self._server = None
        self.to_server.mute()
        if not self.to_client.is_muted:
            self.to_client.finish(self._lose_client)

    def power_lost(self) -> None:
        self._server = None
        self.is_orphaned = True
        self.mute()

    def _reach_server(self, data: bytes) -> None:
        if self._server is not None:
            self._server.data_received(data)

    def _reach_client(self, data: bytes) -> None:
        if self._client is not None:
            self._client.data_received(data)

    def _lose_server(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.connection_lost()

    def _lose_client(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            self._network.forget(self)
            client.connection_lost()


class SimulatedNetwork:
    def __init__(
        self,
        scheduler: Scheduler,
        streams: RandomStreams,
        conditions: NetworkConditions,
        listener: LinkServer,
    ) -> None:
        self.scheduler = scheduler
        self.streams = streams
        self.conditions = conditions
        self.listener = listener
        self._links: dict[str, Link] = {}
        self._opened: dict[str, int] = {}
        self._blocked: dict[str, int] = {}

    def connect(self, owner: str, client: LinkClient) -> Link:
        number = self._opened[owner] = self._opened.get(owner, 0) + 1
        link = Link(self, number, owner, client)
        self._links[link.name] = link
        link.open()
        return link

    def forget(self, link: Link) -> None:
        self._links.pop(link.name, None)

    def links_of(self, owner: str | None = None) -> list[Link]:
        """All links in the order of creation, or those of one client."""
        return [link for link in self._links.values() if owner in (None, link.owner)]

    def isolate(self, owner: str, for_ms: int) -> None:
        """Delay all data of this client."""
        until = self.scheduler.now + for_ms * MS
        self._blocked[owner] = max(until, self.blocked_until(owner))
        for link in self.links_of(owner):
            link.to_server.block(until)
            link.to_client.block(until)

    def blocked_until(self, owner: str) -> int:
        return self._blocked.get(owner, 0)

    def end_faults(self, conditions: NetworkConditions) -> None:
        """Use these conditions, end stalls and break silent connections."""
        self.conditions = conditions
        self._blocked.clear()
        for link in self.links_of():
            for pipe in (link.to_server, link.to_client):
                pipe.conditions = conditions
                pipe.unblock()
            if not link.is_healthy:
                link.cut()
