"""The whole story of one rebalance."""

from kohort.admin.picture.ownership import find_moves
from kohort.console import telling
from kohort.console.page import NotFound, Page, Visit
from kohort.types import GroupId


def rebalance(visit: Visit) -> Page:
    group_id = GroupId(visit.names["group"])
    with visit.desk.following.look() as picture:
        found = picture.find_rebalance(group_id, visit.names["key"])
        view = picture.find_group(group_id, visit.now_ms)
    if found is None or view is None:
        raise NotFound(
            f"this console knows of no such rebalance of group {group_id!r}: it remembers about "
            "the last hour; forensics keeps them all"
        )
    keys = [each.key for each in view.rebalances]
    at = keys.index(found.key) if found.key in keys else -1
    return Page(
        template="rebalance.html",
        title=f"Rebalance of {group_id}",
        told={"group_id": group_id, "rebalance": found, "moves": find_moves(found)},
        shown={
            "story": telling.story(found),
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
