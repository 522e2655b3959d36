"""A member that the others repeatedly wait for is found; equally slow members are not."""

from collections.abc import Callable

from kohort.pipeline.forensics.findings import FindingRule
from kohort.pipeline.forensics.findings.slow_member import SLOW_MEMBER
from tests.pipeline.forensics.findings.conftest import Findings
from tests.pipeline.forensics.row_histories import C, G, M, P, R, Row, S, beats

A, B, C_ = M("a", "t0"), M("b", "t1"), M("c", "t2")


def told(*joins: tuple[float, float, float]) -> list[Row]:
    """One rebalance every five minutes, with the join times of a, b and c in seconds."""
    rows: list[Row] = [G(0, 1, A, B, C_)]
    for index, seconds in enumerate(joins, start=1):
        at, end = index * 300, index * 300 + max(seconds)
        participants = [P(m, join, m.got) for m, join in zip((A, B, C_), seconds, strict=True)]
        rows += [S(at, index, "leader-rejoined", A), G(end, index + 1, A, B, C_)]
        rows += [R(end, index + 1, "leader-rejoined", A, *participants, started=at)]
    return rows


def untold(slow_by: float) -> list[Row]:
    """Rebalances in which b commits and joins this many seconds after the others."""
    rows: list[Row] = [G(0, 1, A, B, C_)]
    for index in (1, 2):
        at = index * 300
        rows += beats(at - 250, at, every=5, of="t0 t1 t2")
        rows += [C(at + slow_by, "t1", at * 10 + 50), G(at + slow_by + 1, index + 1, A, B, C_)]
    return rows


HISTORY = {
    "affected": untold(slow_by=40),
    "affected with events": told((1, 42, 2), (2, 31, 1)),
    "in time": untold(slow_by=2),
    "slow once": told((1, 42, 2), (1, 2, 2)),
    "all are slow": told((40, 42, 41), (38, 31, 35)),
}


def test_a_member_that_delays_two_rebalances_is_found(
    found: Callable[[FindingRule], Findings],
) -> None:
    slow = found(SLOW_MEMBER)

    assert slow.keys() == {"affected", "affected with events"}
    (inferred,), (exact,) = slow["affected"], slow["affected with events"]
    assert inferred["subject"] == exact["subject"] == "b at /b"
    assert "up to 42 s" in exact["what"]
    assert "join times are unknown" in inferred["what"]
    assert exact["would_have_saved_ms"] == 2 * (42 - 2) * 1000 + 2 * (31 - 2) * 1000
