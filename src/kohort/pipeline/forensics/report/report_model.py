"""The values of a report, and the report as JSON. Pure.

`ReportOverview` and `DetailRows` hold the rows that Spark computes from the tables. `Report` is
what the page shows. The JSON version has the fields of `Report` under the same names, so a renamed
field needs a new VERSION. Times are milliseconds since 1970.
"""

import json
from dataclasses import fields, is_dataclass
from enum import StrEnum
from typing import Any, Final

from kohort.types import value

FORMAT: Final = "kohort-forensics-report"
VERSION: Final = 2
"""Incremented when a name is changed or removed, not when one is added."""


# Rows of the tables


@value
class ClientIdentity:
    member_id: str | None
    instance_id: str | None
    client_id: str | None
    client_host: str | None

    @property
    def who(self) -> str:
        """A name of the client that does not change with its member id, as in findings."""
        if self.instance_id is not None:
            return self.instance_id
        if self.client_id is not None and self.client_host is not None:
            return f"{self.client_id} at {self.client_host}"
        return self.client_id or self.member_id or "unknown"


@value
class Initiator:
    """A client that started rebalances."""

    identity: ClientIdentity
    trigger: str
    """Its most frequent trigger."""
    rebalances: int
    ownerless_ms: int


@value
class FindingKind:
    """A kind of finding that a group has, for ranking."""

    finding: str
    severity: str


@value
class Bin:
    """The rebalances of one time bin; the first bin of the report has number 0."""

    number: int
    rebalances: int
    ownerless_ms: int


@value
class GroupSummary:
    """The metrics by which a group is ranked and listed."""

    group_id: str
    state: str | None = None
    """Of its last generation: formed, emptied or deleted; None if it never had one."""
    protocol: str | None = None
    members: int = 0
    partitions: int = 0
    known_ms: int = 0
    """How long it had members or rebalanced."""
    rebalances: int = 0
    exact: int = 0
    """How many of them are recorded by events."""
    confidence: float | None = None
    """The mean over those that are not recorded by events."""
    rebalancing_ms: int = 0
    ownerless_ms: int = 0
    moved: int = 0
    moved_needlessly: int = 0
    replayed: int | None = None
    lag_records: int | None = None
    statuses: tuple[tuple[str, int], ...] = ()
    """Partitions by the status of their lag."""
    triggers: tuple[tuple[str, int], ...] = ()
    """Rebalances by trigger, the most frequent first."""
    initiators: tuple[Initiator, ...] = ()
    """The clients that started the most rebalances."""
    initiators_total: int = 0
    findings: tuple[FindingKind, ...] = ()
    bins: tuple[Bin, ...] = ()


@value
class ReportOverview:
    """All groups, and how much data the tables have."""

    since_ms: int | None
    until_ms: int | None
    """None if there is no data."""
    bin_ms: int
    groups: int
    """The number of groups, including those without a summary."""
    commits: int
    events: int
    undecodable: int
    summaries: tuple[GroupSummary, ...]


@value
class RebalanceRow:
    generation_before: int | None
    generation: int | None
    started_ms: int | None
    ended_ms: int | None
    duration_ms: int | None
    join_ms: int | None
    sync_ms: int | None
    ending: str | None
    trigger: str | None
    initiator: ClientIdentity | None
    client_reason: str | None
    confidence: float | None
    is_exact: bool
    is_cooperative: bool | None
    members_before: int | None
    members_after: int | None
    joined: tuple[ClientIdentity, ...]
    """The first few."""
    joined_total: int
    departed: tuple[ClientIdentity, ...]
    """The first few."""
    departed_total: int
    slowest: ClientIdentity | None
    slowest_join_ms: int | None
    moved: int | None
    moved_needlessly: int | None
    ownerless_ms: int | None
    replayed: int | None


@value
class MembershipPeriod:
    """One membership."""

    member_id: str
    from_ms: int
    to_ms: int | None
    from_generation: int
    to_generation: int
    ending: str | None
    is_exact: bool


@value
class OwnershipPeriod:
    """Partitions that a member owned from and until the same time."""

    member_id: str
    client_id: str | None
    instance_id: str | None
    from_ms: int
    to_ms: int | None
    gap_before_ms: int | None
    partitions: tuple[tuple[str, int], ...]


@value
class EmptyPeriod:
    """A time in which the group had no member."""

    from_ms: int
    to_ms: int | None


