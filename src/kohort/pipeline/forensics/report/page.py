"""The report as one page of HTML that needs nothing but itself. Pure, but for its own parts.

Whatever comes from the tables is escaped here, or stands in blocks of JSON that the page's script
puts in place as text. The page forbids itself everything else: it may load nothing, and run no
script but its own, which it knows by its hash.
"""

import base64
import hashlib
import json
from functools import cache
from html import escape
from importlib import resources
from string import Template
from typing import Any, Final
from urllib.parse import quote

from kohort.pipeline.forensics.report.model import Group, Report
from kohort.pipeline.forensics.report.packing import pack
from kohort.pipeline.forensics.report.pain import Need
from kohort.pipeline.forensics.report.words import (
    DEPARTURES,
    ENDINGS,
    TRIGGERS,
    count,
    duration,
    machine_moment,
    percent,
    stretch,
)

STORIES_BYTES_MAX: Final = 4_000_000
"""A page of some megabytes opens at once, and can be sent by mail."""

LIST_BYTES_MAX: Final = 2_000_000
"""Room for about 2,000 groups."""

TAGS: Final = {"exact": "exact", "mixed": "partly exact", "inferred": "inferred"}

NEEDS: Final = {Need.NOW: "needs you", Need.SOON: "look", Need.NONE: "quiet"}

BINS: Final = 48

SHORT_NAME: Final = 26


def report_as_html(report: Report) -> str:
    parts = {name: _part(name) for name in ("page.css", "page.js", "story.js", "timeline.js")}
    style = parts["page.css"]
    script = "\n".join([parts["page.js"], parts["timeline.js"], parts["story.js"]])
    stories, kind = _stories(report), _kind(report)
    rows = _rows(report, {each["id"] for each in stories})
    return Template(_part("page.html")).substitute(
        policy=_policy(script, style),
        style=style,
        script=script,
        headline=escape(report.headline),
        worst=_worst(report, {each["id"] for each in stories}),
        span=_span(report),
        kind=kind,
        tag=f'<span class="tag">{TAGS[kind]}</span> ' if kind in TAGS else "",
        knowledge=escape(report.knowledge),
        measure=escape(report.measure),
        notes=_notes(report, told=len(stories), listed=len(rows)),
        rows="\n".join(rows),
        empty="" if rows else " hidden",
        head=_json(_head(report, [each["id"] for each in stories])),
        stories="\n".join(
            f'<script type="application/json" id="story-{number}">{_json(each)}</script>'
            for number, each in enumerate(stories)
        ),
    )


@cache
def _part(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="utf-8")


def _kind(report: Report) -> str:
    if not any(each.rebalances for each in report.groups):
        return "nothing"
    if report.is_exact:
        return "exact"
    return "mixed" if any(each.exact for each in report.groups) else "inferred"


def _worst(report: Report, told: set[str]) -> str:
    """The sentence about the worst group, whose name leads to it."""
    if not report.worst:
        return ""
    name = report.groups[0].group_id
    before, _, after = report.worst.partition(name)
    linked = _name(name, is_told=name in told)
    return f'<p class="worst">{escape(before)}{linked}{escape(after)}</p>'


def _name(group: str, *, is_told: bool) -> str:
    name = f"<bdi>{escape(group)}</bdi>"
    return f'<a href="#group={quote(group, safe="")}">{name}</a>' if is_told else name


def _stories(report: Report) -> list[dict[str, Any]]:
    """As many as the page has room for; the first one always fits."""
    packed: list[dict[str, Any]] = []
    size = 0
    for story in report.stories:
        each = pack(story, report.since_ms or 0)
        size += len(_json(each).encode())
        if packed and size > STORIES_BYTES_MAX:
            break
        packed.append(each)
    return packed


def _rows(report: Report, told: set[str]) -> list[str]:
    """As many as the page has room for; the first one always fits."""
    rows: list[str] = []
    size = 0
    for group in report.groups:
        each = _row(group, is_told=group.group_id in told)
        size += len(each.encode())
        if rows and size > LIST_BYTES_MAX:
            break
        rows.append(each)
    return rows


def _notes(report: Report, *, told: int, listed: int) -> str:
    said = list(report.left_out)
    if told < len(report.stories):
        said.append(
            f"To keep this page small, only the first {told:,} of those groups could be shown in "
            "full; the JSON of this report has them all."
        )
    if listed < len(report.groups):
        said.append(
            f"The list has the first {listed:,} of {len(report.groups):,} groups; "
            "the JSON of this report has them all."
        )
    return "".join(f"<p>{escape(each)}</p>" for each in said)


def _head(report: Report, told: list[str]) -> dict[str, Any]:
    return {
        "since": report.since_ms or 0,
        "until": report.until_ms or 0,
        "triggers": TRIGGERS,
        "endings": ENDINGS,
        "departures": DEPARTURES,
        "stories": told,
    }


