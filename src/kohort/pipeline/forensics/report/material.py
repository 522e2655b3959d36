"""What the report is made of: few and small rows, as they come out of the tables.

Pure, so that everything from here on is tested without Spark. Times are milliseconds since 1970.
"""

from kohort.types import value


@value
class Party:
    member_id: str | None
    instance_id: str | None
    client_id: str | None
    client_host: str | None

    @property
    def who(self) -> str:
        """A program by a name that stays when its member id changes, as findings call it."""
        if self.instance_id is not None:
            return self.instance_id
        if self.client_id is not None and self.client_host is not None:
            return f"{self.client_id} at {self.client_host}"
        return self.client_id or self.member_id or "nobody known"


@value
class Starter:
    """Somebody who began rebalances."""

    party: Party
    trigger: str
    """The way it mostly began them."""
    rebalances: int
    ownerless_ms: int


@value
class Found:
    """That there is a finding, for whoever ranks groups."""

    finding: str
    severity: str


@value
class Bin:
    """What a short stretch of time held; the first one of the report has number 0."""

    number: int
    rebalances: int
    ownerless_ms: int


@value
class Summary:
    """One group, in a row."""

    group_id: str
    state: str | None = None
    """Of its last generation: formed, emptied or deleted; None where it never had any."""
    protocol: str | None = None
    members: int = 0
    partitions: int = 0
    known_ms: int = 0
    """For how long it had members or rebalanced."""
    rebalances: int = 0
    exact: int = 0
    """Of those, how many events tell of."""
    confidence: float | None = None
    """The mean of those that no event tells of."""
    rebalancing_ms: int = 0
    ownerless_ms: int = 0
    moved: int = 0
    moved_needlessly: int = 0
    replayed: int | None = None
    lag_records: int | None = None
    statuses: tuple[tuple[str, int], ...] = ()
    """Partitions by the status of their lag."""
    triggers: tuple[tuple[str, int], ...] = ()
    """How many rebalances began in which way, the most frequent first."""
    starters: tuple[Starter, ...] = ()
    """Those who began the most."""
    starters_total: int = 0
    findings: tuple[Found, ...] = ()
    bins: tuple[Bin, ...] = ()


@value
class Overview:
    """All groups, and what the tables hold."""

    since_ms: int | None
    until_ms: int | None
    """None where there is nothing at all."""
    bin_ms: int
    groups: int
    """How many there are, those without a summary included."""
    commits: int
    events: int
    undecodable: int
    summaries: tuple[Summary, ...]


@value
class Rebalance:
    generation_before: int | None
    generation: int | None
    started_ms: int | None
    ended_ms: int | None
    duration_ms: int | None
    join_ms: int | None
    sync_ms: int | None
    ending: str | None
    trigger: str | None
    culprit: Party | None
    client_reason: str | None
    confidence: float | None
    is_exact: bool
    is_cooperative: bool | None
    members_before: int | None
    members_after: int | None
    joined: tuple[Party, ...]
    """The first few of them."""
    joined_total: int
    departed: tuple[Party, ...]
    """The first few of them."""
    departed_total: int
    slowest: Party | None
    slowest_join_ms: int | None
    moved: int | None
    moved_needlessly: int | None
    ownerless_ms: int | None
    replayed: int | None


@value
class Life:
    """One membership."""

    party: Party
    from_generation: int
    to_generation: int
    from_ms: int
    to_ms: int | None
    ending: str | None
    is_exact: bool


@value
class Stretch:
    """Partitions that a member got and lost together."""

    member_id: str
    client_id: str | None
    instance_id: str | None
    from_ms: int
    to_ms: int | None
    gap_before_ms: int | None
    places: tuple[tuple[str, int], ...]


@value
class Absence:
    """A group without any member."""

    from_ms: int
    to_ms: int | None


@value
class LagStep:
    """How much further behind a group was than in the step before; sums up to its lag."""

    number: int
    change: int
    seconds: float | None
    """The most that any partition was behind."""


@value
class Laggard:
    """A partition whose lag has a word other than ok."""

    topic: str
    partition: int
    status: str
    since_ms: int | None
    lag_records: int | None
    owner: str | None
    reason: str


@value
class Finding:
    finding: str
    severity: str
    subject: str | None
    from_ms: int | None
    to_ms: int | None
    count: int | None
    what: str
    advice: str
    setting: str | None
    would_have_saved_ms: int | None
    evidence: str | None


@value
class Detail:
    """Everything the report shows of one group; lists may be cut, their totals are not."""

    group_id: str
    rebalances: tuple[Rebalance, ...] = ()
    """In their order; the last ones, if there are too many."""
    lives: tuple[Life, ...] = ()
    lives_total: int = 0
    stretches: tuple[Stretch, ...] = ()
    stretches_total: int = 0
    places_total: int = 0
    absences: tuple[Absence, ...] = ()
    lag: tuple[LagStep, ...] = ()
    lag_step_ms: int = 0
    laggards: tuple[Laggard, ...] = ()
    findings: tuple[Finding, ...] = ()
    findings_total: int = 0
