"""The picture itself: a fold of records, events and answers into what is known of every group.

Pure: it reads no clock and asks nobody. It is not safe for threads; `following` has the lock. All
it keeps has a limit: the memory for ten thousand groups of ten members is some hundred megabytes.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from kohort.admin.picture.book import GROUP_TREND, Book, Looked
from kohort.admin.picture.events import BadEvent, PartJoiner, read_ended, read_event, read_started
from kohort.admin.picture.lists import overview_of, page_of
from kohort.admin.picture.needs import HOUR_MS, moment_of
from kohort.admin.picture.records import Ledger
from kohort.admin.picture.values import (
    REBALANCING,
    GroupPage,
    GroupRow,
    GroupView,
    GroupWish,
    Overview,
    Rebalance,
    RecentRebalance,
)
from kohort.client.topic_partition import TopicPartition
from kohort.types import GroupId, Millis, Offset, Topic, Uuid, value

KEPT_MS: Final = HOUR_MS + 900_000
"""Rebalances that ended longer ago are forgotten, but for the last one of a group."""

WEIGHT_MAX: Final = 200_000
"""Participants of all kept rebalances together: some hundred megabytes."""

SAMPLE_MS: Final = 15_000
"""Between two looks that trends keep."""

RECENT_MAX: Final = 20


@value
class ListedState:
    """What the cluster answers about a group when asked for all of them."""

    group_id: GroupId
    state: str
    kind: str
    protocol_type: str


class Picture:
    def __init__(self) -> None:
        self.version = 0
        """Higher after every change."""
        self.has_events = False
        """Whether the cluster tells of its groups in `__kohort_events`."""
        self.unreadable = 0
        """Records that made no sense."""
        self._books: dict[GroupId, Book] = {}
        self._ledger = Ledger(self._books, self._book, self._note_rebalance, self._touch)
        self._joiner = PartJoiner()
        self._ends: dict[TopicPartition, Offset] = {}
        self._ends_version = 0
        self._looked_ms = Millis(0)
        self._trend_ms: deque[Millis] = deque(maxlen=GROUP_TREND)
        self._lag_trend: deque[int | None] = deque(maxlen=GROUP_TREND)
        self._kept: deque[tuple[Book, Rebalance]] = deque()
        self._weight = 0
        self._minutes: Counter[int] = Counter()
        self._recent: deque[RecentRebalance] = deque(maxlen=RECENT_MAX)

    # What is folded in

    def fold_record(self, key: bytes | None, value: bytes | None, at_ms: Millis) -> None:
        """A record of `__consumer_offsets`."""
        if not self._ledger.fold(key, value, at_ms):
            self.unreadable += 1

    def fold_event(self, value: bytes | None) -> None:
        """A record of `__kohort_events`."""
        self.has_events = True
        try:
            event = self._joiner.take(read_event(value))
            if event is not None and isinstance(event.get("group_id"), str):
                self._tell(event)
        except BadEvent:
            self.unreadable += 1

    def fold_groups(self, listed: Iterable[ListedState], asked_at: int, now_ms: Millis) -> None:
        """The answer to a question that was put at version `asked_at`.

        Whatever changed since then is newer than the answer.
        """
        found = set()
        for told in listed:
            found.add(told.group_id)
            book = self._book(told.group_id)
            book.protocol_type = book.protocol_type or told.protocol_type
            if told.kind and book.kind != told.kind:
                book.kind = told.kind
                self._touch(book)
            if told.state and told.state != book.state and book.state_version <= asked_at:
                self._enter(book, told.state, now_ms)
        for group_id in [each for each in self._books if each not in found]:
            if self._books[group_id].version <= asked_at:
                self._forget(group_id)

    def fold_topics(self, names: Mapping[Uuid, Topic]) -> None:
        self._ledger.learn_names(names)

    def fold_ends(self, ends: Mapping[TopicPartition, Offset], now_ms: Millis) -> None:
        """Where logs ended at this time; those that are not named are not known any more."""
        self._looked_ms = now_ms
        if ends != self._ends:
            self._ends = dict(ends)
            self._ends_version += 1
            self.version += 1
        if not self._trend_ms or now_ms - self._trend_ms[-1] >= SAMPLE_MS:
            self._sample(now_ms)
        self._let_go(now_ms)

    def _sample(self, now_ms: Millis) -> None:
        self._trend_ms.append(now_ms)
        lags = [book.sample(self._ends, now_ms) for book in self._books.values()]
        known = [each for each in lags if each is not None]
        self._lag_trend.append(sum(known) if known else None)
        # Every trend is longer by one, and what stands still is noticed.
        self._ends_version += 1
        self.version += 1

    # What events tell

    def _tell(self, event: Mapping[str, Any]) -> None:
        teller = self._tellers.get(event["event"])
        if teller is not None:
            teller(self, self._book(GroupId(event["group_id"])), event)

    def _tell_started(self, book: Book, event: Mapping[str, Any]) -> None:
        book.under_way = read_started(event)
        self._touch(book)

    def _tell_ended(self, book: Book, event: Mapping[str, Any]) -> None:
        told = read_ended(event)
        book.under_way = None
        self._note_rebalance(book, told)

    def _tell_state(self, book: Book, event: Mapping[str, Any]) -> None:
        after = event.get("after")
        if isinstance(after, str):
            self._enter(book, after, Millis(event["at"]))
            if after not in REBALANCING:
                book.under_way = None

    def _tell_deleted(self, book: Book, event: Mapping[str, Any]) -> None:
        # It may have been made again since; the next answer about all groups knows.
        book.under_way = None
        self._enter(book, "Dead", Millis(event["at"]))

    _tellers: Final[Mapping[str, Callable[["Picture", Book, Mapping[str, Any]], None]]] = {
        "rebalance-started": _tell_started,
        "rebalance-ended": _tell_ended,
        "state-changed": _tell_state,
        "group-deleted": _tell_deleted,
    }

    # Keeping books

    def _book(self, group_id: GroupId) -> Book:
        book = self._books.get(group_id)
        if book is None:
            book = self._books[group_id] = Book(group_id)
            self._touch(book)
        return book

    def _touch(self, book: Book) -> None:
        self.version += 1
        book.version = self.version

    def _enter(self, book: Book, state: str, at_ms: Millis) -> None:
        if state != book.state:
            book.state, book.state_since_ms = state, at_ms
        self._touch(book)
        book.state_version = self.version

    def _forget(self, group_id: GroupId) -> None:
        del self._books[group_id]
        self._ledger.forget(group_id)
        self.version += 1

    def _note_rebalance(self, book: Book, told: Rebalance) -> None:
        is_new = book.add_rebalance(told)
        self._touch(book)
        recent = RecentRebalance(group_id=book.group_id, rebalance=told)
        if not is_new:
            # One that was worked out before may now be told in full.
            for index, known in enumerate(self._recent):
                is_same = known.rebalance.generation == told.generation and told.is_exact
                if known.group_id == book.group_id and is_same:
                    self._recent[index] = recent
            return
        self._kept.append((book, told))
        self._weight += _weigh(told)
        while self._weight > WEIGHT_MAX:
            self._drop_oldest(is_last_kept=False)
        self._minutes[moment_of(told) // 60_000] += 1
        self._recent.append(recent)

    def _let_go(self, now_ms: Millis) -> None:
        """Forget what is too old to be shown."""
        while self._kept and moment_of(self._kept[0][1]) < now_ms - KEPT_MS:
            self._drop_oldest(is_last_kept=True)
        oldest = now_ms // 60_000 - 60
        for minute in [each for each in self._minutes if each < oldest]:
            del self._minutes[minute]

    def _drop_oldest(self, *, is_last_kept: bool) -> None:
        book, told = self._kept.popleft()
        self._weight -= _weigh(told)
        if told in book.rebalances and not (is_last_kept and len(book.rebalances) == 1):
            book.rebalances.remove(told)
            self._touch(book)

    # Questions

    def find_group(self, group_id: GroupId, now_ms: Millis) -> GroupView | None:
        book = self._books.get(group_id)
        if book is None:
            return None
        looked = Looked(
            version=self._ends_version, at_ms=self._looked_ms, trend_ms=tuple(self._trend_ms)
        )
        return book.view(self._ends, looked, now_ms)

    def find_rebalance(self, group_id: GroupId, key: str) -> Rebalance | None:
        """One that was worked out may be told by an event since then, which names it otherwise."""
        book = self._books.get(group_id)
        return None if book is None else book.find_rebalance(key)

    def list_groups(self, wish: GroupWish, now_ms: Millis) -> GroupPage:
        rows = (book.row(self._ends, self._ends_version, now_ms) for book in self._books.values())
        page = page_of(rows, wish)
        return replace(page, rows=self._dressed(page.rows))

    def overview(self, now_ms: Millis) -> Overview:
        rows = [book.row(self._ends, self._ends_version, now_ms) for book in self._books.values()]
        recent = sorted(self._recent, key=lambda each: -moment_of(each.rebalance))
        minute = now_ms // 60_000
        told = overview_of(
            rows,
            recent=tuple(each for each in recent if each.group_id in self._books),
            lag_trend=tuple(self._lag_trend),
            trend_ms=tuple(self._trend_ms),
            by_minute=tuple(self._minutes[each] for each in range(minute - 59, minute + 1)),
            is_exact=self.has_events,
        )
        return replace(told, worst=self._dressed(told.worst))

    def _dressed(self, rows: Iterable[GroupRow]) -> tuple[GroupRow, ...]:
        return tuple(self._books[each.group_id].dressed(each) for each in rows)

    def readers(self) -> dict[Topic, frozenset[GroupId]]:
        """Which groups have offsets or members in which topics."""
        found: dict[Topic, set[GroupId]] = {}
        for group_id, book in self._books.items():
            for partition in book.partitions():
                found.setdefault(partition.topic, set()).add(group_id)
        return {topic: frozenset(groups) for topic, groups in found.items()}

    def partitions(self) -> frozenset[TopicPartition]:
        """All that any group has committed offsets of: where their logs end is worth knowing."""
        return frozenset(each for book in self._books.values() for each in book.commits)


def _weigh(rebalance: Rebalance) -> int:
    return 1 + len(rebalance.participants) + len(rebalance.removals)
