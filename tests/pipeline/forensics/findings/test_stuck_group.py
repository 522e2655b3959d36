"""A group that rebalances without an end, or stands still, is found; a slow one is not."""

from collections.abc import Callable

from kohort.pipeline.forensics.findings import Finding
from kohort.pipeline.forensics.findings.stuck_group import STUCK_GROUP
from tests.pipeline.forensics.findings.conftest import Found
from tests.pipeline.forensics.stories import G, L, M, P, R, Row, S, beats

A, B = M("a", "t0"), M("b", "t1")


def looks(of: str, rate: int) -> list[Row]:
    return [L(at, of, at * rate) for at in range(0, 1801, 60)]


HISTORY = {
    "guilty": [G(0, 1, A), *beats(5, 300, every=5, of="t0"), *looks("t0", 10)],
    "guilty with events": [G(0, 1, A, B), S(100, 1, "member-joined", M("c"))],
    "guilty for a while": [
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


def test_a_group_that_gets_nothing_done_is_found(found: Callable[[Finding], Found]) -> None:
    stuck = found(STUCK_GROUP)

    assert stuck.keys() == {"guilty", "guilty with events", "guilty for a while"}
    (still,), (endless,), (long,) = stuck.values()
    assert "to read in 1 partition." in still["what"]
    assert "15,000 records to read" in still["what"]
    assert (endless["severity"], long["severity"]) == ("critical", "warning")
    assert "28 min 20 s at the most, and is so now" in endless["what"]
    assert "10 min at the most." in long["what"]
