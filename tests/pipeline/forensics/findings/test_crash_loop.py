"""Short lives without rest are a loop; short lives with rests are a job."""

from collections.abc import Callable

from kohort.pipeline.forensics.findings import Finding
from kohort.pipeline.forensics.findings.crash_loop import CRASH_LOOP
from tests.pipeline.forensics.findings.conftest import Found
from tests.pipeline.forensics.stories import G, M, O, Row, Z


def lives(times: int, *, life: float, rest: float) -> list[Row]:
    rows: list[Row] = []
    for index in range(times):
        at = index * (life + rest)
        rows += [G(at, 2 * index + 1, M("a", "t0"), M(f"b{index + 1}", "t1"))]
        rows += [G(at + life, 2 * index + 2, M("a", "t0 t1"))]
    return rows


def told(times: int) -> list[Row]:
    rows = lives(times, life=60, rest=20)
    return rows + [
        O(index * 80 + 50, M(f"b{index + 1}"), "session-expired") for index in range(times)
    ]


def static(times: int) -> list[Row]:
    """A static member that restarts: the same generation again, with a new id."""
    return [
        G(index * 60, 1, M("a", "t0"), M(f"b{index}", "t1", instance="rack-1"))
        for index in range(times)
    ]


HISTORY = {
    "guilty": lives(5, life=60, rest=20),
    "guilty with events": told(5),
    "guilty and static": static(5),
    "put out and back": [
        *told(5),
        *(Z(index * 80 + 55, f"b{index + 1}", 1, "UNKNOWN_MEMBER_ID") for index in range(5)),
    ],
    "a job": lives(5, life=60, rest=240),
    "long lives": lives(5, life=900, rest=20),
    "three lives": lives(3, life=60, rest=20),
}


def test_a_program_that_lives_for_a_minute_again_and_again_is_found(
    found: Callable[[Finding], Found],
) -> None:
    loops = found(CRASH_LOOP)

    assert loops.keys() == {"guilty", "guilty with events", "guilty and static"}
    (gone,), (exact,), (static_,) = loops.values()
    assert (gone["subject"], gone["count"], gone["severity"]) == ("b at /b", 5, "critical")
    assert "ended so: session-expired" in exact["what"]
    assert "mostly lived for 50 s" in exact["what"]
    assert (static_["subject"], static_["severity"]) == ("rack-1", "warning")
