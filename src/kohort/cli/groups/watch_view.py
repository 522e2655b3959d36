"""Renders the state of a group as a screen of lines, and the changes between two states. Pure.

Control characters in names are escaped.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kohort.admin.group_monitor.views import GroupView, ObservedRebalance, PartitionOffsets
from kohort.cli.tables import format_cell, format_table
from kohort.events.schema import EventMember
from kohort.text.numbers import count, duration, ranges_by_topic
from kohort.text.rebalances import member_name
from kohort.text.times import timestamp
from kohort.types import GroupId, MemberId, Millis, TopicPartition, value

_BARS: Final = "▁▂▃▄▅▆▇█"
_TREND_WIDTH: Final = 16

_Rows = list[tuple[object, ...]]


@value
class ScreenLine:
    text: str
    style: str = ""
    """A style of rich; empty for plain text."""


STYLES: Final[Mapping[str, str]] = {
    "Stable": "bold green",
    "Empty": "bold",
    "PreparingRebalance": "bold yellow",
    "CompletingRebalance": "bold yellow",
    "Assigning": "bold yellow",
    "Reconciling": "bold yellow",
    "Dead": "bold red",
}


@value
class WatchState:
    group_id: GroupId
    cluster: str
    """Bootstrap servers."""
    view: GroupView | None
    error: str
    """Why the view may be outdated; empty if it is not."""
    share_read: float
    """How much of the group's history has been read, from 0 to 1."""
    is_exact: bool
    """Whether the cluster has group events; then inferred rebalances are not printed."""
    now_ms: Millis


# Screen


def render_screen(state: WatchState, width: int, height: int) -> list[ScreenLine]:
    """Return exactly `height` lines of at most `width` characters."""
    lines = [
        ScreenLine(text=line.text[:width], style=line.style) for line in _render(state, height)
    ]
    footer = ScreenLine(text=_footer(state)[:width], style="red" if state.error else "dim")
    body = lines[: height - 1]
    return [*body, *[ScreenLine(text="")] * (height - 1 - len(body)), footer]


def _render(state: WatchState, height: int) -> Iterator[ScreenLine]:
    view = state.view
    if view is None:
        yield ScreenLine(text=f"{format_cell(state.group_id)}", style="bold")
        is_read = state.share_read >= 1
        yield ScreenLine(text="the group does not exist yet" if is_read else _progress(state))
        return
    yield ScreenLine(text=_title(state, view), style=STYLES.get(view.row.state, "bold"))
    yield ScreenLine(text=_summary(view))
    sections = [_member_rows(view), _partition_rows(view), _rebalance_rows(view, state.now_ms)]
    # Two lines are above the sections, one is below, and each has a blank line and a heading.
    heights = _share_height([len(rows) for _, rows in sections], height - 3 - 2 * len(sections))
    for (heads, rows), section_height in zip(sections, heights, strict=True):
        yield ScreenLine(text="")
        shown, hidden = _cut(rows, section_height)
        head, *cells = format_table(heads, shown)
        yield ScreenLine(text=head, style="bold dim")
        yield from (ScreenLine(text=cell) for cell in cells)
        if hidden:
            yield ScreenLine(text=f"… and {hidden} more", style="dim")
        elif not rows:
            yield ScreenLine(text="none", style="dim")


def _share_height(row_counts: Sequence[int], height: int) -> list[int]:
    """Divide the height evenly; what a section does not need goes to the others."""
    given = [0] * len(row_counts)
    # An empty section has one line that says "none".
    needed = [max(1, count) for count in row_counts]
    for _ in range(max(0, height)):
        short = [index for index, need in enumerate(needed) if given[index] < need]
        if not short:
            break
        given[min(short, key=lambda index: given[index])] += 1
    return given


def _cut(rows: _Rows, height: int) -> tuple[_Rows, int]:
    """Return the rows that fit and the number of hidden rows. If any, one line is left for it."""
    if len(rows) <= height:
        return rows, 0
    kept = max(0, height - 1)
    return rows[:kept], len(rows) - kept


def _title(state: WatchState, view: GroupView) -> str:
    since = view.state_since_ms
    lasted = "" if since is None else f" for {duration(state.now_ms - since)}"
    generation = "" if view.row.generation is None else f"  generation {view.row.generation}"
    protocol = f"  {format_cell(view.row.protocol)}" if view.row.protocol else ""
    return f"{format_cell(state.group_id)}  {view.row.state}{lasted}{generation}{protocol}"


def _summary(view: GroupView) -> str:
    row = view.row
    trend = format_trend(view.lag_trend)
    lag = "lag unknown" if row.lag is None else f"lag {row.lag:,} {trend}".rstrip()
    parts = [
        count(len(view.members), "member"),
        f"{count(len(view.offsets), 'partition')} of {count(row.topics, 'topic')}",
        lag,
        *row.reasons,
    ]
    return "  ".join(parts)


def _member_rows(view: GroupView) -> tuple[tuple[str, ...], _Rows]:
    lags: dict[MemberId, int] = {}
    for each in view.offsets:
        if each.owner is not None and each.lag is not None:
            lags[each.owner.member_id] = lags.get(each.owner.member_id, 0) + each.lag
    members = sorted(
        view.members, key=lambda each: (format_member(each.party), each.party.member_id)
    )
    rows: _Rows = [
        (
            f"{format_member(each.party)}{' *' if each.is_leader else ''}",
            each.party.client_host.lstrip("/"),
            lags.get(each.party.member_id, "-"),
            "unknown" if each.partitions is None else format_partitions(each.partitions),
        )
        for each in members
    ]
    return ("MEMBER (* LEADER)", "HOST", "LAG", "PARTITIONS"), rows


