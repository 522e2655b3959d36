"""What the picture keeps of one group. It changes with every record; values are made from it.

Everything in it has a limit, for there may be ten thousand of them: a trend is an array of small
floats, and only so many rebalances are kept.
"""

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from kohort.admin.picture.needs import HOUR_MS, RISING, Facts, judge, moment_of, standing_of
from kohort.admin.picture.ownership import find_stretches
from kohort.admin.picture.values import (
    GroupRow,
    GroupView,
    Member,
    Party,
    Reading,
    Rebalance,
    Standing,
)
from kohort.client.topic_partition import TopicPartition
from kohort.types import Generation, GroupId, MemberId, Millis, Offset, value

GROUP_TREND: Final = 240
"""Looks at a group's lag: an hour of them."""

PARTITION_TREND: Final = 60
"""Looks at a partition's lag; a quarter of an hour. There are many more partitions than groups."""

REBALANCES_MAX: Final = 200
"""Of one group: more than three in each minute of the hour that is shown."""

_UNKNOWN: Final = -1.0
_SLACK: Final = 16
"""Arrays are cut only now and then."""

_SAME_MS: Final = 10_000
"""A generation and the event that tells of it were written within this time."""

_FRESH_MS: Final = 10_000
"""For how long a row may say what depends on nothing but the time."""

Ends = Mapping[TopicPartition, Offset]


@value
class Looked:
    """When and how often logs' ends were looked at."""

    version: int
    at_ms: Millis
    trend_ms: tuple[Millis, ...]


class Trend:
    """The last lags, as many as there is room for; -1 where it was not known."""

    __slots__ = ("_max", "_seen")

    def __init__(self, most: int) -> None:
        self._max = most
        self._seen = array("f")

    def add(self, lag: int | None) -> None:
        self._seen.append(_UNKNOWN if lag is None else float(lag))
        if len(self._seen) >= self._max + _SLACK:
            del self._seen[: len(self._seen) - self._max]

    def values(self, most: int | None = None) -> tuple[int | None, ...]:
        last = self._seen[-(most or self._max) :]
        return tuple(None if each == _UNKNOWN else round(each) for each in last)


class Commit:
    """What a group has committed of one partition."""

    __slots__ = ("at_ms", "behind_ms", "metadata", "moved_ms", "offset", "trend")

    def __init__(self, offset: Offset, at_ms: Millis, metadata: str) -> None:
        self.offset = offset
        self.at_ms = self.moved_ms = at_ms
        self.metadata = metadata
        self.behind_ms: Millis | None = None
        """Since when there is something to read; None while there is not."""
        self.trend = Trend(PARTITION_TREND)

    def renew(self, offset: Offset, at_ms: Millis, metadata: str) -> None:
        if offset != self.offset:
            self.moved_ms = at_ms
        self.offset, self.at_ms, self.metadata = offset, at_ms, metadata

    def known_end(self, end: Offset | None, looked_ms: Millis) -> Offset | None:
        """What was committed after the last look at the log's end lies within the log."""
        return max(end, self.offset) if end is not None and self.at_ms >= looked_ms else end

    def lag(self, end: Offset | None) -> int | None:
        return None if end is None else max(0, end - self.offset)

    def still_since(self) -> Millis | None:
        return None if self.behind_ms is None else max(self.behind_ms, self.moved_ms)


