"""Moving a group's offsets: a form, what it would change, and the deed.

The deed commits exactly what the dry run showed: its form carries the plan, not the wish.
"""

from collections.abc import Mapping
from typing import Final

from kohort.admin import resetting
from kohort.admin.errors import WrongWish
from kohort.admin.picture import GroupView
from kohort.admin.times import read_duration, read_moment
from kohort.console.page import NotFound, Page, Visit
from kohort.types import GroupId, Millis, Offset

WAYS: Final = {
    "earliest": "to the beginning: everything is read again",
    "latest": "to the end: only what comes from now on",
    "offset": "to an offset",
    "shift": "by a number of records; below zero they are read again",
    "since": "to the first record since a moment (UTC), as 2026-11-16T09:00",
    "ago": "to the first record of the last: 90m, 6h, 7d",
}


def reset_form(visit: Visit) -> Page:
    return _page(_about(visit))


def reset(visit: Visit, form: Mapping[str, str]) -> Page:
    """The answer to the form: a plan to look at, or, with a plan, what became of it."""
    view = _about(visit)
    group_id = view.row.group_id
    if form.get("plan"):
        planned = resetting.read_plan_file(form["plan"], [group_id])
        plan = _plan(visit, group_id, planned, resetting.Scope())
        resetting.apply(visit.desk.cluster, plan)
        return _page(view, plan=plan, is_done=True)
    scope = (
        resetting.Scope(is_all=True)
        if form.get("topics", "").strip() in {"", "*"}
        else resetting.read_scope(form["topics"].split())
    )
    plan = _plan(visit, group_id, _read_wish(form, visit.now_ms), scope)
    if not plan.rows:
        raise WrongWish(
            f"group {group_id!r} has committed nothing, so there is nothing to reset: name a topic"
        )
    return _page(view, plan=plan)


def _plan(
    visit: Visit, group_id: GroupId, wish: resetting.ResetWish, scope: resetting.Scope
) -> resetting.ResetPlan:
    resets = resetting.plan_resets(visit.desk.cluster, [group_id], wish, scope)
    for refusal in resets.refused.values():
        raise refusal
    (plan,) = resets.plans
    return plan


def _about(visit: Visit) -> GroupView:
    group_id = GroupId(visit.names["group"])
    with visit.desk.following.look() as picture:
        view = picture.find_group(group_id, visit.now_ms)
    if view is None:
        raise NotFound(f"there is no group {group_id!r} on this cluster")
    return view


def _read_wish(form: Mapping[str, str], now_ms: Millis) -> resetting.ResetWish:
    way, value = form.get("way", ""), form.get("value", "").strip()
    match way:
        case "earliest":
            return resetting.ToEarliest()
        case "latest":
            return resetting.ToLatest()
        case "offset":
            return resetting.ToOffset(offset=Offset(_number(value, least=0)))
        case "shift":
            return resetting.ShiftBy(records=_number(value))
        case "since":
            return resetting.Since(moment_ms=read_moment(value))
        case "ago":
            return resetting.Since(moment_ms=Millis(now_ms - read_duration(value)))
        case _:
            raise WrongWish(f"say where to: {', '.join(WAYS)}")


def _number(text: str, *, least: int | None = None) -> int:
    try:
        number = int(text)
    except ValueError:
        raise WrongWish(f"{text!r} is no number") from None
    if least is not None and number < least:
        raise WrongWish(f"an offset cannot be {number}")
    return number


def _page(
    view: GroupView, *, plan: resetting.ResetPlan | None = None, is_done: bool = False
) -> Page:
    group_id = view.row.group_id
    return Page(
        template="reset.html",
        title=f"Reset offsets of {group_id}",
        told={"group_id": group_id, "plan": plan, "is_done": is_done},
        shown={
            "ways": WAYS,
            "topics": sorted({each.partition.topic for each in view.readings}),
            "members": view.row.members,
            "plan_file": "" if plan is None else resetting.write_plan_file([plan]),
            "skipped": sum(each.skipped or 0 for each in plan.rows) if plan else 0,
            "again": sum(each.again or 0 for each in plan.rows) if plan else 0,
        },
        pace_s=None,
    )
