"""All groups: found, sorted and paged here, so that ten thousand of them are no more than fifty."""

from typing import Any, Final

from kohort.admin.group_monitor import GroupQuery, Status
from kohort.admin.group_monitor.queries import SORTS
from kohort.console import rebalance_text
from kohort.console.page import BadRequest, Page, PageRequest, read_number
from kohort.console.url_encoding import with_query

PER_PAGE: Final = 50
SEARCH_MAX: Final = 300
"""A group id has at most 249 characters in practice."""

_DESCENDING_FIRST: Final = frozenset(
    {"status", "members", "partitions", "lag", "rebalances", "commit"}
)


def groups(request: PageRequest) -> Page:
    query = _read_query(request)
    with request.context.monitor.locked_state() as state:
        page = state.list_groups(query, request.now_ms)
        total = state.overview(request.now_ms)
    params = {
        "search": query.search,
        "state": query.state,
        "status": query.status,
        "sort": query.sort if query.sort != "status" else "",
        "order": "" if query.is_descending == (query.sort in _DESCENDING_FIRST) else _order(query),
    }
    return Page(
        template="groups.html",
        title="Groups",
        data={"filter": query, "page": page, "states": total.states, "statuses": total.statuses},
        template_data={
            "total": total.groups,
            "sorts": {name: _sort_link(request, query, params, name) for name in SORTS},
            "previous": _page_link(request, params, page.page - 1, page.pages),
            "next": _page_link(request, params, page.page + 1, page.pages),
            "params": params,
        },
        refresh_s=2.0,
    )


def _read_query(request: PageRequest) -> GroupQuery:
    query = request.query
    sort = query.get("sort") or "status"
    if sort not in SORTS:
        raise BadRequest(f"unknown sort {sort!r}; use one of {', '.join(SORTS)}")
    status = query.get("status", "")
    if status and status not in set(Status):
        raise BadRequest(f"unknown status {status!r}; use one of {', '.join(Status)}")
    order = query.get("order") or ("down" if sort in _DESCENDING_FIRST else "up")
    if order not in {"up", "down"}:
        raise BadRequest(f"unknown order {order!r}; use up or down")
    return GroupQuery(
        search=query.get("search", "").strip()[:SEARCH_MAX],
        state=query.get("state", ""),
        status=status,
        sort=sort,
        is_descending=order == "down",
        page=read_number(query, "page", 1, 1, 1_000_000),
        per_page=read_number(query, "per_page", PER_PAGE, 1, 500),
    )


def _order(query: GroupQuery) -> str:
    return "down" if query.is_descending else "up"


def _sort_link(
    request: PageRequest, query: GroupQuery, params: dict[str, str], name: str
) -> dict[str, Any]:
    """A second click reverses the order."""
    is_current = query.sort == name
    first = "down" if name in _DESCENDING_FIRST else "up"
    order = first if not is_current else ("up" if query.is_descending else "down")
    link = {
        **params,
        "sort": "" if name == "status" else name,
        "order": "" if order == first else order,
    }
    direction = {"down": "descending", "up": "ascending"}[_order(query)]
    return {
        "href": with_query(request.path, link),
        "sorted": direction if is_current else "none",
    }


def _page_link(request: PageRequest, params: dict[str, str], number: int, pages: int) -> str | None:
    if not 1 <= number <= pages:
        return None
    return with_query(request.path, {**params, "page": number if number > 1 else ""})


def overview(request: PageRequest) -> Page:
    with request.context.monitor.locked_state() as state:
        cluster_overview = state.overview(request.now_ms)
    return Page(
        template="overview.html",
        title="Overview",
        data={"headline": rebalance_text.headline(cluster_overview), "overview": cluster_overview},
        template_data={},
        refresh_s=2.0,
    )
