"""Folds records, events and polled responses into the state of every group.

Pure: it reads no clock and does no I/O. It is not thread-safe; `GroupMonitor` holds the lock. All
its collections are bounded: ten thousand groups of ten members take a few hundred megabytes.
"""

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from kohort.admin.group_monitor.events_fold import ended_rebalance, started_rebalance
from kohort.admin.group_monitor.monitored_group import GROUP_SAMPLES, EndOffsetsPoll, MonitoredGroup
from kohort.admin.group_monitor.offsets_fold import OffsetsFold
from kohort.admin.group_monitor.queries import overview_of, page_of
from kohort.admin.group_monitor.status_rules import HOUR_MS, timestamp_of
from kohort.admin.group_monitor.views import (
    CLASSIC_REBALANCING,
    ClusterOverview,
    GroupPage,
    GroupQuery,
    GroupView,
    MonitoredGroupRow,
    ObservedRebalance,
    RecentRebalance,
)
from kohort.events.parser import BadEvent, EventReader
from kohort.events.schema import (
    Event,
    GroupDeletedEvent,
    RebalanceEndedEvent,
    RebalanceStartedEvent,
    StateChangedEvent,
)
from kohort.types import GroupId, Millis, Offset, Topic, TopicPartition, Uuid, value

KEPT_MS: Final = HOUR_MS + 900_000
"""Older rebalances are dropped, except the last one of a group."""

PARTICIPANTS_MAX: Final = 200_000
"""Over all kept rebalances: a few hundred megabytes."""

SAMPLE_MS: Final = 15_000
"""Between two samples of the lag trends."""

RECENT_MAX: Final = 20


@value
class PolledGroup:
    """A group in the response to ListGroups."""

    group_id: GroupId
    state: str
    kind: str
    protocol_type: str


