"""Everything about a run that is decided before it begins: who is there, and what will befall them.

A plan is plain data. A seed draws one; a failure shrinks its own; a file keeps one for ever.
"""

from enum import StrEnum

from kohort.sim.network import Weather
from kohort.types import value


class Kind(StrEnum):
    """What can befall somebody. The second half of each line says what `amount` means."""

    NODE_KILL = "node-kill"
    """The node's process dies; down for so many ms."""
    NODE_POWER = "node-power"
    """The machine loses power; down for so many ms."""
    NODE_STOP = "node-stop"
    """The node is stopped in good order; down for so many ms."""
    DISK_FULL = "disk-full"
    """Nothing can be written; for so many ms."""
    SYNC_FAILS = "sync-fails"
    """The next sync fails."""
    SYNC_SLOW = "sync-slow"
    """Syncs take twenty times as long; for so many ms."""
    CLOCK_JUMP = "clock-jump"
    """The node's clock moves by so many ms."""
    CUT = "cut"
    """All connections of somebody break."""
    SILENCE = "silence"
    """All connections of somebody go silent, and neither end is told."""
    STALL = "stall"
    """Nothing somebody says or is told arrives; for so many ms."""
    CRASH = "crash"
    """A member's process dies, and another is started after so many ms; after 0, none."""
    VANISH = "vanish"
    """As crash, but with its machine: nobody closes its connections."""
    PAUSE = "pause"
    """A member's process does nothing at all, not even notice time; for so many ms."""
    BUSY = "busy"
    """A member's program is busy and does not poll; for so many ms."""
    LEAVE = "leave"
    """A member closes in good order, and comes back after so many ms; after 0, never."""
    SUBSCRIBE = "subscribe"
    """A member wants other topics: those whose bits are set in the amount."""
    REJOIN = "rejoin"
    """A member's program asks for a rebalance."""
    TWIN = "twin"
    """A second process is started under the name of a static member that is still there."""
    GHOST = "ghost"
    """What a member said earlier arrives again, on another connection: the amount picks it."""
    GROW = "grow"
    """A topic gets so many more partitions."""


ORDERLY = frozenset({Kind.LEAVE, Kind.SUBSCRIBE, Kind.REJOIN, Kind.GROW})
"""What happens in a good world too."""


@value
class Decision:
    """One thing that will happen, if it still can when its time has come."""

    number: int
    """Its own for ever, so that chance which belongs to it stays its own as well."""
    at_ms: int
    kind: Kind
    target: str = ""
    """A member's or producer's name, or a topic's."""
    amount: int = 0
    operations: int = 0
    """For the node's deaths: how many disk operations later it happens; 0 at once."""


class Commits(StrEnum):
    AUTO = "auto"
    SYNC = "sync"
    ASYNC = "async"


@value
class MemberPlan:
    name: str
    group: str
    start_ms: int
    topics: int
    """Bits of the topics it wants."""
    instance_id: str | None
    assignors: tuple[str, ...]
    commits: Commits
    commit_interval_ms: int
    session_ms: int
    heartbeat_ms: int
    max_poll_ms: int
    request_ms: int
    batch_max: int
    """Records it takes from one poll."""
    record_ms: float
    """How long it works on one."""
    fetch_wait_ms: int
    is_old: bool
    """Speaks the oldest versions it may."""


@value
class ProducerPlan:
    name: str
    is_idempotent: bool
    acks: int
    interval_ms: int
    records_max: int
    """In one batch."""


@value
class Plan:
    seed: int
    durability: str
    faulty_ms: int
    """How long things may go wrong."""
    topics: tuple[int, ...]
    """How many partitions each has."""
    segment_bytes: int
    """Of every topic; then the groups' own has small ones too. 0 for large ones."""
    offsets_partitions: int
    initial_delay_ms: int
    housekeeping_ms: int
    idle_ms: int
    sync_ms: tuple[float, float]
    weather: Weather
    members: tuple[MemberPlan, ...]
    producers: tuple[ProducerPlan, ...]
    decisions: tuple[Decision, ...]
    last_victim: str = ""
    """The member that dies for good together with the node, when all is well at last."""

    @property
    def is_orderly(self) -> bool:
        """Whether nothing goes wrong: then nothing may be done twice."""
        return not self.weather.stall_chance and all(d.kind in ORDERLY for d in self.decisions)


def topic_name(index: int) -> str:
    return f"t{index}"


def topics_in(bits: int, count: int) -> tuple[str, ...]:
    """The topics whose bits are set; the first one if none is."""
    chosen = tuple(topic_name(index) for index in range(count) if bits >> index & 1)
    return chosen or (topic_name(0),)
