"""Many groups at once: found, sorted and cut into pages, and summed up. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import nsmallest
from typing import Any, Final

from kohort.admin.picture.values import (
    GroupPage,
    GroupRow,
    GroupWish,
    Need,
    Overview,
    RecentRebalance,
)
from kohort.types import Millis

PER_PAGE_MAX: Final = 500
"""What a browser still draws at once."""

WORST_MAX: Final = 10

_NEEDS: Final = {Need.NOW: 2, Need.SOON: 1, Need.NONE: 0}


def _urgency(row: GroupRow) -> tuple[int, int, int]:
    return (_NEEDS[row.need], row.rebalances, row.lag or 0)


SORTS: Final[Mapping[str, Callable[[GroupRow], Any]]] = {
    "need": _urgency,
    "group": lambda row: row.group_id,
    "state": lambda row: row.state,
    "members": lambda row: row.members,
    "partitions": lambda row: row.partitions,
    "lag": lambda row: row.lag,
    "rebalances": lambda row: (row.rebalances, row.last_rebalance_ms or 0),
    "commit": lambda row: row.last_commit_ms,
}
"""What a list of groups can be sorted by; None is always last."""


def page_of(rows: Iterable[GroupRow], wish: GroupWish) -> GroupPage:
    found = [each for each in rows if _matches(each, wish)]
    per_page = min(max(wish.per_page, 1), PER_PAGE_MAX)
    pages = max(1, -(-len(found) // per_page))
    page = min(max(wish.page, 1), pages)
    worth = SORTS.get(wish.sort, _urgency)
    known = [each for each in found if worth(each) is not None]
    unknown = [each for each in found if worth(each) is None]
    known.sort(key=lambda row: row.group_id)
    known.sort(key=worth, reverse=wish.is_descending)
    unknown.sort(key=lambda row: row.group_id)
    ordered = known + unknown
    start = (page - 1) * per_page
    return GroupPage(
        rows=tuple(ordered[start : start + per_page]), found=len(found), page=page, pages=pages
    )


def _matches(row: GroupRow, wish: GroupWish) -> bool:
    if wish.state and row.state != wish.state:
        return False
    if wish.need and row.need != wish.need:
        return False
    return wish.search.casefold() in row.group_id.casefold()


def overview_of(
    rows: Sequence[GroupRow],
    *,
    recent: tuple[RecentRebalance, ...],
    lag_trend: tuple[int | None, ...],
    trend_ms: tuple[Millis, ...],
    by_minute: tuple[int, ...],
    is_exact: bool,
) -> Overview:
    states = Counter(each.state for each in rows)
    needs = Counter(each.need for each in rows)
    lags = [each.lag for each in rows if each.lag is not None]
    return Overview(
        groups=len(rows),
        states=tuple(sorted(states.items(), key=lambda each: (-each[1], each[0]))),
        needs=tuple((each, needs[each]) for each in Need),
        members=sum(each.members for each in rows),
        lag=sum(lags) if lags else None,
        lag_trend=lag_trend,
        trend_ms=trend_ms,
        rebalances=sum(by_minute),
        rebalances_by_minute=by_minute,
        worst=tuple(
            nsmallest(
                WORST_MAX, rows, key=lambda row: (*(-each for each in _urgency(row)), row.group_id)
            )
        ),
        recent=recent,
        is_exact=is_exact,
    )
