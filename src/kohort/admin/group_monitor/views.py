"""Immutable views that `ClusterState` returns.

Timestamps are milliseconds since 1970. Attribute names are the field names of the console's JSON.
"""

from enum import StrEnum
from typing import Final

from kohort.events.schema import EventMember, EventParticipant
from kohort.types import (
    Generation,
    GroupId,
    MemberId,
    Millis,
    Offset,
    Topic,
    TopicPartition,
    value,
)

CLASSIC_REBALANCING: Final = frozenset({"PreparingRebalance", "CompletingRebalance"})
"""States of a classic group. A KIP-848 group has Assigning and Reconciling instead."""

REBALANCING: Final = CLASSIC_REBALANCING | {"Assigning", "Reconciling"}


class Status(StrEnum):
    CRITICAL = "critical"
    WARNING = "warning"
    HEALTHY = "healthy"


class PartitionStatus(StrEnum):
    """Whether a group makes progress in one partition."""

    OK = "ok"
    BEHIND = "behind"
    STALLED = "stalled"
    """It has an owner and lag, and its committed offset does not change."""
    STOPPED = "stopped"
    """It has lag and no owner."""
    UNKNOWN = "unknown"
    """Nothing is committed, or the log end offset is not known."""


@value
class MonitoredMember:
    party: EventMember
    is_leader: bool
    session_timeout_ms: Millis | None
    rebalance_timeout_ms: Millis | None
    topics: tuple[Topic, ...]
    """Its subscription."""
    partitions: tuple[TopicPartition, ...] | None
    """Its assignment. None if the assignment is not in the consumer protocol."""


@value
class PartitionOffsets:
    """The offsets and lag of a group in one partition."""

    partition: TopicPartition
    committed: Offset | None
    committed_ms: Millis | None
    moved_ms: Millis | None
    """When the committed offset last changed."""
    metadata: str
    log_end: Offset | None
    lag: int | None
    status: PartitionStatus
    owner: EventMember | None
    trend: tuple[int | None, ...]
    """The lag at the last timestamps of the group's `trend_ms`."""


@value
class DepartedMember:
    party: EventMember
    departure: str | None


@value
class ObservedRebalance:
    """One rebalance. Complete if it comes from events, else only its result is known."""

    key: str
    """Identifies it within its group. The same on other consoles and after a restart."""
    is_exact: bool
    """Whether it comes from the coordinator's events."""
    generation_before: Generation | None
    generation: Generation
    started_ms: Millis | None
    joined_ms: Millis | None
    """When the join phase ended."""
    ended_ms: Millis | None
    """None while the rebalance is in progress."""
    trigger: str | None
    initiator: EventMember | None
    client_reason: str | None
    state_before: str | None
    join_ended_by: str | None
    ending: str | None
    protocol: str | None
    leader: MemberId | None
    waited_for: tuple[MemberId, ...]
    """While it is in progress: the members that must rejoin."""
    participants: tuple[EventParticipant, ...]
    removals: tuple[DepartedMember, ...]
    """Members that left or were removed during the rebalance."""
    newcomers: tuple[MemberId, ...] = ()
    """Without events: members that were not in the previous generation."""


@value
class PartitionMove:
    """A partition whose owner changed."""

    partition: TopicPartition
    before: EventMember | None
    after: EventMember | None


@value
class OwnershipInterval:
    """The time in which one member owned a partition."""

    partition: TopicPartition
    party: EventMember
    from_ms: Millis | None
    """None if it began before the oldest known rebalance."""
    to_ms: Millis | None
    """None while the member owns it."""


@value
class MonitoredGroupRow:
    """A group in a list."""

    group_id: GroupId
    state: str
    kind: str
    """classic or consumer; empty if the cluster does not report it."""
    protocol: str
    generation: Generation | None
    members: int
    topics: int
    partitions: int
    lag: int | None
    """Sum over all partitions with a known lag; None if there are none."""
    lag_max: int | None
    lag_trend: tuple[int | None, ...]
    rebalances: int
    """Within the last hour."""
    last_rebalance_ms: Millis | None
    last_commit_ms: Millis | None
    status: Status
    reasons: tuple[str, ...]
    """Why it has this status, as text."""


@value
class GroupView:
    """Everything that is known about a group."""

    row: MonitoredGroupRow
    state_since_ms: Millis | None
    leader: MemberId | None
    protocol_type: str
    formed_ms: Millis | None
    """When the current generation was formed."""
    members: tuple[MonitoredMember, ...]
    offsets: tuple[PartitionOffsets, ...]
    rebalances: tuple[ObservedRebalance, ...]
    """The newest last."""
    ownership: tuple[OwnershipInterval, ...]
    lag_trend: tuple[int | None, ...]
    """The group's lag over the last hour."""
    trend_ms: tuple[Millis, ...]
    """The timestamps of lag trends. A shorter trend has the last ones."""


@value
class GroupQuery:
    """Filter, order and page of a list of groups."""

    search: str = ""
    """Part of a group id; case does not matter."""
    state: str = ""
    status: str = ""
    sort: str = "status"
    is_descending: bool = True
    page: int = 1
    per_page: int = 50


@value
class GroupPage:
    rows: tuple[MonitoredGroupRow, ...]
    found: int
    """Number of groups that match the query, on all pages."""
    page: int
    pages: int


@value
class RecentRebalance:
    group_id: GroupId
    rebalance: ObservedRebalance


@value
class ClusterOverview:
    groups: int
    states: tuple[tuple[str, int], ...]
    """Number of groups by state, the largest first."""
    statuses: tuple[tuple[Status, int], ...]
    members: int
    lag: int | None
    lag_trend: tuple[int | None, ...]
    trend_ms: tuple[Millis, ...]
    rebalances: int
    """Within the last hour."""
    rebalances_by_minute: tuple[int, ...]
    """The last 60 minutes, the current one last."""
    worst: tuple[MonitoredGroupRow, ...]
    recent: tuple[RecentRebalance, ...]
    """The newest first."""
    is_exact: bool
