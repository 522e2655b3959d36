"""Repeated session timeouts are found, and whether the member was alive."""

from collections.abc import Callable

from kohort.pipeline.forensics.findings import FindingRule
from kohort.pipeline.forensics.findings.session_timeout import SESSION_TIMEOUT
from tests.pipeline.forensics.findings.conftest import Findings
from tests.pipeline.forensics.row_histories import G, M, O, Row, Z, beats

A, ALL = M("a", "t0"), M("a", "t0 t1")


def told(times: int, departure: str = "session-expired") -> list[Row]:
    rows: list[Row] = [G(0, 1, A, M("b1", "t1"))]
    for life in range(1, times + 1):
        at, gone, back = life * 300, M(f"b{life}", "t1"), M(f"b{life + 1}", "t1")
        rows += [O(at, gone, departure), G(at + 2, 2 * life, ALL)]
        rows += [Z(at + 5, gone.id, 2 * life - 1, "UNKNOWN_MEMBER_ID")]
        rows += [G(at + 9, 2 * life + 1, A, back)]
    return rows


def untold(times: int, silence: float) -> list[Row]:
    """b stops committing, leaves and rejoins; a commits all the time."""
    rows: list[Row] = [G(0, 1, A, M("b1", "t1")), *beats(1, times * 400, every=5, of="t0")]
    for life in range(1, times + 1):
        at = life * 300
        rows += beats(at - 280, at, every=5, of="t1")
        rows += [
            G(at + silence, 2 * life, ALL),
            G(at + 18, 2 * life + 1, A, M(f"b{life + 1}", "t1")),
        ]
    return rows


HISTORY = {
    "affected": untold(2, silence=12),
    "affected with events": told(3),
    "leaves": untold(2, silence=3),
    "one crash": told(1),
    "closed": told(3, departure="left"),
}


def test_sessions_that_expire_twice_are_found(found: Callable[[FindingRule], Findings]) -> None:
    evicted = found(SESSION_TIMEOUT)

    assert evicted.keys() == {"affected", "affected with events"}
    (inferred,), (exact,) = evicted["affected"], evicted["affected with events"]
    assert (exact["subject"], exact["count"]) == ("b at /b", 3)
    assert "It was still running 3 times" in exact["what"]
    assert (inferred["subject"], inferred["count"]) == ("b at /b", 2)
    assert "Inferred" in inferred["what"]
    assert exact["setting"].startswith("session.timeout.ms=45000")
