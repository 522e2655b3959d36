"""The mutable state of one group, from which views are made.

There may be ten thousand groups, so everything is bounded: a trend is an array of 4-byte floats,
and the number of rebalances is limited.
"""

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from kohort.admin.group_monitor.partition_ownership import ownership_intervals
from kohort.admin.group_monitor.status_rules import (
    HOUR_MS,
    RISING_SAMPLES,
    GroupFacts,
    group_status,
    partition_status,
    timestamp_of,
)
from kohort.admin.group_monitor.views import (
    GroupView,
    MonitoredGroupRow,
    MonitoredMember,
    ObservedRebalance,
    PartitionOffsets,
    PartitionStatus,
)
from kohort.events.schema import EventMember
from kohort.types import Generation, GroupId, MemberId, Millis, Offset, TopicPartition, value

GROUP_SAMPLES: Final = 240
"""Lag samples of a group: one hour."""

PARTITION_SAMPLES: Final = 60
"""Lag samples of a partition: 15 minutes. There are many more partitions than groups."""

REBALANCES_MAX: Final = 200
"""Per group: more than three per minute of the hour that is shown."""

_UNKNOWN: Final = -1.0
_SLACK: Final = 16
"""Extra samples before the array is truncated, so that truncation is rare."""

_SAME_MS: Final = 10_000
"""A generation record and its event are written within this time."""

_FRESH_MS: Final = 10_000
"""How long a row is cached if nothing but the time changes."""

Ends = Mapping[TopicPartition, Offset]


@value
class EndOffsetsPoll:
    """When log end offsets were last polled."""

    version: int
    at_ms: Millis
    trend_ms: tuple[Millis, ...]


class LagTrend:
    """The last lag samples; -1 if the lag is not known."""

    __slots__ = ("_max", "_samples")

    def __init__(self, samples_max: int) -> None:
        self._max = samples_max
        self._samples = array("f")

    def add(self, lag: int | None) -> None:
        self._samples.append(_UNKNOWN if lag is None else float(lag))
        if len(self._samples) >= self._max + _SLACK:
            del self._samples[: len(self._samples) - self._max]

    def values(self, samples_max: int | None = None) -> tuple[int | None, ...]:
        last = self._samples[-(samples_max or self._max) :]
        return tuple(None if each == _UNKNOWN else round(each) for each in last)


class PartitionCommit:
    """The committed offset of a group in one partition."""

    __slots__ = ("at_ms", "behind_ms", "metadata", "moved_ms", "offset", "trend")

    def __init__(self, offset: Offset, at_ms: Millis, metadata: str) -> None:
        self.offset = offset
        self.at_ms = self.moved_ms = at_ms
        self.metadata = metadata
        self.behind_ms: Millis | None = None
        """Since when the partition has lag; None while it has none."""
        self.trend = LagTrend(PARTITION_SAMPLES)

    def update(self, offset: Offset, at_ms: Millis, metadata: str) -> None:
        if offset != self.offset:
            self.moved_ms = at_ms
        self.offset, self.at_ms, self.metadata = offset, at_ms, metadata

    def known_end(self, end: Offset | None, polled_ms: Millis) -> Offset | None:
        """An offset that was committed after the last poll lies within the log."""
        return max(end, self.offset) if end is not None and self.at_ms >= polled_ms else end

    def lag(self, end: Offset | None) -> int | None:
        return None if end is None else max(0, end - self.offset)

    def unchanged_since(self) -> Millis | None:
        return None if self.behind_ms is None else max(self.behind_ms, self.moved_ms)


