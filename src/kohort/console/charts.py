"""Charts: sparklines as SVG paths, and the data of the ownership timeline. Pure."""

import math
from collections.abc import Sequence
from typing import Any, Final

from kohort.admin.group_monitor import GroupView, ObservedRebalance, OwnershipInterval
from kohort.admin.group_monitor.partition_ownership import stable_id
from kohort.console import rebalance_text
from kohort.console.url_encoding import rebalance_path
from kohort.events.schema import EventMember
from kohort.text.rebalances import cause, member_name
from kohort.types import GroupId, TopicPartition

PARTITIONS_MAX: Final = 256
"""Rows of a timeline. Each is a few pixels high even then."""

INTERVALS_MAX: Final = 5_000
"""The newest ones, as many as a browser draws without delay."""


def spark_line(values: Sequence[int | None], width: int, height: int) -> str:
    """A line, the newest value at the right edge, with gaps for unknown values."""
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
    """One bar per value."""
    most = max(values, default=0) or 1
    step = width / max(len(values), 1)
    return "".join(
        f"M{index * step:.1f} {height}v-{max(each / most * (height - 1), 1):.1f}"
        f"h{step * 0.7:.1f}V{height}z"
        for index, each in enumerate(values)
        if each
    )


def timeline(view: GroupView, now_ms: int) -> dict[str, Any]:
    """The owners of partitions over time, and the rebalances."""
    intervals = view.ownership[-INTERVALS_MAX:]
    held = {each.partition for each in view.ownership} | {each.partition for each in view.offsets}
    partitions = sorted(held)[:PARTITIONS_MAX]
    rows = {partition: row for row, partition in enumerate(partitions)}
    parties, numbers = _assign_colors(intervals)
    return {
        "now_ms": now_ms,
        "state": view.row.state,
        "partitions": [_label(each, partitions) for each in partitions],
        "partitions_left_out": len(held) - len(partitions),
        "names": [member_name(party) for party in parties],
        "hosts": [party.client_host.lstrip("/") for party in parties],
        "intervals": [
            [numbers[stable_id(each.party)], rows[each.partition], each.from_ms, each.to_ms]
            for each in intervals
            if each.partition in rows
        ],
        "rebalances": [_mark(view.row.group_id, each) for each in view.rebalances],
        "lag": [
            [timestamp, lag]
            for timestamp, lag in zip(
                view.trend_ms[-len(view.lag_trend) :], view.lag_trend, strict=False
            )
            if view.lag_trend
        ],
    }


def _assign_colors(
    intervals: Sequence[OwnershipInterval],
) -> tuple[list[EventMember], dict[str, int]]:
    """The owners to draw, and the number of each member among them.

    A process that rejoins with a new member id gets the same number, unless both were members at
    the same time.
    """
    spans: dict[str, tuple[EventMember, float, float]] = {}
    for each in intervals:
        name = stable_id(each.party)
        start = float(each.from_ms or 0)
        end = math.inf if each.to_ms is None else float(each.to_ms)
        _, first, last = spans.get(name, (each.party, start, end))
        spans[name] = (each.party, min(first, start), max(last, end))
    owners: list[tuple[EventMember, float]] = []
    numbers: dict[str, int] = {}
    for name, (party, start, end) in sorted(spans.items(), key=lambda each: each[1][1]):
        number = next(
            (
                n
                for n, (known, until) in enumerate(owners)
                if _is_same_process(known, party) and until <= start
            ),
            len(owners),
        )
        owners[number : number + 1] = [(party, end)]
        numbers[name] = number
    return [party for party, _ in owners], numbers


def _is_same_process(one: EventMember, other: EventMember) -> bool:
    return member_name(one) == member_name(other) and one.client_host == other.client_host


def _label(partition: TopicPartition, partitions: Sequence[TopicPartition]) -> str:
    is_one_topic = len({each.topic for each in partitions}) == 1
    return str(partition.partition) if is_one_topic else f"{partition.topic} {partition.partition}"


def _mark(group_id: GroupId, each: ObservedRebalance) -> dict[str, Any]:
    return {
        "key": each.key,
        "kind": rebalance_text.kind_of(each),
        "started_ms": each.started_ms,
        "ended_ms": each.ended_ms,
        "generation": each.generation,
        "ending": each.ending,
        "text": _text(each),
        "href": rebalance_path(group_id, each.key),
    }


def _text(each: ObservedRebalance) -> str:
    if each.trigger is None:
        return f"{rebalance_text.why(each)}. {rebalance_text.CAUSE_NOT_RECORDED}"
    who = None if each.initiator is None else member_name(each.initiator)
    took = rebalance_text.took(each)
    return cause(each.trigger, who) + (f"; {took}." if took else ".")
