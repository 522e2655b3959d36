"""The report as one HTML page without external resources. Pure, except for reading its templates.

All text from the tables is escaped here, or is in blocks of JSON that the page's script inserts as
text. The page's content security policy allows no loading, and no script but its own, by its hash.
Details of a group are packed for the script: names once, rows without names, and times in
milliseconds since the beginning of the report. A client is its index in `names`.
"""

import base64
import hashlib
import json
from dataclasses import fields
from functools import cache
from html import escape
from importlib import resources
from itertools import groupby
from string import Template
from typing import Any, Final
from urllib.parse import quote

from kohort.pipeline.forensics.report.report_model import (
    ClientIdentity,
    GroupDetails,
    GroupRow,
    OwnershipPeriod,
    RebalanceRow,
    Report,
    plain,
)
from kohort.text.numbers import count, duration, percent
from kohort.text.rebalances import DEPARTURES, ENDINGS, TRIGGERS
from kohort.text.times import period, timestamp

DETAILS_BYTES_MAX: Final = 4_000_000
"""A page of a few megabytes opens quickly and can be sent by mail."""

LIST_BYTES_MAX: Final = 2_000_000
"""Enough for about 2,000 groups."""

TAGS: Final = {"exact": "exact", "mixed": "partly exact", "inferred": "inferred"}

BINS: Final = 48

SHORT_NAME: Final = 26

_TIMESTAMPS: Final = {"from_ms", "to_ms", "started_ms", "ended_ms", "since_ms", "at_ms"}


