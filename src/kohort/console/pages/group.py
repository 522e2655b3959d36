"""One group: its state, members, ownership over time, rebalances, offsets and lag."""

from typing import Final

from kohort.admin.group_monitor import GroupView, PartitionOffsets
from kohort.admin.group_monitor.partition_ownership import find_moves
from kohort.console import charts, rebalance_text
from kohort.console.page import NotFound, Page, PageRequest
from kohort.types import GroupId

REBALANCES_SHOWN: Final = 30
OFFSETS_SHOWN: Final = 200
MEMBERS_SHOWN: Final = 200
"""Limits of the HTML page; the JSON version has all."""


def group(request: PageRequest) -> Page:
    group_id = GroupId(request.path_params["group"])
    with request.context.monitor.locked_state() as state:
        view = state.find_group(group_id, request.now_ms)
        is_exact = state.has_events
    if view is None:
        raise NotFound(f"there is no group {group_id!r} on this cluster")
    findings = () if request.context.findings is None else request.context.findings.about(group_id)
    return Page(
        template="group.html",
        title=group_id or "(empty group id)",
        data={"group": view, "is_exact": is_exact, "findings": findings},
        template_data={
            "rebalances": view.rebalances[::-1][:REBALANCES_SHOWN],
            "offsets": _worst_first(view)[:OFFSETS_SHOWN],
            "members": view.members[:MEMBERS_SHOWN],
            "is_consumer_group": view.row.kind == "consumer",
            "idle": rebalance_text.idle(view.members),
        },
        chart=charts.timeline(view, request.now_ms),
    )


def _worst_first(view: GroupView) -> list[PartitionOffsets]:
    """Sorted by partition; if there are too many to show, by lag."""
    if len(view.offsets) <= OFFSETS_SHOWN:
        return list(view.offsets)
    return sorted(view.offsets, key=lambda each: -(each.lag or 0))


def rebalance(request: PageRequest) -> Page:
    group_id = GroupId(request.path_params["group"])
    with request.context.monitor.locked_state() as state:
        found = state.find_rebalance(group_id, request.path_params["key"])
        view = state.find_group(group_id, request.now_ms)
    if found is None or view is None:
        raise NotFound(
            f"group {group_id!r} has no such rebalance in the last hour; older ones are in the "
            "tables of kohort pipeline forensics"
        )
    keys = [each.key for each in view.rebalances]
    at = keys.index(found.key) if found.key in keys else -1
    return Page(
        template="rebalance.html",
        title=f"Rebalance of {group_id}",
        data={"group_id": group_id, "rebalance": found, "moves": find_moves(found)},
        template_data={
            "summary": rebalance_text.summary(found),
            "previous": keys[at - 1] if at > 0 else None,
            "next": keys[at + 1] if 0 <= at < len(keys) - 1 else None,
            "longest_ms": max(
                (
                    (each.join_took_ms or 0) + (each.sync_took_ms or 0)
                    for each in found.participants
                ),
                default=0,
            ),
        },
    )
