"""Turns pages into HTML. Everything that is not markup of ours is escaped, without exception.

A template's blocks whose names begin with `live_` are its live parts: the feed renders them alone
and sends those that have changed.
"""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kohort.console import charts, telling
from kohort.console.address import group_path, rebalance_path, topic_path
from kohort.console.jsonable import dump
from kohort.console.page import Page
from kohort.pipeline.forensics.report.words import (
    DEPARTURES,
    ENDINGS,
    TRIGGERS,
    count,
    duration,
    listed,
)

LIVE: Final = "live_"
STATIC: Final = {
    "console.css": "text/css; charset=utf-8",
    "console.js": "text/javascript; charset=utf-8",
    "timeline.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}

_NOTHING: Final = "\u2013"
"""What is not known is no zero."""

_MOMENT_MAX: Final = 253_402_300_799_999
"""The last one that a calendar has."""


@cache
def static_file(name: str) -> bytes:
    return (resources.files(__package__) / "static" / name).read_bytes()


@cache
def static_version() -> str:
    """Changes with any of the files, so that browsers may keep each for ever."""
    digest = hashlib.sha256()
    for name in STATIC:
        digest.update(static_file(name))
    return digest.hexdigest()[:12]


def number(told: int | None) -> str:
    return _NOTHING if told is None else f"{told:,}"


def size(told: int | None) -> str:
    if told is None:
        return _NOTHING
    amount = float(told)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:,.1f} TB"


def moment(ms: int | None) -> Markup:
    """A time of the day; the page's script adds how long ago it was, and the reader's own zone."""
    if ms is None:
        return Markup(_NOTHING)  # noqa: S704  # a dash
    at = datetime.fromtimestamp(min(max(ms, 0), _MOMENT_MAX) / 1000, UTC)
    machine = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    # Both are ours: digits and signs of a date.
    return Markup('<time datetime="{}" data-ms="{}">{:%H:%M:%S}</time>').format(machine, ms, at)


def spark(values: Any, width: int = 120, height: int = 24, kind: str = "line") -> Markup:
    values = list(values)
    known = [each for each in values if each is not None]
    if kind == "bars":
        path = charts.spark_bars(values, width, height)
        words = f"by minute, at most {max(known, default=0):,}"
    else:
        path = charts.spark_line(values, width, height)
        words = f"from {known[0]:,} to {known[-1]:,}" if known else "not known yet"
    return Markup(
        '<svg class="spark {}" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" '
        'aria-label="{}"><path d="{}"/></svg>'
    ).format(kind, width, height, words, path)


def json_block(told: Any) -> Markup:
    """For a script element that holds data: `dump` has left no sign that could end it."""
    return Markup(dump(told))  # noqa: S704  # as said


@cache
def environment() -> Environment:
    made = Environment(
        loader=PackageLoader("kohort.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "count": count,
        "duration": duration,
        "json_block": json_block,
        "listed": listed,
        "moment": moment,
        "number": number,
        "places": telling.places,
        "size": size,
        "spark": spark,
        "who": telling.who,
    }
    made.globals |= {
        "DEPARTURES": DEPARTURES,
        "ENDINGS": ENDINGS,
        "NEEDS": telling.NEEDS,
        "STATE_TONES": telling.STATE_TONES,
        "STATE_WORDS": telling.STATE_WORDS,
        "TRIGGERS": TRIGGERS,
        "group_path": group_path,
        "rebalance_path": rebalance_path,
        "telling": telling,
        "topic_path": topic_path,
        "version": static_version(),
    }
    # Live parts are rendered without the rest of their template, where imports would stand.
    made.globals["m"] = made.get_template("macros.html").module
    return made


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
        **page.told,
        **page.shown,
        "title": page.title,
        "chart": page.chart,
        "is_live": page.pace_s is not None,
    }
