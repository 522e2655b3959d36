"""Counters and histograms of the node: plain numbers, because counting must be cheap.

They are written and read on the event loop, so they need no locks. State that can be read directly
(groups, logs, parked requests) has no counter: `metrics_table` reads it on each scrape.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Container, Iterable
from typing import Final, TypeVar, assert_never

from kohort.coordinator.events import (
    AppendFailed,
    CommitRefused,
    GroupDeleted,
    GroupEvent,
    InstanceReplaced,
    JoinPhaseExtended,
    MemberGone,
    MemberIdIssued,
    MemberJoined,
    OffsetsExpired,
    PendingExpired,
    RebalanceEnded,
    RebalanceResult,
    RebalanceStarted,
    StateChanged,
    Trigger,
)
from kohort.coordinator.records import OffsetCommitted, OffsetRemoved, OffsetsCommitted, Record
from kohort.node.request import Request
from kohort.types import ErrorCode, GroupId, Millis
from kohort.wire.api import KEYS

K = TypeVar("K")

OTHER: Final = "(other)"
"""The label of all groups, and of all partitions, beyond the configured maximum."""

REQUEST_SECONDS: Final = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0),
)
"""Heartbeats take microseconds; a parked join waits for the slowest member."""

REBALANCE_SECONDS: Final = (
    *(0.001, 0.01, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0),
    *(120.0, 300.0, 600.0),
)
"""Include the default timeouts: 3 s initial delay, 45 s session, 300 s poll interval."""

SYNC_SECONDS: Final = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0),
)


class Histogram:
    """Counts per bucket. A bound is an inclusive upper limit; the last bucket has none."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, amount: float) -> None:
        self.counts[bisect_left(self.bounds, amount)] += 1
        self.total += amount

    def add_small(self, amount: float) -> None:
        """Like `add`, but faster if the value falls into the first bucket."""
        self.counts[0 if amount <= self.bounds[0] else bisect_left(self.bounds, amount)] += 1
        self.total += amount


class Histograms(dict[K, Histogram]):
    """One histogram per key, created on first use."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        super().__init__()
        self.bounds = bounds

    def __missing__(self, key: K) -> Histogram:
        created = self[key] = Histogram(self.bounds)
        return created


class GroupMetrics:
    """The counters of one group, or of all groups that share a label."""

    def __init__(self) -> None:
        self.rebalances: Counter[str] = Counter()
        self.departures: Counter[str] = Counter()
        self.refused_commits: Counter[str] = Counter()


class Metrics:
    """All counters of the node.

    Only groups that exist (`live_groups`) get a label of their own. A client that invents group ids
    therefore cannot make the /metrics page grow.
    """

    def __init__(self, groups_max: int, live_groups: Container[GroupId]) -> None:
        self._groups_max = groups_max
        self._live_groups = live_groups
        # Groups
        self.groups: dict[str, GroupMetrics] = {}
        self.rebalance_results: Counter[RebalanceResult] = Counter()
        self.rebalance_seconds: Histograms[Trigger] = Histograms(REBALANCE_SECONDS)
        self.join_seconds: Histograms[Trigger] = Histograms(REBALANCE_SECONDS)
        self.sync_seconds: Histograms[Trigger] = Histograms(REBALANCE_SECONDS)
        self.offset_commits = self.offset_deletions = self.offset_expirations = 0
        self.failed_appends: Counter[ErrorCode] = Counter()
        self.load_seconds: dict[int, float] = {}
        # Requests
        self.requests = [Histogram(REQUEST_SECONDS) for _ in range(max(KEYS) + 1)]
        """By API key."""
        self.errors: Counter[tuple[int, int]] = Counter()
        self.internal_errors = 0
        """Requests that failed because of a bug in Kohort; each closed its connection."""
        self.bytes_in = self.bytes_out = 0
        self.connections = self.connections_opened = self.connections_refused = 0
        # The event loop
        self.suspensions = 0
        self.suspended_seconds = 0.0

    # Requests. The connection adds the latencies itself, which saves a call.

    def count_error(self, request: Request) -> None:
        self.errors[request.header.request_api_key, request.error] += 1

    def count_appended(self, records: Iterable[Record]) -> None:
        """Count the records that the group coordinator appended."""
        for record in records:
            if isinstance(record, OffsetsCommitted):
                self.offset_commits += len(record.columns)
            elif isinstance(record, OffsetCommitted):
                self.offset_commits += 1
            elif isinstance(record, OffsetRemoved):
                self.offset_deletions += 1

    # Groups

    def for_group(self, group_id: GroupId) -> GroupMetrics:
        label = self.label(group_id)
        if label not in self.groups:
            self.groups[label] = GroupMetrics()
        return self.groups[label]

    def label(self, group_id: GroupId) -> str:
        """Return the group id, or OTHER if the group does not exist or has no label of its own."""
        if group_id in self.groups:
            return group_id
        has_room = len(self.groups) - (OTHER in self.groups) < self._groups_max
        return group_id if has_room and group_id in self._live_groups else OTHER

    def remove_deleted_groups(self) -> None:
        """Free the labels of deleted groups. A counter may disappear, but it never decreases."""
        for label in [each for each in self.groups if each != OTHER]:
            if label not in self._live_groups:
                del self.groups[label]

    def count_events(self, events: Iterable[GroupEvent]) -> None:
        for event in events:
            match event:
                case RebalanceStarted():
                    self.for_group(event.group_id).rebalances[event.trigger] += 1
                case RebalanceEnded():
                    self._rebalance_ended(event)
                case MemberGone():
                    self.for_group(event.group_id).departures[event.departure] += 1
                case CommitRefused():
                    self.for_group(event.group_id).refused_commits[event.error.name] += 1
                case OffsetsExpired():
                    # `count_appended` has just counted their tombstones as deletions.
                    self.offset_expirations += len(event.partitions)
                    self.offset_deletions -= len(event.partitions)
                case AppendFailed():
                    self.failed_appends[event.error] += 1
                case (
                    StateChanged()
                    | MemberIdIssued()
                    | MemberJoined()
                    | InstanceReplaced()
                    | PendingExpired()
                    | GroupDeleted()
                    | JoinPhaseExtended()
                ):
                    pass  # not counted: visible in `__kohort_events` or in the state of the groups
                case _:
                    assert_never(event)

    def _rebalance_ended(self, event: RebalanceEnded) -> None:
        trigger, started, joined = event.trigger, event.started_ms, event.join_ended_ms
        self.rebalance_results[event.ending] += 1
        self.rebalance_seconds[trigger].add(_seconds_between(started, event.at))
        if joined is not None:
            self.join_seconds[trigger].add(_seconds_between(started, joined))
            self.sync_seconds[trigger].add(_seconds_between(joined, event.at))


def _seconds_between(start: Millis, end: Millis) -> float:
    """At least nothing: the clock may be set back meanwhile, and a sum must not decrease."""
    return max(0, end - start) / 1000
