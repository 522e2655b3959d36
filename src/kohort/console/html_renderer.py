"""Renders pages as HTML. All data is escaped.

The template blocks whose names begin with `live_` are live parts: the feed renders them alone and
sends those that have changed.
"""

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kohort.console import charts, rebalance_text
from kohort.console.json_values import dump
from kohort.console.page import Page
from kohort.console.url_encoding import group_path, rebalance_path, topic_path
from kohort.text import numbers, times
from kohort.text.rebalances import DEPARTURES, ENDINGS, TRIGGERS, client_reason, member_name

LIVE: Final = "live_"
STATIC: Final = {
    "console.css": "text/css; charset=utf-8",
    "console.js": "text/javascript; charset=utf-8",
    "timeline.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}

_UNKNOWN: Final = "\u2013"
"""Unknown is not zero."""


@cache
def static_file(name: str) -> bytes:
    return (resources.files(__package__) / "static" / name).read_bytes()


@cache
def static_version() -> str:
    """Changes with any of the files, so that browsers may cache them forever."""
    digest = hashlib.sha256()
    for name in STATIC:
        digest.update(static_file(name))
    return digest.hexdigest()[:12]


def number(value: int | None) -> str:
    return _UNKNOWN if value is None else f"{value:,}"


def size(value: int | None) -> str:
    return _UNKNOWN if value is None else numbers.size(value)


def timestamp(ms: int | None) -> Markup:
    """A time of day in UTC; the page's script adds the age and the local time."""
    if ms is None:
        return Markup(_UNKNOWN)  # noqa: S704  # a dash
    # Only digits and punctuation.
    return Markup('<time datetime="{}" data-ms="{}">{:%H:%M:%S}</time>').format(
        times.timestamp(ms), ms, times.date_of(ms)
    )


def spark(values: Any, width: int = 120, height: int = 24, kind: str = "line") -> Markup:
    values = list(values)
    known = [each for each in values if each is not None]
    if kind == "bars":
        path = charts.spark_bars(values, width, height)
        label = f"by minute, at most {max(known, default=0):,}"
    else:
        path = charts.spark_line(values, width, height)
        label = f"from {known[0]:,} to {known[-1]:,}" if known else "unknown"
    return Markup(
        '<svg class="spark {}" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" '
        'aria-label="{}"><path d="{}"/></svg>'
    ).format(kind, width, height, label, path)


def json_block(value: Any) -> Markup:
    """Data within a script element: `dump` escapes everything that could end it."""
    return Markup(dump(value))  # noqa: S704  # escaped by dump


@cache
def environment() -> Environment:
    env = Environment(
        loader=PackageLoader("kohort.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters |= {
        "count": numbers.count,
        "duration": numbers.duration,
        "json_block": json_block,
        "listed": numbers.joined,
        "timestamp": timestamp,
        "number": number,
        "partitions": rebalance_text.partitions_text,
        "size": size,
        "spark": spark,
        "member_name": member_name,
    }
    env.globals |= {
        "DEPARTURES": DEPARTURES,
        "ENDINGS": ENDINGS,
        "STATE_COLORS": rebalance_text.STATE_COLORS,
        "STATE_TEXT": rebalance_text.STATE_TEXT,
        "TRIGGERS": TRIGGERS,
        "client_reason": client_reason,
        "group_path": group_path,
        "rebalance_path": rebalance_path,
        "text": rebalance_text,
        "topic_path": topic_path,
        "version": static_version(),
    }
    # Live parts are rendered without the rest of their template, which would import the macros.
    env.globals["m"] = env.get_template("macros.html").module
    return env


def render_page(page: Page, frame: Mapping[str, Any]) -> str:
    return environment().get_template(page.template).render(_context(page, frame))


def render_parts(page: Page, frame: Mapping[str, Any]) -> dict[str, str]:
    """The live parts of a page, by name."""
    template = environment().get_template(page.template)
    context = template.new_context(_context(page, frame))
    return {
        name.removeprefix(LIVE): "".join(block(context))
        for name, block in template.blocks.items()
        if name.startswith(LIVE)
    }


def render_health(frame: Mapping[str, Any]) -> str:
    return environment().get_template("health.html").render(frame)


def _context(page: Page, frame: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **frame,
        **page.data,
        **page.template_data,
        "title": page.title,
        "chart": page.chart,
        "is_live": page.refresh_s is not None,
    }
