"""A group as lines: a screen of them that fits, or those that tell what has changed. Pure.

It asks nobody and knows no terminal; names are shown so that none obeys them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kohort.admin.picture.values import GroupView, Party, Reading, Rebalance
from kohort.admin.times import write_moment
from kohort.cli.tables import cell_of, lay_out
from kohort.client.topic_partition import TopicPartition
from kohort.types import GroupId, MemberId, Millis, value

_BARS: Final = "▁▂▃▄▅▆▇█"
_TREND_WIDTH: Final = 16


@value
class Line:
    text: str
    style: str = ""
    """As rich says it; empty for plain."""


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
class Scene:
    """What there is to show."""

    group_id: GroupId
    where: str
    """The cluster."""
    view: GroupView | None
    trouble: str
    """Why the picture may be old; empty if it is not."""
    share_read: float
    is_exact: bool
    """Whether the cluster tells of rebalances by events; then what is guessed is not told."""
    now_ms: Millis


# A screen


def draw(scene: Scene, width: int, height: int) -> list[Line]:
    """Lines that fit: at most so many, none longer."""
    lines = [Line(text=line.text[:width], style=line.style) for line in _draw(scene, height)]
    foot = Line(text=_foot(scene)[:width], style="red" if scene.trouble else "dim")
    body = lines[: height - 1]
    return [*body, *[Line(text="")] * (height - 1 - len(body)), foot]


def _draw(scene: Scene, height: int) -> Iterator[Line]:
    view = scene.view
    if view is None:
        yield Line(text=f"{cell_of(scene.group_id)}", style="bold")
        is_read = scene.share_read >= 1
        yield Line(text="there is no such group yet" if is_read else _reading(scene))
        return
    yield Line(text=_title(scene, view), style=STYLES.get(view.row.state, "bold"))
    yield Line(text=_figures(view))
    sections = [_members(view), _partitions(view), _rebalances(view, scene.now_ms)]
    # Two lines above, one below, and each section has a heading and a line before it.
    rooms = _share_out([len(rows) for _, rows in sections], height - 3 - 2 * len(sections))
    for (heads, rows), room in zip(sections, rooms, strict=True):
        yield Line(text="")
        shown, left = _cut(rows, room)
        head, *cells = lay_out(heads, shown)
        yield Line(text=head, style="bold dim")
        yield from (Line(text=cell) for cell in cells)
        if left:
            yield Line(text=f"… and {left} more", style="dim")
        elif not rows:
            yield Line(text="none", style="dim")


def _share_out(needs: Sequence[int], room: int) -> list[int]:
    """Rows for each: no more than it needs, and what one does not need goes to the others."""
    given = [0] * len(needs)
    # An empty section says so, in one line.
    wanted = [max(1, need) for need in needs]
    for _ in range(max(0, room)):
        hungry = [index for index, want in enumerate(wanted) if given[index] < want]
        if not hungry:
            break
        given[min(hungry, key=lambda index: given[index])] += 1
    return given


def _cut(rows: list[tuple[object, ...]], room: int) -> tuple[list[tuple[object, ...]], int]:
    """What fits, and how many do not; the line that says so needs room too."""
    if len(rows) <= room:
        return rows, 0
    kept = max(0, room - 1)
    return rows[:kept], len(rows) - kept


def _title(scene: Scene, view: GroupView) -> str:
    since = view.state_since_ms
    lasted = "" if since is None else f" for {span(scene.now_ms - since)}"
    generation = "" if view.row.generation is None else f"  generation {view.row.generation}"
    protocol = f"  {cell_of(view.row.protocol)}" if view.row.protocol else ""
    return f"{cell_of(scene.group_id)}  {view.row.state}{lasted}{generation}{protocol}"


def _figures(view: GroupView) -> str:
    row = view.row
    lag = "lag unknown" if row.lag is None else f"lag {row.lag:,} {trend(view.lag_trend)}".rstrip()
    parts = [
        _count(len(view.members), "member"),
        f"{_count(len(view.readings), 'partition')} of {_count(row.topics, 'topic')}",
        lag,
        *row.reasons,
    ]
    return "  ".join(parts)


def _members(view: GroupView) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    lags: dict[MemberId, int] = {}
    for each in view.readings:
        if each.owner is not None and each.lag is not None:
            lags[each.owner.member_id] = lags.get(each.owner.member_id, 0) + each.lag
    rows: list[tuple[object, ...]] = [
        (
            f"{name(each.party)}{' *' if each.is_leader else ''}",
            each.party.client_host.lstrip("/"),
            lags.get(each.party.member_id, "-"),
            "not readable" if each.holds is None else names(each.holds),
        )
        for each in sorted(view.members, key=lambda each: (name(each.party), each.party.member_id))
    ]
    return ("MEMBER (* LEADS)", "HOST", "LAG", "HOLDS"), rows


def _partitions(view: GroupView) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    """The ones that are furthest behind first: they are what is left where not all fit."""
    rows: list[tuple[object, ...]] = [
        (
            f"{each.partition.topic}:{each.partition.partition}",
            "-" if each.lag is None else each.lag,
            "-" if each.committed is None else each.committed,
            "-" if each.log_end is None else each.log_end,
            each.standing.value,
            "-" if each.owner is None else name(each.owner),
        )
        for each in sorted(view.readings, key=_behind)
    ]
    return ("PARTITION", "LAG", "COMMITTED", "END", "STANDING", "OWNER"), rows


def _behind(each: Reading) -> tuple[int, TopicPartition]:
    return -(each.lag or 0), each.partition


def _rebalances(
    view: GroupView, now_ms: Millis
) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    rows: list[tuple[object, ...]] = [
        (
            _when(each, now_ms),
            each.generation,
            each.trigger or "not known here",
            "-" if each.culprit is None else name(each.culprit),
            took(each, now_ms),
            each.ending or ("under way" if each.ended_ms is None else "-"),
        )
        for each in reversed(view.rebalances)
    ]
    return ("REBALANCE", "GENERATION", "TRIGGER", "BY", "TOOK", "ENDING"), rows


def _when(each: Rebalance, now_ms: Millis) -> str:
    began = each.started_ms if each.started_ms is not None else each.ended_ms
    return "-" if began is None else f"{span(now_ms - began)} ago"


def _foot(scene: Scene) -> str:
    if scene.trouble:
        return f"the cluster does not answer: {cell_of(scene.trouble)}"
    said = "" if scene.share_read >= 1 else f"{_reading(scene)}  "
    return f"{said}q ends  {cell_of(scene.where)}"


def _reading(scene: Scene) -> str:
    return f"reading what has happened, {scene.share_read:.0%}"


# Words


def name(party: Party) -> str:
    """As people know a process: by its instance, or its client id."""
    return cell_of(party.instance_id or party.client_id)


def names(partitions: Iterable[TopicPartition]) -> str:
    by_topic: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        by_topic.setdefault(topic, []).append(number)
    held = " ".join(f"{cell_of(topic)}:{_runs(each)}" for topic, each in by_topic.items())
    return held or "nothing"


def _runs(numbers: list[int]) -> str:
    """0-3,7 for 0, 1, 2, 3 and 7."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in runs)


