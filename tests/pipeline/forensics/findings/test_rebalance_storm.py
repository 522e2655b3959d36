"""Many rebalances started by few clients are a storm; many started by many are a deploy."""

from collections.abc import Callable

from kohort.pipeline.forensics.findings import FindingRule
from kohort.pipeline.forensics.findings.rebalance_storm import REBALANCE_STORM
from tests.pipeline.forensics.findings.conftest import Findings
from tests.pipeline.forensics.row_histories import G, M, P, R, Row, S, beats

A = M("a", "t0 t1")
BOTH = M("a", "t0 t1 t2 t3")


def flapping(times: int) -> list[Row]:
    """b leaves and rejoins repeatedly."""
    rows: list[Row] = [G(0, 1, A, M("b1", "t2 t3")), *beats(5, times * 60, every=5, of="t0 t1")]
    for life in range(1, times):
        at = life * 60
        rows += beats(at - 55, at - 1, every=5, of="t2 t3")
        rows += [G(at, 2 * life, BOTH), G(at + 4, 2 * life + 1, A, M(f"b{life + 1}", "t2 t3"))]
    return rows


def told_flapping(times: int) -> list[Row]:
    first = M("b1", "t2 t3")
    rows: list[Row] = [S(0, 0, "member-joined", A), G(3, 1, A, first)]
    rows += [R(3, 1, "member-joined", A, P(A), P(first), started=0)]
    for life in range(1, times):
        at, gone, back = life * 60, M(f"b{life}", "t2 t3"), M(f"b{life + 1}", "t2 t3")
        rows += [S(at, 2 * life - 1, "session-expired", gone), G(at + 2, 2 * life, BOTH)]
        rows += [R(at + 2, 2 * life, "session-expired", gone, P(BOTH, 2), started=at)]
        rows += [S(at + 9, 2 * life, "member-joined", back), G(at + 10, 2 * life + 1, A, back)]
        rows += [R(at + 10, 2 * life + 1, "member-joined", back, P(A, 1), P(back), started=at + 9)]
    return rows


def deploy() -> list[Row]:
    """Six members restart one by one, with twelve rebalances."""
    lives = dict.fromkeys("abcdef", 1)
    rows: list[Row] = []
    number = 0

    def generation(at: float, without: str = "") -> G:
        present = [name for name in lives if name != without]
        return G(at, number, *(M(f"{n}{lives[n]}", f"t{i}") for i, n in enumerate(present)))

    for index, name in enumerate(["", *lives]):
        number += 1
        rows.append(generation(index * 60, without=name))
        if name:
            number, lives[name] = number + 1, 2
            rows.append(generation(index * 60 + 20))
    return rows


def strangers(times: int) -> list[Row]:
    """Two members, and a third with a new name every time."""
    return [
        G(at * 30, at + 1, A, M("b", "t2"), M(f"c{at}", "t3", host=f"/10.0.0.{at}"))
        for at in range(times)
    ]


HISTORY = {
    "affected": flapping(7),
    "affected, new names": strangers(14),
    "affected with events": told_flapping(7),
    "two flaps": flapping(3),
    "a deploy": deploy(),
}


def test_a_storm_is_found_and_a_deploy_is_not(found: Callable[[FindingRule], Findings]) -> None:
    storms = found(REBALANCE_STORM)

    assert storms.keys() == {"affected", "affected, new names", "affected with events"}
    assert storms["affected, new names"][0]["subject"] is None
    (inferred,), (exact,) = storms["affected"], storms["affected with events"]
    assert inferred["subject"] == exact["subject"] == "b at /b"
    assert "inferred" in inferred["what"]
    assert "inferred" not in exact["what"]
    assert exact["count"] == 13
    assert exact["what"].startswith("13 rebalances within 6 min 10 s; the group spent 21 s")
    assert exact["would_have_saved_ms"] == 6 * 4 * (2000 + 1000)
