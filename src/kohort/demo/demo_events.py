"""The events that a demo reports while it runs. `event_text` formats them."""

from collections.abc import Mapping

from kohort.demo.schedule import Action, Roles
from kohort.types import Generation, GroupId, Millis, value


@value
class DemoStarted:
    """All parts are running."""

    console_url: str
    token: str | None
    """Token that the console requires for changes; None on a loopback address."""
    bootstrap_servers: str
    seed: int
    roles: Roles


@value
class PartSkipped:
    """A part of the demo that this run does not have."""

    what: str
    why: str


@value
class ActionTaken:
    action: Action


@value
class GroupRebalanced:
    """A rebalance ended, as reported by the coordinator."""

    group_id: GroupId
    generation: Generation
    result: str
    trigger: str
    initiator: str | None
    """Client id of the member that caused the rebalance."""
    reason: str | None
    """Reason that the client gave."""
    took_ms: Millis
    members: int
    """Members of the new generation."""


@value
class StaticMemberReturned:
    """A static member rejoined without a rebalance."""

    group_id: GroupId
    name: str


@value
class SparkStarted:
    """Spark's JVM has started."""


@value
class OrdersIngested:
    """Progress of Spark's ingest."""

    rows: int
    bad: int
    lag: int | None


@value
class ReportFinding:
    """One finding of the forensics report."""

    group_id: str
    finding: str
    severity: str
    what: str
    advice: str


@value
class ReportStarted:
    """Spark builds the tables and the report, which takes a while."""


@value
class ReportWritten:
    path: str
    rebalances: int
    findings: tuple[ReportFinding, ...]
    seconds: float


@value
class PartFailed:
    """A part ended unexpectedly."""

    part: str
    why: str


@value
class DemoStopping:
    """The demo begins to shut down."""

    why: str


@value
class OutputPath:
    """A file or directory that remains after the demo."""

    what: str
    path: str


@value
class DemoSummary:
    """The last event."""

    seconds: float
    produced: int
    consumed: Mapping[GroupId, int]
    """Records that the consumers of a service received; after a crash, some of them twice."""
    lag: Mapping[GroupId, int]
    """Records not committed when the last order was placed. Has only groups whose lag is known."""
    ingested: int | None
    bad: int | None
    triggers: Mapping[str, Mapping[GroupId, int]]
    """Number of rebalances by trigger and group."""
    returned: int
    """Number of static members that rejoined without a rebalance."""
    findings: tuple[ReportFinding, ...]
    paths: tuple[OutputPath, ...]
    failures: tuple[PartFailed, ...]


LoggedEvent = (
    PartSkipped
    | ActionTaken
    | GroupRebalanced
    | StaticMemberReturned
    | SparkStarted
    | OrdersIngested
    | ReportStarted
    | ReportWritten
    | PartFailed
    | DemoStopping
)
"""Events that are printed as one line."""

DemoEvent = DemoStarted | LoggedEvent | DemoSummary


@value
class TimedEvent:
    at_ms: Millis
    """Time since the start of the demo."""
    event: DemoEvent
