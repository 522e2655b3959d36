"""What a page is: what it says, as values, and the template that says it.

Pages are made by functions of a `Visit`, on threads: they may ask the cluster and wait for it.
"""

from collections.abc import Mapping
from typing import Any

from kohort.admin.cluster import Cluster
from kohort.admin.picture import Following
from kohort.console.findings import Findings
from kohort.types import Millis, value


class NotFound(Exception):
    """There is no such page; one sentence says what is not there."""


class BadQuestion(Exception):
    """The address or the form makes no sense; one sentence says why."""


@value
class Desk:
    """What pages ask."""

    cluster: Cluster
    following: Following
    findings: Findings | None


@value
class Visit:
    """One request, as far as a page needs to know it."""

    desk: Desk
    path: str
    """Of the page itself, without an ending."""
    names: Mapping[str, str]
    """What the path names."""
    query: Mapping[str, str]
    now_ms: Millis


@value
class Page:
    template: str
    title: str
    told: Mapping[str, Any]
    """What the page says, and its JSON twin."""
    shown: Mapping[str, Any]
    """What only the template needs: words and links."""
    chart: Any = None
    """What the page's script draws."""
    pace_s: float | None = 1.0
    """How often its feed looks for changes, at most; None where nothing changes by itself."""
    status: int = 200


def read_number(query: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    text = query.get(name, "").strip()
    if not text:
        return default
    try:
        number = int(text)
    except ValueError:
        raise BadQuestion(f"{name} must be a number, not {text!r}") from None
    return min(max(number, least), most)
