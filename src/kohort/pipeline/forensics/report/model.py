"""A report as values: everything that the page and its JSON twin say, and nothing of how it looks.

Times are milliseconds since 1970. Names here are the twin's names, so they stay.
"""

from kohort.pipeline.forensics.report.material import (
    Absence,
    Bin,
    Finding,
    Laggard,
    Rebalance,
    Stretch,
)
from kohort.pipeline.forensics.report.pain import Need, Pain
from kohort.types import value


@value
class Answers:
    """The four questions anybody has, each answered in sentences."""

    why: str
    who: str
    cost: str
    change: str


@value
class Life:
    member_id: str
    from_ms: int
    to_ms: int | None
    from_generation: int
    to_generation: int
    ending: str | None
    is_exact: bool


@value
class Program:
    """A client under a name that stays, and all its memberships."""

    name: str
    began: int
    """Of the rebalances shown, how many began with it."""
    lives: tuple[Life, ...]


@value
class LagPoint:
    at_ms: int
    records: int
    seconds: float | None
    """The most that any partition was behind; None where it is not known."""


@value
class Group:
    """One line of the list of groups."""

    group_id: str
    need: Need
    pain: Pain
    sentence: str
    state: str | None
    protocol: str | None
    members: int
    partitions: int
    rebalances: int
    rebalances_per_hour: float
    rebalancing_share: float
    ownerless_ms: int
    ownerless_share: float
    starter: str | None
    """Who began the most; None where nobody stands out."""
    findings: tuple[str, ...]
    """The kinds, the gravest first."""
    lag_records: int | None
    lag_status: str | None
    """The worst of all its partitions."""
    exact: int
    confidence: float | None
    strip: tuple[Bin, ...]
    is_in_full: bool


@value
class Story:
    """A group in full."""

    group_id: str
    about: str
    """What it is, as this time ended."""
    answers: Answers
    knowledge: str
    findings: tuple[Finding, ...]
    shown_from_ms: int
    """What is older is in the figures, but not in the lists below."""
    left_out: tuple[str, ...]
    rebalances: tuple[Rebalance, ...]
    programs: tuple[Program, ...]
    places: tuple[tuple[str, int], ...]
    """Topics and partitions of the timeline."""
    stretches: tuple[Stretch, ...]
    absences: tuple[Absence, ...]
    lag: tuple[LagPoint, ...]
    laggards: tuple[Laggard, ...]


@value
class Report:
    headline: str
    worst: str
    """A sentence about the worst group; empty where none is in need."""
    since_ms: int | None
    until_ms: int | None
    bin_ms: int
    knowledge: str
    """What the data is, and what it cannot know."""
    is_exact: bool
    measure: str
    groups_total: int
    commits: int
    events: int
    undecodable: int
    left_out: tuple[str, ...]
    groups: tuple[Group, ...]
    stories: tuple[Story, ...]
