"""What the node counts about itself: plain numbers, so that counting costs next to nothing.

Everything here is written and read on the node's own loop. What is there to be seen anyway, such
as groups, logs and parked requests, is not counted but looked at when somebody asks: metrics_page.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Container, Iterable
from typing import Final, TypeVar, assert_never

from kohort.coordinator.notes import (
    CommitRefused,
    Ending,
    GroupDeleted,
    InstanceReplaced,
    MemberGone,
    MemberIdIssued,
    MemberJoined,
    NobodyRejoined,
    Note,
    NotKept,
    OffsetsExpired,
    PendingExpired,
    RebalanceEnded,
    RebalanceStarted,
    StateChanged,
    Trigger,
)
from kohort.coordinator.records import OffsetCommitted, OffsetRemoved, OffsetsCommitted, Record
from kohort.node.request import Request
from kohort.types import ErrorCode, GroupId
from kohort.wire.api import KEYS

K = TypeVar("K")

OTHER: Final = "(other)"
"""Stands for every group, and every topic, beyond those that are told one by one."""

REQUEST_SECONDS: Final = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0),
)
"""From a heartbeat to a join that waits for the slowest member."""

REBALANCE_SECONDS: Final = (
    *(0.001, 0.01, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0),
    *(120.0, 300.0, 600.0),
)
"""Around the defaults: 3 s of initial delay, 45 s of session, 300 s between polls."""

SYNC_SECONDS: Final = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0),
)


class Histogram:
    """How many values were at most each bound, and how many above the last one."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, amount: float) -> None:
        self.counts[bisect_left(self.bounds, amount)] += 1
        self.total += amount

    def add_soon(self, amount: float) -> None:
        """The same, where most are at most the first bound: that one is looked at first."""
        self.counts[0 if amount <= self.bounds[0] else bisect_left(self.bounds, amount)] += 1
        self.total += amount


class Histograms(dict[K, Histogram]):
    """One per key, each begun when it is first needed."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        super().__init__()
        self.bounds = bounds

    def __missing__(self, key: K) -> Histogram:
        begun = self[key] = Histogram(self.bounds)
        return begun


class GroupFigures:
    """What has happened to one group, or to all that share a label: how often, by which word."""

    def __init__(self) -> None:
        self.rebalances: Counter[str] = Counter()
        self.departures: Counter[str] = Counter()
        self.refused_commits: Counter[str] = Counter()


class Figures:
    """All that is counted.

    `living` holds the groups there are. Only they get labels of their own, so that nobody can fill
    the page with names.
    """

    def __init__(self, groups_max: int, living: Container[GroupId]) -> None:
        self._groups_max = groups_max
        self._living = living
        # Groups.
        self.groups: dict[str, GroupFigures] = {}
        self.endings: Counter[Ending] = Counter()
        self.rebalance_seconds: Histograms[Trigger] = Histograms(REBALANCE_SECONDS)
        self.join_seconds: Histograms[Trigger] = Histograms(REBALANCE_SECONDS)
        self.sync_seconds: Histograms[Trigger] = Histograms(REBALANCE_SECONDS)
        self.offset_commits = self.offset_deletions = self.offset_expirations = 0
        self.not_kept: Counter[ErrorCode] = Counter()
        self.events_lost = 0
        self.load_seconds: dict[int, float] = {}
        # Requests.
        self.requests = [Histogram(REQUEST_SECONDS) for _ in range(max(KEYS) + 1)]
        """By API key."""
        self.errors: Counter[tuple[int, int]] = Counter()
        self.bytes_in = self.bytes_out = 0
        self.connections = self.connections_opened = self.connections_refused = 0

    # On requests; how long each took is noted by its connection, to save a call

    def erred(self, request: Request) -> None:
        self.errors[request.header.request_api_key, request.error] += 1

    def lose(self, events: int) -> None:
        self.events_lost += events

    def kept(self, records: Iterable[Record]) -> None:
        """The coordinator's records are on the log."""
        for record in records:
            if isinstance(record, OffsetsCommitted):
                self.offset_commits += len(record.columns)
            elif isinstance(record, OffsetCommitted):
                self.offset_commits += 1
            elif isinstance(record, OffsetRemoved):
                self.offset_deletions += 1

    # When something happens to a group

    def of_group(self, group_id: GroupId) -> GroupFigures:
        label = self.label(group_id)
        if label not in self.groups:
            self.groups[label] = GroupFigures()
        return self.groups[label]

    def label(self, group_id: GroupId) -> str:
        """Its own name while there is room for names, and the name is a group's."""
        if group_id in self.groups:
            return group_id
        has_room = len(self.groups) - (OTHER in self.groups) < self._groups_max
        return group_id if has_room and group_id in self._living else OTHER

    def forget_the_dead(self) -> None:
        """Groups that are gone make room for others; a counter may vanish, never go back."""
        for label in [each for each in self.groups if each != OTHER]:
            if label not in self._living:
                del self.groups[label]

    def notice(self, notes: Iterable[Note]) -> None:
        for note in notes:
            match note:
                case RebalanceStarted():
                    self.of_group(note.group_id).rebalances[note.trigger] += 1
                case RebalanceEnded():
                    self._rebalance_ended(note)
                case MemberGone():
                    self.of_group(note.group_id).departures[note.departure] += 1
                case CommitRefused():
                    self.of_group(note.group_id).refused_commits[note.error.name] += 1
                case OffsetsExpired():
                    # They were counted as deleted when their tombstones were kept, a moment ago.
                    self.offset_expirations += len(note.partitions)
                    self.offset_deletions -= len(note.partitions)
                case NotKept():
                    self.not_kept[note.error] += 1
                case (
                    StateChanged()
                    | MemberIdIssued()
                    | MemberJoined()
                    | InstanceReplaced()
                    | PendingExpired()
                    | GroupDeleted()
                    | NobodyRejoined()
                ):
                    pass  # told by the events, or seen in the groups themselves
                case _:
                    assert_never(note)

    def _rebalance_ended(self, note: RebalanceEnded) -> None:
        self.endings[note.ending] += 1
        self.rebalance_seconds[note.trigger].add((note.at - note.started_ms) / 1000)
        if note.join_ended_ms is not None:
            self.join_seconds[note.trigger].add((note.join_ended_ms - note.started_ms) / 1000)
            self.sync_seconds[note.trigger].add((note.at - note.join_ended_ms) / 1000)