def _partition_rows(view: GroupView) -> tuple[tuple[str, ...], _Rows]:
    """The largest lag comes first, so that it is visible if not all rows fit."""
    rows: _Rows = [
        (
            f"{each.partition.topic}:{each.partition.partition}",
            "-" if each.lag is None else each.lag,
            "-" if each.committed is None else each.committed,
            "-" if each.log_end is None else each.log_end,
            each.status.value,
            "-" if each.owner is None else format_member(each.owner),
        )
        for each in sorted(view.offsets, key=_largest_lag_first)
    ]
    return ("PARTITION", "LAG", "COMMITTED", "END", "STATUS", "OWNER"), rows


def _largest_lag_first(each: PartitionOffsets) -> tuple[int, TopicPartition]:
    return -(each.lag or 0), each.partition


def _rebalance_rows(view: GroupView, now_ms: Millis) -> tuple[tuple[str, ...], _Rows]:
    rows: _Rows = [
        (
            _format_age(each, now_ms),
            each.generation,
            each.trigger or "unknown",
            "-" if each.initiator is None else format_member(each.initiator),
            format_duration(each, now_ms),
            each.ending or ("in progress" if each.ended_ms is None else "-"),
        )
        for each in reversed(view.rebalances)
    ]
    return ("REBALANCE", "GENERATION", "TRIGGER", "STARTED BY", "TOOK", "RESULT"), rows


def _format_age(each: ObservedRebalance, now_ms: Millis) -> str:
    start = each.started_ms if each.started_ms is not None else each.ended_ms
    return "-" if start is None else f"{duration(now_ms - start)} ago"


def _footer(state: WatchState) -> str:
    if state.error:
        return f"cluster not reachable: {format_cell(state.error)}"
    progress = "" if state.share_read >= 1 else f"{_progress(state)}  "
    return f"{progress}q: quit  {format_cell(state.cluster)}"


def _progress(state: WatchState) -> str:
    return f"reading history, {state.share_read:.0%}"


# Values


def format_member(party: EventMember) -> str:
    return format_cell(member_name(party))


def format_partitions(partitions: Iterable[TopicPartition]) -> str:
    ranges = ranges_by_topic(sorted(partitions), ",")
    return " ".join(f"{format_cell(topic)}:{each}" for topic, each in ranges.items()) or "none"


def format_duration(each: ObservedRebalance, now_ms: Millis) -> str:
    if each.started_ms is None:
        return "-"
    return duration((now_ms if each.ended_ms is None else each.ended_ms) - each.started_ms)


def format_trend(lags: Sequence[int | None]) -> str:
    """Return a bar chart of the last lags; empty if they do not differ."""
    known = [each for each in lags[-_TREND_WIDTH:] if each is not None]
    if len(set(known)) < 2:
        return ""
    top = max(known)
    return "".join(_BARS[each * (len(_BARS) - 1) // top] for each in known)


# Changes


def describe_changes(
    before: GroupView | None, after: GroupView, *, is_exact: bool = False
) -> Iterator[str]:
    """Describe each change except in the lag, which changes constantly.

    With `is_exact`, rebalances are reported from events only, not from a new generation.
    """
    if before is None:
        yield f"{after.row.state}{_in_generation(after)}, {count(len(after.members), 'member')}"
    else:
        if before.row.state != after.row.state:
            yield f"{before.row.state} -> {after.row.state}{_in_generation(after)}"
        elif before.row.generation != after.row.generation:
            yield f"{after.row.state}{_in_generation(after)}"
        known = {each.key: each for each in before.rebalances}
        for each in after.rebalances:
            old = known.get(each.key)
            is_new = each.ended_ms is not None and (old is None or old.ended_ms is None)
            if is_new and (each.is_exact or not is_exact):
                yield _describe_rebalance(each)
    yield from _describe_assignment(before, after)


def _in_generation(view: GroupView) -> str:
    return "" if view.row.generation is None else f", generation {view.row.generation}"


def _describe_rebalance(each: ObservedRebalance) -> str:
    by = "" if each.initiator is None else f" by {format_member(each.initiator)}"
    took = "" if each.started_ms is None else f", took {format_duration(each, Millis(0))}"
    return f"rebalance: {each.trigger or 'unknown cause'}{by}{took}, {each.ending or 'ended'}"


def _describe_assignment(before: GroupView | None, after: GroupView) -> Iterator[str]:
    old = {} if before is None else {each.party.member_id: each for each in before.members}
    new = {each.party.member_id: each for each in after.members}
    for member_id in sorted(old.keys() - new.keys()):
        yield f"{format_member(old[member_id].party)} left"
    for member_id, each in sorted(new.items()):
        known = old.get(member_id)
        if known is None or known.partitions != each.partitions:
            held = (
                "unknown partitions"
                if each.partitions is None
                else format_partitions(each.partitions)
            )
            joined = "joined and " if known is None and before is not None else ""
            yield f"{format_member(each.party)} {joined}owns {held}"


def with_timestamp(at: Millis, line: str) -> str:
    return f"{timestamp(at)}  {line}"


def state_as_json(state: WatchState) -> dict[str, Any]:
    view = state.view
    if view is None:
        return {"at": state.now_ms, "group": state.group_id, "state": None}
    return {
        "at": state.now_ms,
        "group": state.group_id,
        "state": view.row.state,
        "generation": view.row.generation,
        "protocol": view.row.protocol,
        "lag": view.row.lag,
        "members": [
            {
                "member_id": each.party.member_id,
                "client_id": each.party.client_id,
                "instance_id": each.party.instance_id,
                "host": each.party.client_host,
                "is_leader": each.is_leader,
                "holds": None
                if each.partitions is None
                else [list(partition) for partition in each.partitions],
            }
            for each in view.members
        ],
        "rebalances": len(view.rebalances),
    }
