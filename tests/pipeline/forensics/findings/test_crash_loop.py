"""Short memberships without pauses are a crash loop; with pauses they are a periodic job."""

from collections.abc import Callable

from kohort.pipeline.forensics.findings import FindingRule
from kohort.pipeline.forensics.findings.crash_loop import CRASH_LOOP
from tests.pipeline.forensics.findings.conftest import Findings
from tests.pipeline.forensics.row_histories import G, M, O, Row, Z


def memberships(times: int, *, length: float, pause: float) -> list[Row]:
    rows: list[Row] = []
    for index in range(times):
        at = index * (length + pause)
        rows += [G(at, 2 * index + 1, M("a", "t0"), M(f"b{index + 1}", "t1"))]
        rows += [G(at + length, 2 * index + 2, M("a", "t0 t1"))]
    return rows


def with_events(times: int) -> list[Row]:
    rows = memberships(times, length=60, pause=20)
    return rows + [
        O(index * 80 + 50, M(f"b{index + 1}"), "session-expired") for index in range(times)
    ]


def static(times: int) -> list[Row]:
    """A static member that restarts: the same generation with a new member id."""
    return [
        G(index * 60, 1, M("a", "t0"), M(f"b{index}", "t1", instance="rack-1"))
        for index in range(times)
    ]


HISTORY = {
    "affected": memberships(5, length=60, pause=20),
    "affected with events": with_events(5),
    "affected, static": static(5),
    "removed and rejoined": [
        *with_events(5),
        *(Z(index * 80 + 55, f"b{index + 1}", 1, "UNKNOWN_MEMBER_ID") for index in range(5)),
    ],
    "a job": memberships(5, length=60, pause=240),
    "long memberships": memberships(5, length=900, pause=20),
    "three memberships": memberships(3, length=60, pause=20),
}


def test_repeated_short_memberships_are_found(
    found: Callable[[FindingRule], Findings],
) -> None:
    loops = found(CRASH_LOOP)

    assert loops.keys() == {"affected", "affected with events", "affected, static"}
    (gone,), (exact,), (static_,) = loops.values()
    assert (gone["subject"], gone["count"], gone["severity"]) == ("b at /b", 5, "critical")
    assert "Departures: session-expired" in exact["what"]
    assert "typically after 50 s" in exact["what"]
    assert (static_["subject"], static_["severity"]) == ("rack-1", "warning")
