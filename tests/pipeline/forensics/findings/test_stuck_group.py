"""A rebalance that does not end, or a group without progress, is found; a slow group is not."""

from collections.abc import Callable

from kohort.pipeline.forensics.findings import FindingRule
from kohort.pipeline.forensics.findings.stuck_group import STUCK_GROUP
from tests.pipeline.forensics.findings.conftest import Findings
from tests.pipeline.forensics.row_histories import G, L, M, P, R, Row, S, beats

A, B = M("a", "t0"), M("b", "t1")


def looks(of: str, rate: int) -> list[Row]:
    return [L(at, of, at * rate) for at in range(0, 1801, 60)]


HISTORY = {
    "affected": [G(0, 1, A), *beats(5, 300, every=5, of="t0"), *looks("t0", 10)],
    "affected with events": [G(0, 1, A, B), S(100, 1, "member-joined", M("c"))],
    "affected for a while": [
        G(0, 1, A, B),
        S(100, 1, "leader-rejoined", A),
        G(700, 2, A, B),
        R(700, 2, "leader-rejoined", A, P(A, 0), P(B, 600), started=100),
    ],
    "behind, and at work": [
        G(0, 1, M("a", "u0", topics="u")),
        *beats(5, 1800, every=5, of="u0"),
        *looks("u0", 20),
    ],
    "nothing to read": [
        G(0, 1, M("a", "v0", topics="v")),
        *beats(5, 300, every=5, of="v0", rate=0, start=0),
        *looks("v0", 0),
    ],
    "an ordinary rebalance": [
        G(0, 1, A, B),
        S(100, 1, "leader-rejoined", A),
        G(103, 2, A, B),
        R(103, 2, "leader-rejoined", A, P(A, 0), P(B, 3), started=100),
    ],
}


def test_a_group_without_progress_is_found(found: Callable[[FindingRule], Findings]) -> None:
    stuck = found(STUCK_GROUP)

    assert stuck.keys() == {"affected", "affected with events", "affected for a while"}
    (still,), (endless,), (long,) = stuck.values()
    assert "of lag in 1 partition." in still["what"]
    assert "15,000 records of lag" in still["what"]
    assert (endless["severity"], long["severity"]) == ("critical", "warning")
    assert "the longest 28 min 20 s; one is still in progress" in endless["what"]
    assert "the longest 10 min." in long["what"]
