"""What a demo tells while it runs, as values; how they are said is in `words`."""

from collections.abc import Mapping

from kohort.demo.schedule import Act, Roles
from kohort.types import Generation, GroupId, Millis, value


@value
class Opened:
    """Everything is up."""

    console: str
    """The address to open."""
    token: str | None
    """What the console asks for before it changes anything; None on this machine alone."""
    bootstrap_servers: str
    seed: int
    roles: Roles


@value
class LeftOut:
    """Something that is not shown in this run."""

    what: str
    why: str


@value
class Acted:
    """The schedule was followed."""

    act: Act


@value
class Rebalanced:
    """The story of one rebalance, as the coordinator tells it."""

    group_id: GroupId
    generation: Generation
    ending: str
    trigger: str
    culprit: str | None
    """The client id of who began it."""
    reason: str | None
    """What that client said."""
    took_ms: Millis
    members: int
    """Of the new generation."""


@value
class Returned:
    """A static member came back, and its group went on without a rebalance."""

    group_id: GroupId
    name: str


@value
class SparkReady:
    """Its JVM has started."""


@value
class Ingested:
    """How Spark's ingest stands."""

    rows: int
    bad: int
    lag: int | None


@value
class Found:
    """One finding of the forensics."""

    group_id: str
    finding: str
    severity: str
    what: str
    advice: str


@value
class Explaining:
    """Tables and report are being made, which takes a while."""


@value
class Explained:
    """A report was written."""

    path: str
    rebalances: int
    findings: tuple[Found, ...]
    seconds: float


@value
class Died:
    """A part ended that should not have."""

    part: str
    why: str


@value
class Ending:
    """From here on everything is being ended."""

    why: str


@value
class Place:
    """Something that stays when the demo has ended."""

    what: str
    path: str


@value
class Summary:
    """The last word."""

    seconds: float
    produced: int
    consumed: Mapping[GroupId, int]
    """Records that the programs of a service were given; after a crash, some of them twice."""
    lag: Mapping[GroupId, int]
    """What they had not committed when the last order was placed; without those not known."""
    ingested: int | None
    bad: int | None
    triggers: Mapping[str, Mapping[GroupId, int]]
    """How many rebalances began with what."""
    returned: int
    """Static members that came back unnoticed."""
    findings: tuple[Found, ...]
    places: tuple[Place, ...]
    died: tuple[Died, ...]


Line = (
    LeftOut
    | Acted
    | Rebalanced
    | Returned
    | SparkReady
    | Ingested
    | Explaining
    | Explained
    | Died
    | Ending
)
"""News that one line can tell."""

News = Opened | Line | Summary


@value
class Told:
    """News, and when they came."""

    at_ms: Millis
    """Since the beginning."""
    news: News