def _json(told: Any) -> str:
    """Harmless within a script element, whatever names are in it."""
    text = json.dumps(told, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _policy(script: str, style: str) -> str:
    def digest(text: str) -> str:
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    return escape(
        f"default-src 'none'; script-src 'sha256-{digest(script)}'; "
        f"style-src 'sha256-{digest(style)}'; base-uri 'none'; form-action 'none'"
    )


def _span(report: Report) -> str:
    if report.since_ms is None or report.until_ms is None:
        return "nothing to tell of"
    words = stretch(report.since_ms, report.until_ms)
    length = duration(report.until_ms - report.since_ms)
    told = f"{words}, {length}"
    figures = [count(report.groups_total, "group"), count(report.commits, "commit")]
    if report.events:
        figures.append(count(report.events, "event"))
    moment = machine_moment(report.since_ms)
    return f'<time datetime="{moment}">{escape(told)}</time>, {", ".join(figures)}'


def _row(group: Group, *, is_told: bool) -> str:
    name = _name(group.group_id, is_told=is_told)
    chips = "".join(f"<li>{escape(each.replace('-', ' '))}</li>" for each in group.findings)
    lag = "" if group.lag_records is None else f"{group.lag_records:,}"
    status = group.lag_status or ""
    cells = (
        _cell("Need", group.pain.total, _need(group)),
        f'<th scope="row" data-label="Group">{name}'
        + (f'<ul class="chips">{chips}</ul>' if chips else "")
        + "</th>",
        f'<td data-label="When">{_strip(group)}</td>',
        _cell("Rebalances", group.rebalances, _rebalances(group)),
        f'<td data-label="Mostly started by" class="who">{_who(group.starter)}</td>',
        _cell(
            "Without an owner",
            group.ownerless_ms,
            f"{duration(group.ownerless_ms)}<small>{percent(group.ownerless_share)}</small>"
            if group.ownerless_ms
            else "",
        ),
        _cell(
            "Rebalancing",
            group.rebalancing_share,
            percent(group.rebalancing_share) if group.rebalancing_share else "",
        ),
        _cell(
            "Lag",
            group.lag_records if group.lag_records is not None else -1,
            f'{lag}<small class="lag-{escape(status)}">{escape(status)}</small>',
        ),
    )
    return f'<tr data-need="{group.need}">{"".join(cells)}</tr>'


def _rebalances(group: Group) -> str:
    sure = "" if group.confidence is None else f"<small>{percent(group.confidence)} sure</small>"
    return f"{group.rebalances:,}{sure}"


def _who(name: str | None) -> str:
    """A client, and below it where it runs."""
    if name is None:
        return ""
    client, at, host = name.rpartition(" at /")
    whole = client if at else name
    # A name that has room is not broken at its hyphens.
    short = ' class="short"' if len(whole) <= SHORT_NAME else ""
    where = f"<small> at /{escape(host)}</small>" if at else ""
    return f"<bdi{short}>{escape(whole)}</bdi>{where}"


def _cell(label: str, value: float, text: str) -> str:
    return f'<td data-label="{label}" data-v="{value:g}" class="n">{text}</td>'


def _need(group: Group) -> str:
    pain = group.pain
    why = (
        f"{pain.total:g} = findings {pain.findings:g} + without an owner {pain.ownerless:g} "
        f"+ rebalancing {pain.rebalancing:g} + rebalances an hour {pain.rate:g} + lag {pain.lag:g}"
    )
    return (
        f'<span class="need {group.need}" title="{escape(why)}">{NEEDS[group.need]}</span>'
        f"<small>{pain.total:g}</small>"
    )


def _strip(group: Group) -> str:
    """Rebalances over time as small bars; red where partitions were without an owner for it."""
    if not group.strip:
        return '<span class="none">none</span>'
    most = max(each.rebalances for each in group.strip)
    bars: dict[str, list[str]] = {"cost": [], "calm": []}
    for each in group.strip:
        height = max(round(20 * each.rebalances / most), 2)
        kind = "cost" if each.ownerless_ms >= 1000 else "calm"
        bars[kind].append(f"M{each.number * 3} 22v-{height}h2v{height}z")
    paths = "".join(f'<path class="{kind}" d="{"".join(d)}"/>' for kind, d in bars.items() if d)
    label = f"{count(group.rebalances, 'rebalance')} over time, at most {most:,} at once"
    return (
        f'<svg class="strip" viewBox="0 0 {BINS * 3} 23" preserveAspectRatio="xMinYMid" role="img" '
        f'aria-label="{label}"><title>{label}</title>'
        f'<path class="ground" d="M0 22.5h{BINS * 3}"/>{paths}</svg>'
    )