@value
class LagStep:
    """The change of a group's lag in one time step; the sum of all changes is its lag."""

    number: int
    change: int
    seconds: float | None
    """The largest lag of any partition."""


@value
class LaggingPartition:
    """A partition whose lag status is not ok."""

    topic: str
    partition: int
    status: str
    since_ms: int | None
    lag_records: int | None
    owner: str | None
    reason: str


@value
class FindingRow:
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
class DetailRows:
    """All rows that the report shows of one group; long lists are truncated, totals are not."""

    group_id: str
    rebalances: tuple[RebalanceRow, ...] = ()
    """The latest first; the oldest are left out if there are too many."""
    memberships: tuple[tuple[ClientIdentity, MembershipPeriod], ...] = ()
    """Each with its client, the latest first."""
    memberships_total: int = 0
    ownership: tuple[OwnershipPeriod, ...] = ()
    ownership_total: int = 0
    partitions_total: int = 0
    empty_periods: tuple[EmptyPeriod, ...] = ()
    lag: tuple[LagStep, ...] = ()
    lag_step_ms: int = 0
    lagging_partitions: tuple[LaggingPartition, ...] = ()
    findings: tuple[FindingRow, ...] = ()
    findings_total: int = 0


# The report


class GroupStatus(StrEnum):
    CRITICAL = "critical"
    """At least one finding is critical."""
    WARNING = "warning"
    """At least one warning, or many rebalances."""
    HEALTHY = "healthy"


@value
class SeverityScore:
    findings: float
    ownerless: float
    rebalancing: float
    rate: float
    lag: float

    @property
    def total(self) -> float:
        return round(self.findings + self.ownerless + self.rebalancing + self.rate + self.lag, 1)


@value
class GroupAnswers:
    """Why the group rebalances, which client started it, what it cost and what to change."""

    why: str
    who: str
    cost: str
    change: str


@value
class ClientMemberships:
    """A client, by a name that does not change with its member id, and all its memberships."""

    name: str
    rebalances_started: int
    """How many of the listed rebalances it started."""
    memberships: tuple[MembershipPeriod, ...]


@value
class LagPoint:
    at_ms: int
    records: int
    seconds: float | None
    """The largest lag of any partition; None if unknown."""


@value
class GroupRow:
    """One row of the list of groups."""

    group_id: str
    status: GroupStatus
    severity: SeverityScore
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
    initiator: str | None
    """The client that started the most; None if no client stands out."""
    findings: tuple[str, ...]
    """The kinds, the most severe first."""
    lag_records: int | None
    lag_status: str | None
    """The worst of all its partitions."""
    exact: int
    confidence: float | None
    bins: tuple[Bin, ...]
    has_details: bool


@value
class GroupDetails:
    """One group in detail."""

    group_id: str
    about: str
    """Its members, partitions and lag at the end of the report's time."""
    answers: GroupAnswers
    knowledge: str
    findings: tuple[FindingRow, ...]
    shown_from_ms: int
    """Older rows count in the figures but are not in the lists below."""
    omitted: tuple[str, ...]
    rebalances: tuple[RebalanceRow, ...]
    clients: tuple[ClientMemberships, ...]
    partitions: tuple[tuple[str, int], ...]
    """The partitions on the timeline."""
    ownership: tuple[OwnershipPeriod, ...]
    empty_periods: tuple[EmptyPeriod, ...]
    lag: tuple[LagPoint, ...]
    lagging_partitions: tuple[LaggingPartition, ...]


@value
class Report:
    headline: str
    worst: str
    """A sentence about the most severe group; empty if all groups are healthy."""
    since_ms: int | None
    until_ms: int | None
    bin_ms: int
    knowledge: str
    """What the data is, and what it cannot show."""
    is_exact: bool
    severity_help: str
    groups_total: int
    commits: int
    events: int
    undecodable: int
    omitted: tuple[str, ...]
    groups: tuple[GroupRow, ...]
    details: tuple[GroupDetails, ...]


def report_as_json(report: Report, *, indent: int | None = None) -> str:
    shown = {"format": FORMAT, "version": VERSION, **plain(report)}
    return json.dumps(shown, ensure_ascii=False, indent=indent, allow_nan=False)


def plain(each: Any) -> Any:
    """Dataclasses as dicts, tuples as lists."""
    if is_dataclass(each):
        shown = {field.name: plain(getattr(each, field.name)) for field in fields(each)}
        return shown | ({"total": each.total} if hasattr(each, "total") else {})
    if isinstance(each, tuple | list):
        return [plain(item) for item in each]
    return each
