"""A leader that joins again and again for nothing is found; one that sees new topics is not."""

from collections.abc import Callable

from kohort.pipeline.forensics.findings import Finding
from kohort.pipeline.forensics.findings.leader_loop import LEADER_LOOP
from tests.pipeline.forensics.findings.conftest import Found
from tests.pipeline.forensics.stories import G, M, P, R, Row, S

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
    "guilty": again(5),
    "guilty with events": told(5),
    "twice": again(3),
    "new partitions": new_partitions(),
}


def test_a_leader_that_joins_for_nothing_is_found(found: Callable[[Finding], Found]) -> None:
    loops = found(LEADER_LOOP)

    assert loops.keys() == {"guilty", "guilty with events"}
    (inferred,), (exact,) = loops["guilty"], loops["guilty with events"]
    assert (inferred["subject"], inferred["count"]) == ("a at /a", 4)
    assert (exact["subject"], exact["count"]) == ("a at /a", 4)
    assert "Its reason: cached metadata has changed." in exact["what"]
    assert "inferred" in inferred["what"]
