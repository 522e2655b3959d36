"""What the picture answers with. Values: they stay as they are while the picture goes on.

Moments are milliseconds since 1970. Names here are those of the console's JSON, so they stay.
"""

from enum import StrEnum
from typing import Final

from kohort.client.topic_partition import TopicPartition
from kohort.types import Generation, GroupId, InstanceId, MemberId, Millis, Offset, Topic, value

REBALANCING: Final = frozenset({"PreparingRebalance", "CompletingRebalance"})
"""Of a classic group. A group of KIP-848 says Assigning and Reconciling."""

MOVING: Final = REBALANCING | {"Assigning", "Reconciling"}


class Need(StrEnum):
    """How soon a group wants somebody's eyes."""

    NOW = "now"
    SOON = "soon"
    NONE = "none"


class Standing(StrEnum):
    """How a group stands in one partition."""

    OK = "ok"
    BEHIND = "behind"
    STALLED = "stalled"
    """Somebody has it, there is something to read, and its offset does not move."""
    STOPPED = "stopped"
    """Nobody has it, and there is something to read."""
    UNKNOWN = "unknown"
    """Nothing is committed, or the log's end is not known."""


@value
class Party:
    """Who: enough to find the process behind a member id."""

    member_id: MemberId
    instance_id: InstanceId | None
    client_id: str
    client_host: str


@value
class Member:
    party: Party
    is_leader: bool
    session_timeout_ms: Millis | None
    rebalance_timeout_ms: Millis | None
    topics: tuple[Topic, ...]
    """That it subscribes to."""
    holds: tuple[TopicPartition, ...] | None
    """None where its assignment is not one that a consumer can read."""


@value
class Reading:
    """How a group stands in one partition."""

    partition: TopicPartition
    committed: Offset | None
    committed_ms: Millis | None
    moved_ms: Millis | None
    """When the committed offset was last seen to change."""
    metadata: str
    log_end: Offset | None
    lag: int | None
    standing: Standing
    owner: Party | None
    trend: tuple[int | None, ...]
    """Its lag at the moments of the group's `trend_ms`, of which it has the last ones."""


@value
class Participant:
    """A member's part in a rebalance; what is not known is None."""

    party: Party
    join_took_ms: Millis | None
    sync_took_ms: Millis | None
    had: tuple[TopicPartition, ...] | None
    got: tuple[TopicPartition, ...] | None


@value
class Removal:
    party: Party
    departure: str | None


@value
class Rebalance:
    """One rebalance, as far as it is known: from events all of it, else what came of it."""

    key: str
    """Names it within its group, also for another console or after a restart."""
    is_exact: bool
    """Whether the coordinator's own events tell it."""
    generation_before: Generation | None
    generation: Generation
    started_ms: Millis | None
    joined_ms: Millis | None
    """When the join phase was over."""
    ended_ms: Millis | None
    """None while it is under way."""
    trigger: str | None
    culprit: Party | None
    client_reason: str | None
    state_before: str | None
    join_ended_by: str | None
    ending: str | None
    protocol: str | None
    leader: MemberId | None
    waited_for: tuple[MemberId, ...]
    """While it is under way: who must join again."""
    participants: tuple[Participant, ...]
    removals: tuple[Removal, ...]
    """Who is out in the course of it."""
    newcomers: tuple[MemberId, ...] = ()
    """Where it is the difference of two generations: who was not in the one before."""


@value
class Move:
    """A partition that has another owner than before."""

    partition: TopicPartition
    before: Party | None
    after: Party | None


@value
class Stretch:
    """Somebody held a partition for a while."""

    partition: TopicPartition
    party: Party
    from_ms: Millis | None
    """None: longer than anybody knows here."""
    to_ms: Millis | None
    """None while it is held."""


@value
class GroupRow:
    """A group in a list."""

    group_id: GroupId
    state: str
    kind: str
    """classic or consumer; empty where the cluster does not tell."""
    protocol: str
    generation: Generation | None
    members: int
    topics: int
    partitions: int
    lag: int | None
    """Of all partitions; None where none of them is known."""
    lag_max: int | None
    lag_trend: tuple[int | None, ...]
    rebalances: int
    """Within the last hour."""
    last_rebalance_ms: Millis | None
    last_commit_ms: Millis | None
    need: Need
    reasons: tuple[str, ...]
    """Of its need, in words."""


@value
class GroupView:
    """All that is known of a group."""

    row: GroupRow
    state_since_ms: Millis | None
    leader: MemberId | None
    protocol_type: str
    formed_ms: Millis | None
    """When the present generation was formed."""
    members: tuple[Member, ...]
    readings: tuple[Reading, ...]
    rebalances: tuple[Rebalance, ...]
    """The newest last."""
    stretches: tuple[Stretch, ...]
    lag_trend: tuple[int | None, ...]
    """The group's lag over the last hour."""
    trend_ms: tuple[Millis, ...]
    """The moments of the lags in trends, which have the last ones of them."""


@value
class GroupWish:
    """Which groups of a list, and in which order."""

    search: str = ""
    """Part of a group id, in small or capital letters."""
    state: str = ""
    need: str = ""
    sort: str = "need"
    is_descending: bool = True
    page: int = 1
    per_page: int = 50


@value
class GroupPage:
    rows: tuple[GroupRow, ...]
    found: int
    """How many groups the wish matches, on all pages."""
    page: int
    pages: int


@value
class RecentRebalance:
    group_id: GroupId
    rebalance: Rebalance


@value
class Overview:
    groups: int
    states: tuple[tuple[str, int], ...]
    """How many groups are in each state, the most first."""
    needs: tuple[tuple[Need, int], ...]
    members: int
    lag: int | None
    lag_trend: tuple[int | None, ...]
    trend_ms: tuple[Millis, ...]
    rebalances: int
    """Within the last hour."""
    rebalances_by_minute: tuple[int, ...]
    """The last 60 minutes, the present one last."""
    worst: tuple[GroupRow, ...]
    recent: tuple[RecentRebalance, ...]
    """The newest first."""
    is_exact: bool
