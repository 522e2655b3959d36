"""What is drawn: small lines as paths, and the timeline as data for the page's script. Pure."""

import math
from collections.abc import Sequence
from typing import Any, Final

from kohort.admin.picture import GroupView, Party, Rebalance, Stretch
from kohort.admin.picture.ownership import name_of
from kohort.client.topic_partition import TopicPartition
from kohort.console import telling
from kohort.console.address import rebalance_path
from kohort.types import GroupId

PLACES_MAX: Final = 256
"""Rows of a timeline: a partition has a few pixels even then."""

STRETCHES_MAX: Final = 5_000
"""The newest ones: what a browser still draws at once."""


def spark_line(values: Sequence[int | None], width: int, height: int) -> str:
    """A path through the values, the newest at the right edge, with gaps where none is known."""
    most = max((each for each in values if each is not None), default=0) or 1
    step = width / max(len(values) - 1, 1)
    path, is_drawing = [], False
    for index, each in enumerate(values):
        if each is None:
            is_drawing = False
            continue
        x, y = index * step, height - 1 - (height - 2) * each / most
        path.append(f"{'L' if is_drawing else 'M'}{x:.1f} {y:.1f}")
        is_drawing = True
    return "".join(path)


def spark_bars(values: Sequence[int], width: int, height: int) -> str:
    """One bar for each value, from the ground up."""
    most = max(values, default=0) or 1
    step = width / max(len(values), 1)
    return "".join(
        f"M{index * step:.1f} {height}v-{max(each / most * (height - 1), 1):.1f}"
        f"h{step * 0.7:.1f}V{height}z"
        for index, each in enumerate(values)
        if each
    )


def timeline(view: GroupView, now_ms: int) -> dict[str, Any]:
    """Who held which partition, and the rebalances in between."""
    stretches = view.stretches[-STRETCHES_MAX:]
    held = {each.partition for each in view.stretches} | {each.partition for each in view.readings}
    places = sorted(held)[:PLACES_MAX]
    rows = {place: row for row, place in enumerate(places)}
    parties, numbers = _cast(stretches)
    return {
        "now_ms": now_ms,
        "state": view.row.state,
        "places": [_label(each, places) for each in places],
        "places_left_out": len(held) - len(places),
        "names": [telling.who(party) for party in parties],
        "hosts": [party.client_host.lstrip("/") for party in parties],
        "stretches": [
            [numbers[name_of(each.party)], rows[each.partition], each.from_ms, each.to_ms]
            for each in stretches
            if each.partition in rows
        ],
        "rebalances": [_mark(view.row.group_id, each) for each in view.rebalances],
        "lag": [
            [moment, lag]
            for moment, lag in zip(
                view.trend_ms[-len(view.lag_trend) :], view.lag_trend, strict=False
            )
            if view.lag_trend
        ],
    }


def _cast(stretches: Sequence[Stretch]) -> tuple[list[Party], dict[str, int]]:
    """Who is drawn, and the number of each member among them.

    A program that comes back under a new member id is drawn as the same one, unless both were there
    at once.
    """
    spans: dict[str, tuple[Party, float, float]] = {}
    for each in stretches:
        name = name_of(each.party)
        begin = float(each.from_ms or 0)
        end = math.inf if each.to_ms is None else float(each.to_ms)
        _, first, last = spans.get(name, (each.party, begin, end))
        spans[name] = (each.party, min(first, begin), max(last, end))
    cast: list[tuple[Party, float]] = []
    numbers: dict[str, int] = {}
    for name, (party, begin, end) in sorted(spans.items(), key=lambda each: each[1][1]):
        number = next(
            (
                n
                for n, (known, until) in enumerate(cast)
                if _is_like(known, party) and until <= begin
            ),
            len(cast),
        )
        cast[number : number + 1] = [(party, end)]
        numbers[name] = number
    return [party for party, _ in cast], numbers


def _is_like(one: Party, other: Party) -> bool:
    return telling.who(one) == telling.who(other) and one.client_host == other.client_host


def _label(place: TopicPartition, places: Sequence[TopicPartition]) -> str:
    is_one_topic = len({each.topic for each in places}) == 1
    return str(place.partition) if is_one_topic else f"{place.topic} {place.partition}"


def _mark(group_id: GroupId, each: Rebalance) -> dict[str, Any]:
    return {
        "key": each.key,
        "kind": telling.kind_of(each),
        "started_ms": each.started_ms,
        "ended_ms": each.ended_ms,
        "generation": each.generation,
        "ending": each.ending,
        "words": _words(each),
        "href": rebalance_path(group_id, each.key),
    }


def _words(each: Rebalance) -> str:
    culprit = "" if each.culprit is None else f": {telling.who(each.culprit)}"
    took = telling.took(each)
    return f"{telling.why(each)}{culprit}" + (f"; {took}" if took else "")
