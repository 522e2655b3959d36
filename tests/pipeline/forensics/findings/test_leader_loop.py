"""A leader that rejoins repeatedly without a change is found; one that sees new topics is not."""

from collections.abc import Callable

from kohort.pipeline.forensics.findings import FindingRule
from kohort.pipeline.forensics.findings.leader_loop import LEADER_LOOP
from tests.pipeline.forensics.findings.conftest import Findings
from tests.pipeline.forensics.row_histories import G, M, P, R, Row, S

A, B = M("a", "t0"), M("b", "t1")


def again(times: int) -> list[Row]:
    return [G(index * 120, index + 1, A, B) for index in range(times)]


def told(times: int) -> list[Row]:
    rows = again(times)
    for index in range(1, times):
        at, reason = index * 120, "cached metadata has changed"
        rows += [S(at - 2, index, "leader-rejoined", A, reason)]
        everyone = P(A, 0, A.got), P(B, 2, B.got)
        rows += [R(at, index + 1, "leader-rejoined", A, *everyone, started=at - 2, reason=reason)]
    return rows


def new_partitions() -> list[Row]:
    shares = [" ".join(f"t{number}" for number in range(1, count + 2)) for count in range(5)]
    return [G(i * 120, i + 1, A, M("b", share)) for i, share in enumerate(shares)]


HISTORY = {
    "affected": again(5),
    "affected with events": told(5),
    "twice": again(3),
    "new partitions": new_partitions(),
}


def test_a_leader_that_rejoins_without_a_change_is_found(
    found: Callable[[FindingRule], Findings],
) -> None:
    loops = found(LEADER_LOOP)

    assert loops.keys() == {"affected", "affected with events"}
    (inferred,), (exact,) = loops["affected"], loops["affected with events"]
    assert (inferred["subject"], inferred["count"]) == ("a at /a", 4)
    assert (exact["subject"], exact["count"]) == ("a at /a", 4)
    assert "Reason given by the client: cached metadata has changed." in exact["what"]
    assert "inferred" in inferred["what"]
