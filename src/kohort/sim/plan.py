"""The plan of a run: topics, members, producers, network conditions and events. Plain data.

A seed generates a plan, the shrinker makes it smaller, and a plan file stores it.
"""

from enum import StrEnum

from kohort.sim.network import NetworkConditions
from kohort.types import value


class EventKind(StrEnum):
    """What can happen. The second part of each line is the meaning of `amount`."""

    NODE_KILL = "node-kill"
    """The node's process is killed; downtime in ms."""
    NODE_POWER = "node-power"
    """The node's host loses power; downtime in ms."""
    NODE_STOP = "node-stop"
    """The node shuts down cleanly; downtime in ms."""
    DISK_FULL = "disk-full"
    """Writes fail; duration in ms."""
    SYNC_FAILS = "sync-fails"
    """The next sync fails."""
    SYNC_SLOW = "sync-slow"
    """Syncs take twenty times as long; duration in ms."""
    CLOCK_JUMP = "clock-jump"
    """The wall clock of the node's host is set, forward or back; by this many ms."""
    NODE_SUSPEND = "node-suspend"
    """The node's process is suspended, while clients go on; duration in ms."""
    CUT = "cut"
    """All connections of a client break."""
    SILENCE = "silence"
    """All connections of a client go silent; neither endpoint notices."""
    STALL = "stall"
    """All data of a client is delayed; duration in ms."""
    CRASH = "crash"
    """A member's process is killed; ms until the next one starts, 0 for none."""
    VANISH = "vanish"
    """As crash, but with its host: its connections are not closed."""
    PAUSE = "pause"
    """A member's process is suspended; duration in ms."""
    BUSY = "busy"
    """A member's application does not poll; duration in ms."""
    LEAVE = "leave"
    """A member closes cleanly; ms until it comes back, 0 for never."""
    SUBSCRIBE = "subscribe"
    """A member subscribes to other topics; a bit mask of topics."""
    REJOIN = "rejoin"
    """A member's application requests a rebalance."""
    TWIN = "twin"
    """A second process starts with the instance id of a running static member."""
    GHOST = "ghost"
    """An old request of a member arrives again on another connection; picks the request."""
    PIPELINE = "pipeline"
    """An old request of a member, for odd amounts after a LeaveGroup of the member, is pipelined
    behind a long-poll fetch of `__consumer_offsets`; picks the request."""
    GROW = "grow"
    """A topic gets more partitions; their number."""


ORDERLY = frozenset(
    {
        EventKind.LEAVE,
        EventKind.SUBSCRIBE,
        EventKind.REJOIN,
        EventKind.GROW,
        EventKind.CLOCK_JUMP,
    }
)
"""Events that are not faults, and clock steps, which members must not notice."""


@value
class PlannedEvent:
    """One event. It is skipped if its target cannot do it then."""

    number: int
    """Unchanged by shrinking, because it names random streams."""
    at_ms: int
    kind: EventKind
    target: str = ""
    """The name of a member, producer or topic."""
    amount: int = 0
    operations: int = 0
    """For kill and power: delay in disk operations of the node; 0 for none."""


class CommitMode(StrEnum):
    AUTO = "auto"
    SYNC = "sync"
    ASYNC = "async"


@value
class MemberPlan:
    name: str
    group: str
    start_ms: int
    topics: int
    """Bit mask of the subscribed topics."""
    instance_id: str | None
    assignors: tuple[str, ...]
    commits: CommitMode
    commit_interval_ms: int
    session_ms: int
    heartbeat_ms: int
    max_poll_ms: int
    request_ms: int
    batch_max: int
    """max.poll.records."""
    record_ms: float
    """Processing time per record."""
    fetch_wait_ms: int
    is_old: bool
    """Uses the oldest API versions."""


@value
class ProducerPlan:
    name: str
    is_idempotent: bool
    acks: int
    interval_ms: int
    records_max: int
    """Per batch."""


@value
class SimulationPlan:
    seed: int
    durability: str
    faulty_ms: int
    """Duration of the phase with faults."""
    topics: tuple[int, ...]
    """Partition count of each topic."""
    segment_bytes: int
    """Segment size of all topics; then `__consumer_offsets` has small ones too. 0: default."""
    offsets_partitions: int
    initial_delay_ms: int
    housekeeping_ms: int
    idle_ms: int
    sync_ms: tuple[float, float]
    conditions: NetworkConditions
    members: tuple[MemberPlan, ...]
    producers: tuple[ProducerPlan, ...]
    events: tuple[PlannedEvent, ...]
    last_victim: str = ""
    """The member that is killed together with the node in the last crash."""

    @property
    def is_orderly(self) -> bool:
        """Whether there are no faults, so that no record may be processed twice."""
        return not self.conditions.stall_chance and all(d.kind in ORDERLY for d in self.events)


def topic_name(index: int) -> str:
    return f"t{index}"


def topics_in(bits: int, count: int) -> tuple[str, ...]:
    """The topics of a bit mask; the first topic if it is empty."""
    chosen = tuple(topic_name(index) for index in range(count) if bits >> index & 1)
    return chosen or (topic_name(0),)
