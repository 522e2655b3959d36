"""One group: its state, members, ownership over time, rebalances, offsets and lag."""

from typing import Final

from kohort.admin.picture import GroupView, Reading
from kohort.console import charts, telling
from kohort.console.page import NotFound, Page, Visit
from kohort.types import GroupId

REBALANCES_SHOWN: Final = 30
READINGS_SHOWN: Final = 200
MEMBERS_SHOWN: Final = 200
"""What a page lists; its JSON twin has them all."""


def group(visit: Visit) -> Page:
    group_id = GroupId(visit.names["group"])
    with visit.desk.following.look() as picture:
        view = picture.find_group(group_id, visit.now_ms)
        is_exact = picture.has_events
    if view is None:
        raise NotFound(f"there is no group {group_id!r} on this cluster")
    findings = () if visit.desk.findings is None else visit.desk.findings.about(group_id)
    return Page(
        template="group.html",
        title=group_id or "a group without a name",
        told={"group": view, "is_exact": is_exact, "findings": findings},
        shown={
            "rebalances": view.rebalances[::-1][:REBALANCES_SHOWN],
            "readings": _worst_first(view)[:READINGS_SHOWN],
            "members": view.members[:MEMBERS_SHOWN],
            "is_modern": view.row.kind == "consumer",
            "idle": telling.idle(view.members),
        },
        chart=charts.timeline(view, visit.now_ms),
    )


def _worst_first(view: GroupView) -> list[Reading]:
    """In order, unless there are more than are shown: then those furthest behind."""
    if len(view.readings) <= READINGS_SHOWN:
        return list(view.readings)
    return sorted(view.readings, key=lambda each: -(each.lag or 0))