def took(each: Rebalance, now_ms: Millis) -> str:
    if each.started_ms is None:
        return "-"
    return span((now_ms if each.ended_ms is None else each.ended_ms) - each.started_ms)


def span(ms: int) -> str:
    """A time that has passed, in at most two units."""
    ms = max(0, ms)
    if ms < 1000:
        return f"{ms} ms"
    seconds = ms // 1000
    if seconds < 60:
        return f"{ms / 1000:.1f} s" if seconds < 10 else f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60}m {seconds % 60}s"
    if seconds < 86_400:
        return f"{seconds // 3600}h {seconds % 3600 // 60}m"
    return f"{seconds // 86_400}d {seconds % 86_400 // 3600}h"


def trend(lags: Sequence[int | None]) -> str:
    """How lag went, as a row of bars; nothing where it never changed."""
    known = [each for each in lags[-_TREND_WIDTH:] if each is not None]
    if len(set(known)) < 2:
        return ""
    top = max(known)
    return "".join(_BARS[each * (len(_BARS) - 1) // top] for each in known)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


# What has changed


def tell_changes(
    before: GroupView | None, after: GroupView, *, is_exact: bool = False
) -> Iterator[str]:
    """What somebody who reads lines should hear; nothing about lag, which changes all the time.

    Where a cluster is exact, an event soon tells what a new generation only lets guess.
    """
    if before is None:
        yield f"{after.row.state}{_in_generation(after)}, {_count(len(after.members), 'member')}"
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
                yield _rebalance_line(each)
    yield from _holding_lines(before, after)


def _in_generation(view: GroupView) -> str:
    return "" if view.row.generation is None else f", generation {view.row.generation}"


def _rebalance_line(each: Rebalance) -> str:
    by = "" if each.culprit is None else f" by {name(each.culprit)}"
    lasted = "" if each.started_ms is None else f", took {took(each, Millis(0))}"
    why = each.trigger or "a reason that is not known here"
    return f"rebalanced for {why}{by}{lasted}, {each.ending or 'ended'}"


def _holding_lines(before: GroupView | None, after: GroupView) -> Iterator[str]:
    old = {} if before is None else {each.party.member_id: each for each in before.members}
    new = {each.party.member_id: each for each in after.members}
    for member_id in sorted(old.keys() - new.keys()):
        yield f"{name(old[member_id].party)} is out"
    for member_id, each in sorted(new.items()):
        known = old.get(member_id)
        if known is None or known.holds != each.holds:
            held = "something" if each.holds is None else names(each.holds)
            came = "joined, and " if known is None and before is not None else ""
            yield f"{name(each.party)} {came}holds {held}"


def stamp(moment: Millis, said: str) -> str:
    return f"{write_moment(moment)}  {said}"


def as_json(scene: Scene) -> dict[str, Any]:
    """The same for machines."""
    view = scene.view
    if view is None:
        return {"at": scene.now_ms, "group": scene.group_id, "state": None}
    return {
        "at": scene.now_ms,
        "group": scene.group_id,
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
                "holds": None if each.holds is None else [list(held) for held in each.holds],
            }
            for each in view.members
        ],
        "rebalances": len(view.rebalances),
    }
