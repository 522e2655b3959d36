"""Filters, sorts, pages and summarizes groups. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import nsmallest
from typing import Any, Final

from kohort.admin.group_monitor.views import (
    ClusterOverview,
    GroupPage,
    GroupQuery,
    MonitoredGroupRow,
    RecentRebalance,
    Status,
)
from kohort.types import Millis

PER_PAGE_MAX: Final = 500
"""A browser renders this many rows without delay."""

WORST_MAX: Final = 10

_RANKS: Final = {Status.CRITICAL: 2, Status.WARNING: 1, Status.HEALTHY: 0}


def _severity(row: MonitoredGroupRow) -> tuple[int, int, int]:
    return (_RANKS[row.status], row.rebalances, row.lag or 0)


SORTS: Final[Mapping[str, Callable[[MonitoredGroupRow], Any]]] = {
    "status": _severity,
    "group": lambda row: row.group_id,
    "state": lambda row: row.state,
    "members": lambda row: row.members,
    "partitions": lambda row: row.partitions,
    "lag": lambda row: row.lag,
    "rebalances": lambda row: (row.rebalances, row.last_rebalance_ms or 0),
    "commit": lambda row: row.last_commit_ms,
}
"""Sort keys of a list of groups. Rows whose key is None come last."""


def page_of(rows: Iterable[MonitoredGroupRow], query: GroupQuery) -> GroupPage:
    found = [each for each in rows if _matches(each, query)]
    per_page = min(max(query.per_page, 1), PER_PAGE_MAX)
    pages = max(1, -(-len(found) // per_page))
    page = min(max(query.page, 1), pages)
    key = SORTS.get(query.sort, _severity)
    known = [each for each in found if key(each) is not None]
    unknown = [each for each in found if key(each) is None]
    known.sort(key=lambda row: row.group_id)
    known.sort(key=key, reverse=query.is_descending)
    unknown.sort(key=lambda row: row.group_id)
    ordered = known + unknown
    start = (page - 1) * per_page
    return GroupPage(
        rows=tuple(ordered[start : start + per_page]), found=len(found), page=page, pages=pages
    )


def _matches(row: MonitoredGroupRow, query: GroupQuery) -> bool:
    if query.state and row.state != query.state:
        return False
    if query.status and row.status != query.status:
        return False
    return query.search.casefold() in row.group_id.casefold()


def overview_of(
    rows: Sequence[MonitoredGroupRow],
    *,
    recent: tuple[RecentRebalance, ...],
    lag_trend: tuple[int | None, ...],
    trend_ms: tuple[Millis, ...],
    by_minute: tuple[int, ...],
    is_exact: bool,
) -> ClusterOverview:
    states = Counter(each.state for each in rows)
    statuses = Counter(each.status for each in rows)
    lags = [each.lag for each in rows if each.lag is not None]
    return ClusterOverview(
        groups=len(rows),
        states=tuple(sorted(states.items(), key=lambda each: (-each[1], each[0]))),
        statuses=tuple((each, statuses[each]) for each in Status),
        members=sum(each.members for each in rows),
        lag=sum(lags) if lags else None,
        lag_trend=lag_trend,
        trend_ms=trend_ms,
        rebalances=sum(by_minute),
        rebalances_by_minute=by_minute,
        worst=tuple(
            nsmallest(
                WORST_MAX, rows, key=lambda row: (*(-each for each in _severity(row)), row.group_id)
            )
        ),
        recent=recent,
        is_exact=is_exact,
    )
