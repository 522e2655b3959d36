"""The types of pages: the request, the page (data and template), and errors.

A page is made by a function of a `PageRequest`, on a thread pool: it may block on the cluster.
"""

from collections.abc import Mapping
from typing import Any

from kohort.admin.cluster_connection import Cluster
from kohort.admin.group_monitor import GroupMonitor
from kohort.console.findings import FindingsStore
from kohort.types import Millis, value


class NotFound(Exception):
    """404; the message is one sentence."""


class BadRequest(Exception):
    """400: invalid query or form; the message is one sentence."""


class TooBusy(Exception):
    """503: too many such pages at once; the message is one sentence."""


@value
class ConsoleContext:
    """The data sources of pages."""

    cluster: Cluster
    monitor: GroupMonitor
    findings: FindingsStore | None


@value
class PageRequest:
    """The part of an HTTP request that pages use."""

    context: ConsoleContext
    path: str
    """Without .json or .feed."""
    path_params: Mapping[str, str]
    """Decoded group ids, topic names and keys of the path."""
    query: Mapping[str, str]
    now_ms: Millis


@value
class Page:
    template: str
    title: str
    data: Mapping[str, Any]
    """The content of the page and of its JSON version."""
    template_data: Mapping[str, Any]
    """Only for the template: text and links."""
    chart: Any = None
    """The data of the page's chart."""
    refresh_s: float | None = 1.0
    """The minimum interval between updates in the feed; None if the page is static."""
    status: int = 200


def read_number(query: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    text = query.get(name, "").strip()
    if not text:
        return default
    try:
        number = int(text)
    except ValueError:
        raise BadRequest(f"{name} must be a number, not {text!r}") from None
    return min(max(number, least), most)