def report_as_html(report: Report) -> str:
    parts = {name: _part(name) for name in ("page.css", "page.js", "group.js", "timeline.js")}
    style = parts["page.css"]
    script = "\n".join([parts["page.js"], parts["timeline.js"], parts["group.js"]])
    details, kind = _details(report), _kind(report)
    rows = _rows(report, {each["id"] for each in details})
    return Template(_part("page.html")).substitute(
        policy=_policy(script, style),
        style=style,
        script=script,
        headline=escape(report.headline),
        worst=_worst(report, {each["id"] for each in details}),
        span=_span(report),
        kind=kind,
        tag=f'<span class="tag">{TAGS[kind]}</span> ' if kind in TAGS else "",
        knowledge=escape(report.knowledge),
        severity_help=escape(report.severity_help),
        notes=_notes(report, shown=len(details), listed=len(rows)),
        rows="\n".join(rows),
        empty="" if rows else " hidden",
        head=_json(_head(report, [each["id"] for each in details])),
        details="\n".join(
            f'<script type="application/json" id="details-{number}">{_json(each)}</script>'
            for number, each in enumerate(details)
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


def _worst(report: Report, shown: set[str]) -> str:
    """The sentence about the most severe group, with a link to its details."""
    if not report.worst:
        return ""
    name = report.groups[0].group_id
    before, _, after = report.worst.partition(name)
    linked = _name(name, has_details=name in shown)
    return f'<p class="worst">{escape(before)}{linked}{escape(after)}</p>'


def _name(group: str, *, has_details: bool) -> str:
    name = f"<bdi>{escape(group)}</bdi>"
    return f'<a href="#group={quote(group, safe="")}">{name}</a>' if has_details else name


def _details(report: Report) -> list[dict[str, Any]]:
    """Up to the size limit; the first is always included."""
    packed: list[dict[str, Any]] = []
    size = 0
    for details in report.details:
        each = pack(details, report.since_ms or 0)
        size += len(_json(each).encode())
        if packed and size > DETAILS_BYTES_MAX:
            break
        packed.append(each)
    return packed


def _rows(report: Report, shown: set[str]) -> list[str]:
    """Up to the size limit; the first is always included."""
    rows: list[str] = []
    size = 0
    for group in report.groups:
        each = _row(group, has_details=group.group_id in shown)
        size += len(each.encode())
        if rows and size > LIST_BYTES_MAX:
            break
        rows.append(each)
    return rows


def _notes(report: Report, *, shown: int, listed: int) -> str:
    parts = list(report.omitted)
    if shown < len(report.details):
        parts.append(
            f"To keep this page small, it has details of the first {shown:,} of those groups "
            "only; the JSON version of this report has all."
        )
    if listed < len(report.groups):
        parts.append(
            f"The list has the first {listed:,} of {len(report.groups):,} groups; "
            "the JSON version of this report has all."
        )
    return "".join(f"<p>{escape(each)}</p>" for each in parts)


def _head(report: Report, shown: list[str]) -> dict[str, Any]:
    return {
        "since": report.since_ms or 0,
        "until": report.until_ms or 0,
        "triggers": TRIGGERS,
        "endings": ENDINGS,
        "departures": DEPARTURES,
        "details": shown,
    }


def _json(shown: Any) -> str:
    """Safe within a script element, for any names in it."""
    text = json.dumps(shown, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
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
        return "no data"
    words = period(report.since_ms, report.until_ms)
    length = duration(report.until_ms - report.since_ms)
    shown = f"{words}, {length}"
    counts = [count(report.groups_total, "group"), count(report.commits, "commit")]
    if report.events:
        counts.append(count(report.events, "event"))
    since = timestamp(report.since_ms)
    return f'<time datetime="{since}">{escape(shown)}</time>, {", ".join(counts)}'


def _row(group: GroupRow, *, has_details: bool) -> str:
    name = _name(group.group_id, has_details=has_details)
    chips = "".join(f"<li>{escape(each.replace('-', ' '))}</li>" for each in group.findings)
    lag = "" if group.lag_records is None else f"{group.lag_records:,}"
    status = group.lag_status or ""
    cells = (
        _cell("Status", group.severity.total, _status(group)),
        f'<th scope="row" data-label="Group">{name}'
        + (f'<ul class="chips">{chips}</ul>' if chips else "")
        + "</th>",
        f'<td data-label="Rebalances over time">{_bars(group)}</td>',
        _cell("Rebalances", group.rebalances, _rebalances(group)),
        f'<td data-label="Mostly started by" class="who">{_who(group.initiator)}</td>',
        _cell(
            "Without owner",
            group.ownerless_ms,
            f"{duration(group.ownerless_ms)}<small>{percent(group.ownerless_share)}</small>"
            if group.ownerless_ms
            else "",
        ),
        _cell(
            "Time rebalancing",
            group.rebalancing_share,
            percent(group.rebalancing_share) if group.rebalancing_share else "",
        ),
        _cell(
            "Lag",
            group.lag_records if group.lag_records is not None else -1,
            f'{lag}<small class="lag-{escape(status)}">{escape(status)}</small>',
        ),
    )
    return f'<tr data-status="{group.status}">{"".join(cells)}</tr>'


def _rebalances(group: GroupRow) -> str:
    sure = (
        "" if group.confidence is None else f"<small>{percent(group.confidence)} confidence</small>"
    )
    return f"{group.rebalances:,}{sure}"


def _who(name: str | None) -> str:
    """A client, and its host below."""
    if name is None:
        return ""
    client, at, host = name.rpartition(" at /")
    whole = client if at else name
    # A short name is not broken at its hyphens.
    short = ' class="short"' if len(whole) <= SHORT_NAME else ""
    where = f"<small> at /{escape(host)}</small>" if at else ""
    return f"<bdi{short}>{escape(whole)}</bdi>{where}"


def _cell(label: str, value: float, text: str) -> str:
    return f'<td data-label="{label}" data-v="{value:g}" class="n">{text}</td>'


def _status(group: GroupRow) -> str:
    severity = group.severity
    sum_of = (
        f"severity {severity.total:g} = findings {severity.findings:g} "
        f"+ without owner {severity.ownerless:g} + rebalancing {severity.rebalancing:g} "
        f"+ rebalances per hour {severity.rate:g} + lag {severity.lag:g}"
    )
    return (
        f'<span class="status {group.status}" title="{escape(sum_of)}">{group.status}</span>'
        f"<small>{severity.total:g}</small>"
    )


def _bars(group: GroupRow) -> str:
    """Rebalances over time as small bars, red if partitions had no owner for 1 s or more."""
    if not group.bins:
        return '<span class="none">none</span>'
    most = max(each.rebalances for each in group.bins)
    bars: dict[str, list[str]] = {"cost": [], "calm": []}
    for each in group.bins:
        height = max(round(20 * each.rebalances / most), 2)
        kind = "cost" if each.ownerless_ms >= 1000 else "calm"
        bars[kind].append(f"M{each.number * 3} 22v-{height}h2v{height}z")
    paths = "".join(f'<path class="{kind}" d="{"".join(d)}"/>' for kind, d in bars.items() if d)
    label = f"{count(group.rebalances, 'rebalance')} over time, at most {most:,} per bar"
    return (
        f'<svg class="bins" viewBox="0 0 {BINS * 3} 23" preserveAspectRatio="xMinYMid" role="img" '
        f'aria-label="{label}"><title>{label}</title>'
        f'<path class="ground" d="M0 22.5h{BINS * 3}"/>{paths}</svg>'
    )


def pack(details: GroupDetails, since_ms: int) -> dict[str, Any]:
    names = _Names(details)
    rows = {place: number for number, place in enumerate(details.partitions)}
    return {
        "id": details.group_id,
        "about": details.about,
        "answers": plain(details.answers),
        "knowledge": details.knowledge,
        "shown_from": details.shown_from_ms - since_ms,
        "omitted": list(details.omitted),
        "findings": [
            # The page does not show the evidence, which may be long.
            {k: v for k, v in _relative(plain(each), since_ms).items() if k != "evidence"}
            for each in details.findings
        ],
        "rebalances": _table(
            [_packed_rebalance(each, names, since_ms) for each in details.rebalances]
        ),
        "clients": [
            {
                "name": names.number(each.name),
                "rebalances_started": each.rebalances_started,
                "memberships": _table(
                    [_relative(plain(membership), since_ms) for membership in each.memberships]
                ),
            }
            for each in details.clients
        ],
        "partitions": [f"{topic}-{number}" for topic, number in details.partitions],
        "ownership": [
            [
                names.owner(each),
                each.from_ms - since_ms,
                None if each.to_ms is None else each.to_ms - since_ms,
                each.gap_before_ms,
                _runs(sorted(rows[place] for place in each.partitions)),
            ]
            for each in details.ownership
        ],
        "empty_periods": [_relative(plain(each), since_ms) for each in details.empty_periods],
        "lag": [
            [each.at_ms - since_ms, each.records, each.seconds and round(each.seconds, 1)]
            for each in details.lag
        ],
        "lagging_partitions": _table(
            [
                _relative(plain(each), since_ms) | {"owner": names.member(each.owner)}
                for each in details.lagging_partitions
            ]
        ),
        # Last, because the rows above add names.
        "names": names.all,
    }


class _Names:
    """Clients by number: those with memberships first, in the order of the details."""

    def __init__(self, details: GroupDetails) -> None:
        self.all = [each.name for each in details.clients]
        self._numbers = {name: number for number, name in enumerate(self.all)}
        self._members = {
            membership.member_id: each.name
            for each in details.clients
            for membership in each.memberships
        }

    def number(self, name: str) -> int:
        if name not in self._numbers:
            self._numbers[name] = len(self.all)
            self.all.append(name)
        return self._numbers[name]

    def identity(self, identity: ClientIdentity | None) -> int | None:
        return None if identity is None else self.number(identity.who)

    def member(self, member_id: str | None) -> str | None:
        """The name of its client, if known."""
        return None if member_id is None else self._members.get(member_id, member_id)

    def owner(self, owned: OwnershipPeriod) -> int:
        """Ownership rows have no host, so the name is looked up by the member id."""
        name = self._members.get(owned.member_id)
        return self.number(name or owned.instance_id or owned.client_id or owned.member_id)


def _packed_rebalance(each: RebalanceRow, names: _Names, since_ms: int) -> dict[str, Any]:
    row = {field.name: getattr(each, field.name) for field in fields(each)}
    row |= {name: names.identity(row[name]) for name in ("initiator", "slowest")}
    row |= {
        name: [names.identity(identity) for identity in row[name]]
        for name in ("joined", "departed")
    }
    row["confidence"] = None if each.confidence is None else round(each.confidence, 2)
    return _relative(row, since_ms)


def _relative(row: dict[str, Any], since_ms: int) -> dict[str, Any]:
    return {
        name: each - since_ms if name in _TIMESTAMPS and each is not None else each
        for name, each in row.items()
    }


def _table(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "columns": list(rows[0]) if rows else [],
        "rows": [list(each.values()) for each in rows],
    }


def _runs(numbers: list[int]) -> list[int]:
    """Runs as pairs of first number and length: 3 4 5 9 is 3 3 9 1."""
    runs: list[int] = []
    for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        members = [number for _, number in run]
        runs += [members[0], len(members)]
    return runs