class MonitoredGroup:
    __slots__ = (
        "_owners",
        "_owners_of",
        "_row",
        "_row_until",
        "commits",
        "formed_ms",
        "generation",
        "group_id",
        "in_progress",
        "kind",
        "leader",
        "members",
        "protocol",
        "protocol_type",
        "rebalances",
        "state",
        "state_since_ms",
        "state_version",
        "trend",
        "version",
    )

    def __init__(self, group_id: GroupId) -> None:
        self.group_id = group_id
        self.state = ""
        self.state_since_ms: Millis | None = None
        self.state_version = 0
        self.kind = self.protocol_type = self.protocol = ""
        self.generation: Generation | None = None
        self.leader: MemberId | None = None
        self.formed_ms: Millis | None = None
        self.members: tuple[MonitoredMember, ...] = ()
        self.commits: dict[TopicPartition, PartitionCommit] = {}
        self.rebalances: list[ObservedRebalance] = []
        self.in_progress: ObservedRebalance | None = None
        self.trend = LagTrend(GROUP_SAMPLES)
        self.version = 0
        self._owners: dict[TopicPartition, EventMember] = {}
        self._owners_of: tuple[MonitoredMember, ...] = self.members
        self._row: MonitoredGroupRow | None = None
        self._row_until = (-1, -1, Millis(0))

    def add_rebalance(self, new: ObservedRebalance) -> bool:
        """Insert it in time order; False if it is known already.

        An event replaces the rebalance that was derived from two generations.
        """
        for index, known in enumerate(self.rebalances):
            if known.key == new.key and known.is_exact == new.is_exact:
                return False
            is_same = (
                known.generation == new.generation
                and known.is_exact != new.is_exact
                and abs(timestamp_of(known) - timestamp_of(new)) <= _SAME_MS
            )
            if is_same:
                if new.is_exact:
                    self.rebalances[index] = new
                return False
        self.rebalances.append(new)
        self.rebalances.sort(key=timestamp_of)
        del self.rebalances[: len(self.rebalances) - REBALANCES_MAX]
        return True

    def find_rebalance(self, key: str) -> ObservedRebalance | None:
        """By its key, else by its end timestamp, which is the key of a derived rebalance."""
        known = self.known_rebalances()
        for each in reversed(known):
            if each.key == key:
                return each
        if not key.isdecimal():
            return None
        ended = [each for each in known if each.is_exact and each.ended_ms is not None]
        nearest = min(ended, key=lambda each: abs(timestamp_of(each) - int(key)), default=None)
        is_near = nearest is not None and abs(timestamp_of(nearest) - int(key)) <= _SAME_MS
        return nearest if is_near else None

    def owners(self) -> Mapping[TopicPartition, EventMember]:
        if self._owners_of is not self.members:
            self._owners_of = self.members
            self._owners = {
                each: member.party for member in self.members for each in member.partitions or ()
            }
        return self._owners

    def partitions(self) -> Iterable[TopicPartition]:
        """Partitions with a committed offset or an owner."""
        return self.commits.keys() | self.owners().keys()

    def sample(self, ends: Ends, now_ms: Millis) -> int | None:
        """Add a sample to all trends; returns the group's lag."""
        total: int | None = None
        for partition, commit in self.commits.items():
            lag = commit.lag(ends.get(partition))
            commit.trend.add(lag)
            if not lag:
                commit.behind_ms = None
            elif commit.behind_ms is None:
                commit.behind_ms = now_ms
            total = total if lag is None else (total or 0) + lag
        self.trend.add(total)
        return total

    def row(self, ends: Ends, ends_version: int, now_ms: Millis) -> MonitoredGroupRow:
        """Without its lag trend, which only visible rows need."""
        version, known_ends, until = self._row_until
        if (
            self._row is None
            or (version, known_ends) != (self.version, ends_version)
            or now_ms > until
        ):
            self._row = self._make_row(ends, now_ms)
            self._row_until = (self.version, ends_version, Millis(now_ms + _FRESH_MS))
        return self._row

    def _make_row(self, ends: Ends, now_ms: Millis) -> MonitoredGroupRow:
        owners = self.owners()
        partition_statuses: dict[PartitionStatus, int] = {}
        lags = []
        for partition, commit in self.commits.items():
            lag = commit.lag(ends.get(partition))
            if lag is None:
                continue
            lags.append(lag)
            if lag:
                status = partition_status(
                    lag=lag,
                    unchanged_since_ms=commit.unchanged_since(),
                    has_owner=partition in owners,
                    now_ms=now_ms,
                )
                partition_statuses[status] = partition_statuses.get(status, 0) + 1
        known = self.known_rebalances()
        lag = sum(lags) if lags else None
        last_commit = max((each.at_ms for each in self.commits.values()), default=None)
        facts = GroupFacts(
            state=self.state,
            state_since_ms=self.state_since_ms,
            rebalances=known,
            partition_statuses=partition_statuses,
            lag=lag,
            trend=self.trend.values(RISING_SAMPLES),
            last_commit_ms=last_commit,
        )
        status_now, reasons = group_status(facts, now_ms)
        partitions = self.commits.keys() | owners.keys()
        return MonitoredGroupRow(
            group_id=self.group_id,
            state=self.state,
            kind=self.kind,
            protocol=self.protocol,
            generation=self.generation,
            members=len(self.members),
            topics=len({each.topic for each in partitions}),
            partitions=len(partitions),
            lag=lag,
            lag_max=max(lags, default=None),
            lag_trend=(),
            rebalances=sum(timestamp_of(each) >= now_ms - HOUR_MS for each in known),
            last_rebalance_ms=timestamp_of(known[-1]) if known else None,
            last_commit_ms=last_commit,
            status=status_now,
            reasons=reasons,
        )

    def with_trend(self, row: MonitoredGroupRow) -> MonitoredGroupRow:
        """The row with its lag trend."""
        return replace(row, lag_trend=self.trend.values(PARTITION_SAMPLES))

    def known_rebalances(self) -> tuple[ObservedRebalance, ...]:
        if self.in_progress is None:
            return tuple(self.rebalances)
        return (*self.rebalances, self.in_progress)

    def view(self, ends: Ends, poll: EndOffsetsPoll, now_ms: Millis) -> GroupView:
        return GroupView(
            row=self.with_trend(self.row(ends, poll.version, now_ms)),
            state_since_ms=self.state_since_ms,
            leader=self.leader,
            protocol_type=self.protocol_type,
            formed_ms=self.formed_ms,
            members=self.members,
            offsets=self._offsets(ends, poll.at_ms, now_ms),
            rebalances=self.known_rebalances(),
            ownership=ownership_intervals(self.rebalances),
            trend_ms=poll.trend_ms,
            lag_trend=self.trend.values(),
        )

    def _offsets(
        self, ends: Ends, polled_ms: Millis, now_ms: Millis
    ) -> tuple[PartitionOffsets, ...]:
        owners = self.owners()
        found = []
        for partition in sorted(self.commits.keys() | owners.keys()):
            commit, end = self.commits.get(partition), ends.get(partition)
            lag = None if commit is None else commit.lag(end)
            status = partition_status(
                lag=lag,
                unchanged_since_ms=None if commit is None else commit.unchanged_since(),
                has_owner=partition in owners,
                now_ms=now_ms,
            )
            found.append(
                PartitionOffsets(
                    partition=partition,
                    committed=None if commit is None else commit.offset,
                    committed_ms=None if commit is None else commit.at_ms,
                    moved_ms=None if commit is None else commit.moved_ms,
                    metadata="" if commit is None else commit.metadata,
                    log_end=end if commit is None else commit.known_end(end, polled_ms),
                    lag=lag,
                    status=status,
                    owner=owners.get(partition),
                    trend=() if commit is None else commit.trend.values(),
                )
            )
        return tuple(found)