class ClusterState:
    def __init__(self) -> None:
        self.version = 0
        """Increases with every change."""
        self.has_events = False
        """Whether the cluster has the topic `__kohort_events`."""
        self.unreadable = 0
        """Number of records that could not be decoded."""
        self._groups: dict[GroupId, MonitoredGroup] = {}
        self._offsets_fold = OffsetsFold(
            self._groups, self._group, self._add_rebalance, self._mark_changed
        )
        self._events = EventReader()
        self._ends: dict[TopicPartition, Offset] = {}
        self._ends_version = 0
        self._ends_ms = Millis(0)
        self._trend_ms: deque[Millis] = deque(maxlen=GROUP_SAMPLES)
        self._lag_trend: deque[int | None] = deque(maxlen=GROUP_SAMPLES)
        self._rebalances: deque[tuple[MonitoredGroup, ObservedRebalance]] = deque()
        self._participants = 0
        self._minutes: Counter[int] = Counter()
        self._recent: deque[RecentRebalance] = deque(maxlen=RECENT_MAX)

    # Input

    def fold_record(self, key: bytes | None, value: bytes | None, at_ms: Millis) -> None:
        """A record of `__consumer_offsets`."""
        if not self._offsets_fold.fold(key, value, at_ms):
            self.unreadable += 1

    def fold_event(self, value: bytes | None) -> None:
        """A record of `__kohort_events`."""
        self.has_events = True
        try:
            event = self._events.read(value)
        except BadEvent:
            self.unreadable += 1
        else:
            if event is not None:
                self._apply_event(event)

    def fold_groups(self, polled: Iterable[PolledGroup], version: int, now_ms: Millis) -> None:
        """A response whose request was sent when this state had `version`.

        Changes since that version are newer than the response.
        """
        found = set()
        for each in polled:
            found.add(each.group_id)
            group = self._group(each.group_id)
            group.protocol_type = group.protocol_type or each.protocol_type
            if each.kind and group.kind != each.kind:
                group.kind = each.kind
                self._mark_changed(group)
            if each.state and each.state != group.state and group.state_version <= version:
                self._set_state(group, each.state, now_ms)
        for group_id in [each for each in self._groups if each not in found]:
            if self._groups[group_id].version <= version:
                self._remove(group_id)

    def fold_topics(self, names: Mapping[Uuid, Topic]) -> None:
        self._offsets_fold.set_topic_names(names)

    def fold_ends(self, ends: Mapping[TopicPartition, Offset], now_ms: Millis) -> None:
        """The log end offsets at this time. Partitions that are missing become unknown."""
        self._ends_ms = now_ms
        if ends != self._ends:
            self._ends = dict(ends)
            self._ends_version += 1
            self.version += 1
        if not self._trend_ms or now_ms - self._trend_ms[-1] >= SAMPLE_MS:
            self._add_samples(now_ms)
        self._drop_old(now_ms)

    def _add_samples(self, now_ms: Millis) -> None:
        self._trend_ms.append(now_ms)
        lags = [group.sample(self._ends, now_ms) for group in self._groups.values()]
        known = [each for each in lags if each is not None]
        self._lag_trend.append(sum(known) if known else None)
        # Every trend has a new sample, and partitions may have become stalled.
        self._ends_version += 1
        self.version += 1

    def _apply_event(self, event: Event) -> None:
        match event.details:
            case RebalanceStartedEvent() as started:
                group = self._group(event.group_id)
                group.in_progress = started_rebalance(event.at, started)
                self._mark_changed(group)
            case RebalanceEndedEvent() as ended:
                group = self._group(event.group_id)
                group.in_progress = None
                self._add_rebalance(group, ended_rebalance(event.at, ended))
            case StateChangedEvent(after=after):
                group = self._group(event.group_id)
                self._set_state(group, after, event.at)
                if after not in CLASSIC_REBALANCING:
                    group.in_progress = None
            case GroupDeletedEvent():
                # The group may exist again; the next ListGroups response decides.
                group = self._group(event.group_id)
                group.in_progress = None
                self._set_state(group, "Dead", event.at)
            case _:
                pass

    # Groups

    def _group(self, group_id: GroupId) -> MonitoredGroup:
        group = self._groups.get(group_id)
        if group is None:
            group = self._groups[group_id] = MonitoredGroup(group_id)
            self._mark_changed(group)
        return group

    def _mark_changed(self, group: MonitoredGroup) -> None:
        self.version += 1
        group.version = self.version

    def _set_state(self, group: MonitoredGroup, state: str, at_ms: Millis) -> None:
        if state != group.state:
            group.state, group.state_since_ms = state, at_ms
        self._mark_changed(group)
        group.state_version = self.version

    def _remove(self, group_id: GroupId) -> None:
        del self._groups[group_id]
        self._offsets_fold.remove(group_id)
        self.version += 1

    def _add_rebalance(self, group: MonitoredGroup, rebalance: ObservedRebalance) -> None:
        is_new = group.add_rebalance(rebalance)
        self._mark_changed(group)
        recent = RecentRebalance(group_id=group.group_id, rebalance=rebalance)
        if not is_new:
            # The event replaces the rebalance that was derived from two generations.
            for index, known in enumerate(self._recent):
                is_same = known.rebalance.generation == rebalance.generation and rebalance.is_exact
                if known.group_id == group.group_id and is_same:
                    self._recent[index] = recent
            return
        self._rebalances.append((group, rebalance))
        self._participants += _participant_count(rebalance)
        while self._participants > PARTICIPANTS_MAX:
            self._drop_oldest(keep_last=False)
        self._minutes[timestamp_of(rebalance) // 60_000] += 1
        self._recent.append(recent)

    def _drop_old(self, now_ms: Millis) -> None:
        """Drop what is too old to be shown."""
        while self._rebalances and timestamp_of(self._rebalances[0][1]) < now_ms - KEPT_MS:
            self._drop_oldest(keep_last=True)
        oldest = now_ms // 60_000 - 60
        for minute in [each for each in self._minutes if each < oldest]:
            del self._minutes[minute]

    def _drop_oldest(self, *, keep_last: bool) -> None:
        group, rebalance = self._rebalances.popleft()
        self._participants -= _participant_count(rebalance)
        if rebalance in group.rebalances and not (keep_last and len(group.rebalances) == 1):
            group.rebalances.remove(rebalance)
            self._mark_changed(group)

    # Queries

    def find_group(self, group_id: GroupId, now_ms: Millis) -> GroupView | None:
        group = self._groups.get(group_id)
        if group is None:
            return None
        poll = EndOffsetsPoll(
            version=self._ends_version, at_ms=self._ends_ms, trend_ms=tuple(self._trend_ms)
        )
        return group.view(self._ends, poll, now_ms)

    def find_rebalance(self, group_id: GroupId, key: str) -> ObservedRebalance | None:
        """Also finds a derived rebalance that an event with another key has replaced since."""
        group = self._groups.get(group_id)
        return None if group is None else group.find_rebalance(key)

    def list_groups(self, query: GroupQuery, now_ms: Millis) -> GroupPage:
        rows = (
            group.row(self._ends, self._ends_version, now_ms) for group in self._groups.values()
        )
        page = page_of(rows, query)
        return replace(page, rows=self._with_trends(page.rows))

    def overview(self, now_ms: Millis) -> ClusterOverview:
        rows = [
            group.row(self._ends, self._ends_version, now_ms) for group in self._groups.values()
        ]
        recent = sorted(self._recent, key=lambda each: -timestamp_of(each.rebalance))
        minute = now_ms // 60_000
        overview = overview_of(
            rows,
            recent=tuple(each for each in recent if each.group_id in self._groups),
            lag_trend=tuple(self._lag_trend),
            trend_ms=tuple(self._trend_ms),
            by_minute=tuple(self._minutes[each] for each in range(minute - 59, minute + 1)),
            is_exact=self.has_events,
        )
        return replace(overview, worst=self._with_trends(overview.worst))

    def _with_trends(self, rows: Iterable[MonitoredGroupRow]) -> tuple[MonitoredGroupRow, ...]:
        return tuple(self._groups[each.group_id].with_trend(each) for each in rows)

    def readers(self) -> dict[Topic, frozenset[GroupId]]:
        """The groups that have offsets or members in each topic."""
        found: dict[Topic, set[GroupId]] = {}
        for group_id, group in self._groups.items():
            for partition in group.partitions():
                found.setdefault(partition.topic, set()).add(group_id)
        return {topic: frozenset(groups) for topic, groups in found.items()}

    def partitions(self) -> frozenset[TopicPartition]:
        """The partitions with committed offsets, whose log end offsets are needed."""
        return frozenset(each for group in self._groups.values() for each in group.commits)


def _participant_count(rebalance: ObservedRebalance) -> int:
    return 1 + len(rebalance.participants) + len(rebalance.removals)
