"""The first page: how all groups are, the worst first."""

from kohort.console import telling
from kohort.console.page import Page, Visit


def overview(visit: Visit) -> Page:
    with visit.desk.following.look() as picture:
        told = picture.overview(visit.now_ms)
    return Page(
        template="overview.html",
        title="Overview",
        told={"headline": telling.headline(told), "overview": told},
        shown={},
        pace_s=2.0,
    )
