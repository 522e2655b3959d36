"""Eager rebalances that move few partitions are found; cooperative and rare ones are not."""

from collections.abc import Callable

from kohort.pipeline.forensics.findings import FindingRule
from kohort.pipeline.forensics.findings.eager_cost import EAGER_COST
from tests.pipeline.forensics.findings.conftest import Findings
from tests.pipeline.forensics.row_histories import G, M, P, R, Row, S, beats

A, B = M("a", "t0 t1 t2 t3"), M("b", "t4 t5 t6 t7")
EIGHT = "t0 t1 t2 t3 t4 t5 t6 t7"


def stops(times: int, *, took: float, protocol: str = "range", told: bool = False) -> list[Row]:
    rows: list[Row] = [G(0, 1, A, B, protocol=protocol)]
    for index in range(1, times + 1):
        at = index * 300
        rows += [*beats(at - 290, at, every=5, of=EIGHT)]
        rows += [G(at + took, index + 1, A, B, protocol=protocol)]
        if told:
            both = P(A, took, A.got), P(B, took, B.got)
            rows += [S(at, index, "leader-rejoined", A)]
            rows += [R(at + took, index + 1, "leader-rejoined", A, *both, started=at)]
    return rows


HISTORY = {
    "affected": stops(4, took=5),
    "affected with events": stops(4, took=5, told=True),
    "cooperative": stops(4, took=5, protocol="cooperative-sticky"),
    "rare": stops(2, took=5),
    "brief": stops(4, took=0.5, told=True),
}


def test_the_cost_of_an_eager_assignor_is_found(
    found: Callable[[FindingRule], Findings],
) -> None:
    costs = found(EAGER_COST)

    assert costs.keys() == {"affected", "affected with events"}
    (inferred,), (exact,) = costs["affected"], costs["affected with events"]
    assert inferred["would_have_saved_ms"] == exact["would_have_saved_ms"] == 4 * 8 * 5000
    assert "reassigned 0 % of them" in exact["what"]
    assert "estimates" in inferred["what"]
