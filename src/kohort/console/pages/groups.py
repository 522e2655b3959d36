"""All groups: found, sorted and paged here, so that ten thousand of them are no more than fifty."""

from typing import Any, Final

from kohort.admin.picture import GroupWish, Need
from kohort.admin.picture.lists import SORTS
from kohort.console.address import with_query
from kohort.console.page import BadQuestion, Page, Visit, read_number

PER_PAGE: Final = 50
SEARCH_MAX: Final = 300
"""A group id has at most 249 characters in practice."""

_DESCENDING_FIRST: Final = frozenset(
    {"need", "members", "partitions", "lag", "rebalances", "commit"}
)


def groups(visit: Visit) -> Page:
    wish = _read_wish(visit)
    with visit.desk.following.look() as picture:
        page = picture.list_groups(wish, visit.now_ms)
        total = picture.overview(visit.now_ms)
    asked = {
        "search": wish.search,
        "state": wish.state,
        "need": wish.need,
        "sort": wish.sort if wish.sort != "need" else "",
        "order": "" if wish.is_descending == (wish.sort in _DESCENDING_FIRST) else _order(wish),
    }
    return Page(
        template="groups.html",
        title="Groups",
        told={"wish": wish, "page": page, "states": total.states, "needs": total.needs},
        shown={
            "total": total.groups,
            "sorts": {name: _sort_link(visit, wish, asked, name) for name in SORTS},
            "previous": _page_link(visit, asked, page.page - 1, page.pages),
            "next": _page_link(visit, asked, page.page + 1, page.pages),
            "asked": asked,
        },
        pace_s=2.0,
    )


def _read_wish(visit: Visit) -> GroupWish:
    query = visit.query
    sort = query.get("sort") or "need"
    if sort not in SORTS:
        raise BadQuestion(f"groups can be sorted by {', '.join(SORTS)}, not by {sort!r}")
    need = query.get("need", "")
    if need and need not in set(Need):
        raise BadQuestion(f"a need is {', '.join(Need)}, not {need!r}")
    order = query.get("order") or ("down" if sort in _DESCENDING_FIRST else "up")
    if order not in {"up", "down"}:
        raise BadQuestion(f"an order is up or down, not {order!r}")
    return GroupWish(
        search=query.get("search", "").strip()[:SEARCH_MAX],
        state=query.get("state", ""),
        need=need,
        sort=sort,
        is_descending=order == "down",
        page=read_number(query, "page", 1, 1, 1_000_000),
        per_page=read_number(query, "per_page", PER_PAGE, 1, 500),
    )


def _order(wish: GroupWish) -> str:
    return "down" if wish.is_descending else "up"


def _sort_link(visit: Visit, wish: GroupWish, asked: dict[str, str], name: str) -> dict[str, Any]:
    """Choosing the present one again turns it round."""
    is_present = wish.sort == name
    first = "down" if name in _DESCENDING_FIRST else "up"
    order = first if not is_present else ("up" if wish.is_descending else "down")
    query = {
        **asked,
        "sort": "" if name == "need" else name,
        "order": "" if order == first else order,
    }
    turned = {"down": "descending", "up": "ascending"}[_order(wish)]
    return {
        "href": with_query(visit.path, query),
        "sorted": turned if is_present else "none",
    }


def _page_link(visit: Visit, asked: dict[str, str], number: int, pages: int) -> str | None:
    if not 1 <= number <= pages:
        return None
    return with_query(visit.path, {**asked, "page": number if number > 1 else ""})