class Book:
    __slots__ = (
        "_owners",
        "_owners_of",
        "_row",
        "_row_until",
        "commits",
        "formed_ms",
        "generation",
        "group_id",
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
        "under_way",
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
        self.members: tuple[Member, ...] = ()
        self.commits: dict[TopicPartition, Commit] = {}
        self.rebalances: list[Rebalance] = []
        self.under_way: Rebalance | None = None
        self.trend = Trend(GROUP_TREND)
        self.version = 0
        self._owners: dict[TopicPartition, Party] = {}
        self._owners_of: tuple[Member, ...] = self.members
        self._row: GroupRow | None = None
        self._row_until = (-1, -1, Millis(0))

    def add_rebalance(self, told: Rebalance) -> bool:
        """Keep it in the order of time; whether it is one that was not known yet.

        What is told of the same generation by an event is better than what was worked out.
        """
        for index, known in enumerate(self.rebalances):
            if known.key == told.key and known.is_exact == told.is_exact:
                return False
            is_same = (
                known.generation == told.generation
                and known.is_exact != told.is_exact
                and abs(moment_of(known) - moment_of(told)) <= _SAME_MS
            )
            if is_same:
                if told.is_exact:
                    self.rebalances[index] = told
                return False
        self.rebalances.append(told)
        self.rebalances.sort(key=moment_of)
        del self.rebalances[: len(self.rebalances) - REBALANCES_MAX]
        return True

    def find_rebalance(self, key: str) -> Rebalance | None:
        """By its key, or else by the moment it ended at, which is the key of one without events."""
        known = self.known_rebalances()
        for each in reversed(known):
            if each.key == key:
                return each
        if not key.isdecimal():
            return None
        ended = [each for each in known if each.is_exact and each.ended_ms is not None]
        nearest = min(ended, key=lambda each: abs(moment_of(each) - int(key)), default=None)
        is_near = nearest is not None and abs(moment_of(nearest) - int(key)) <= _SAME_MS
        return nearest if is_near else None

    def owners(self) -> Mapping[TopicPartition, Party]:
        if self._owners_of is not self.members:
            self._owners_of = self.members
            self._owners = {
                each: member.party for member in self.members for each in member.holds or ()
            }
        return self._owners

    def partitions(self) -> Iterable[TopicPartition]:
        """What it has offsets of, or somebody holds."""
        return self.commits.keys() | self.owners().keys()

    def sample(self, ends: Ends, now_ms: Millis) -> int | None:
        """Add a look to all trends; gives the group's lag."""
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

    def row(self, ends: Ends, ends_version: int, now_ms: Millis) -> GroupRow:
        """Without its trend, which only those that are shown need."""
        version, looked, until = self._row_until
        if self._row is None or (version, looked) != (self.version, ends_version) or now_ms > until:
            self._row = self._make_row(ends, now_ms)
            self._row_until = (self.version, ends_version, Millis(now_ms + _FRESH_MS))
        return self._row

    def _make_row(self, ends: Ends, now_ms: Millis) -> GroupRow:
        owners = self.owners()
        standings: dict[Standing, int] = {}
        lags = []
        for partition, commit in self.commits.items():
            lag = commit.lag(ends.get(partition))
            if lag is None:
                continue
            lags.append(lag)
            if lag:
                standing = standing_of(
                    lag=lag,
                    still_since_ms=commit.still_since(),
                    has_owner=partition in owners,
                    now_ms=now_ms,
                )
                standings[standing] = standings.get(standing, 0) + 1
        known = self.known_rebalances()
        lag = sum(lags) if lags else None
        last_commit = max((each.at_ms for each in self.commits.values()), default=None)
        facts = Facts(
            state=self.state,
            state_since_ms=self.state_since_ms,
            rebalances=known,
            standings=standings,
            lag=lag,
            trend=self.trend.values(RISING),
            last_commit_ms=last_commit,
        )
        need, reasons = judge(facts, now_ms)
        partitions = self.commits.keys() | owners.keys()
        return GroupRow(
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
            rebalances=sum(moment_of(each) >= now_ms - HOUR_MS for each in known),
            last_rebalance_ms=moment_of(known[-1]) if known else None,
            last_commit_ms=last_commit,
            need=need,
            reasons=reasons,
        )

    def dressed(self, row: GroupRow) -> GroupRow:
        """A row as it is shown."""
        return replace(row, lag_trend=self.trend.values(PARTITION_TREND))

    def known_rebalances(self) -> tuple[Rebalance, ...]:
        if self.under_way is None:
            return tuple(self.rebalances)
        return (*self.rebalances, self.under_way)

    def view(self, ends: Ends, looked: Looked, now_ms: Millis) -> GroupView:
        return GroupView(
            row=self.dressed(self.row(ends, looked.version, now_ms)),
            state_since_ms=self.state_since_ms,
            leader=self.leader,
            protocol_type=self.protocol_type,
            formed_ms=self.formed_ms,
            members=self.members,
            readings=self._readings(ends, looked.at_ms, now_ms),
            rebalances=self.known_rebalances(),
            stretches=find_stretches(self.rebalances),
            trend_ms=looked.trend_ms,
            lag_trend=self.trend.values(),
        )

    def _readings(self, ends: Ends, looked_ms: Millis, now_ms: Millis) -> tuple[Reading, ...]:
        owners = self.owners()
        readings = []
        for partition in sorted(self.commits.keys() | owners.keys()):
            commit, end = self.commits.get(partition), ends.get(partition)
            lag = None if commit is None else commit.lag(end)
            standing = standing_of(
                lag=lag,
                still_since_ms=None if commit is None else commit.still_since(),
                has_owner=partition in owners,
                now_ms=now_ms,
            )
            readings.append(
                Reading(
                    partition=partition,
                    committed=None if commit is None else commit.offset,
                    committed_ms=None if commit is None else commit.at_ms,
                    moved_ms=None if commit is None else commit.moved_ms,
                    metadata="" if commit is None else commit.metadata,
                    log_end=end if commit is None else commit.known_end(end, looked_ms),
                    lag=lag,
                    standing=standing,
                    owner=owners.get(partition),
                    trend=() if commit is None else commit.trend.values(),
                )
            )
        return tuple(readings)
