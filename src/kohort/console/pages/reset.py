"""Resetting a group's offsets: a form, a dry run, and the commit.

The second form contains the plan itself, so the commit is exactly what the dry run showed.
"""

from collections.abc import Mapping
from typing import Final

from kohort.admin import offset_reset
from kohort.admin.errors import InvalidRequest
from kohort.admin.group_monitor import GroupView
from kohort.console.page import NotFound, Page, PageRequest
from kohort.settings.readers import BadValue, read_number
from kohort.settings.times import read_duration, read_time
from kohort.types import GroupId, Millis, Offset

TARGETS: Final = {
    "earliest": "to the log start: read everything again",
    "latest": "to the log end: read only new records",
    "offset": "to an offset",
    "shift": "by a number of records (negative: read them again)",
    "since": "to the first record since a time (UTC), such as 2026-11-16T09:00",
    "ago": "to the first record within a duration, such as 90m, 6h or 7d",
}


def reset_form(request: PageRequest) -> Page:
    return _page(_find_view(request))


def reset(request: PageRequest, form: Mapping[str, str]) -> Page:
    """The response to the form: the dry run, or, if the form has a plan, the result."""
    view = _find_view(request)
    group_id = view.row.group_id
    if form.get("plan"):
        planned = offset_reset.read_plan_file(form["plan"], [group_id])
        plan = _plan(request, group_id, planned, offset_reset.ResetScope())
        offset_reset.apply_reset(request.context.cluster, plan)
        return _page(view, plan=plan, is_done=True)
    scope = (
        offset_reset.ResetScope(is_all=True)
        if form.get("topics", "").strip() in {"", "*"}
        else offset_reset.read_scope(form["topics"].split())
    )
    plan = _plan(request, group_id, _read_form(form, request.now_ms), scope)
    if not plan.rows:
        raise InvalidRequest(
            f"group {group_id!r} has no committed offsets: enter the topics to reset"
        )
    return _page(view, plan=plan)


def _plan(
    request: PageRequest,
    group_id: GroupId,
    target: offset_reset.ResetTarget,
    scope: offset_reset.ResetScope,
) -> offset_reset.ResetPlan:
    resets = offset_reset.plan_resets(request.context.cluster, [group_id], target, scope)
    for refusal in resets.refused.values():
        raise refusal
    (plan,) = resets.plans
    return plan


def _find_view(request: PageRequest) -> GroupView:
    group_id = GroupId(request.path_params["group"])
    with request.context.monitor.locked_state() as state:
        view = state.find_group(group_id, request.now_ms)
    if view is None:
        raise NotFound(f"there is no group {group_id!r} on this cluster")
    return view


def _read_form(form: Mapping[str, str], now_ms: Millis) -> offset_reset.ResetTarget:
    value = form.get("value", "").strip()
    try:
        return _read_target(form.get("target", ""), value, now_ms)
    except BadValue as error:
        raise InvalidRequest(str(error)) from None
    except ValueError as error:
        raise InvalidRequest(f"{value!r} is {error}") from None


def _read_target(target: str, value: str, now_ms: Millis) -> offset_reset.ResetTarget:
    match target:
        case "earliest":
            return offset_reset.ToEarliest()
        case "latest":
            return offset_reset.ToLatest()
        case "offset":
            return offset_reset.ToOffset(offset=Offset(read_number(value, 0)))
        case "shift":
            return offset_reset.ShiftBy(records=read_number(value))
        case "since":
            return offset_reset.ToTimestamp(timestamp_ms=read_time(value))
        case "ago":
            return offset_reset.ToTimestamp(timestamp_ms=Millis(now_ms - read_duration(value)))
        case _:
            raise InvalidRequest(f"unknown target {target!r}; use one of {', '.join(TARGETS)}")


def _page(
    view: GroupView, *, plan: offset_reset.ResetPlan | None = None, is_done: bool = False
) -> Page:
    group_id = view.row.group_id
    return Page(
        template="reset.html",
        title=f"Reset offsets of {group_id}",
        data={"group_id": group_id, "plan": plan, "is_done": is_done},
        template_data={
            "targets": TARGETS,
            "topics": sorted({each.partition.topic for each in view.offsets}),
            "members": view.row.members,
            "plan_file": "" if plan is None else offset_reset.write_plan_file([plan]),
            "skipped": sum(each.skipped or 0 for each in plan.rows) if plan else 0,
            "reread": sum(each.again or 0 for each in plan.rows) if plan else 0,
        },
        refresh_s=None,
    )
