"""A member that did not poll is found by its reason, or by the time since its last commit."""

from collections.abc import Callable

from kohort.pipeline.forensics.findings import FindingRule
from kohort.pipeline.forensics.findings.poll_interval import POLL_INTERVAL
from tests.pipeline.forensics.findings.conftest import Findings
from tests.pipeline.forensics.row_histories import G, M, O, P, R, Row, S, beats

A, B, ALL = M("a", "t0"), M("b", "t1"), M("a", "t0 t1")
BACK = M("b2", "t1")


def told(reason: str, departure: str = "left") -> list[Row]:
    trigger = "member-left"
    return [
        G(0, 1, A, B),
        *beats(5, 300, every=5, of="t0 t1"),
        S(302, 1, trigger, B, reason),
        O(302, B, departure, reason),
        G(303, 2, ALL),
        R(303, 2, trigger, B, P(ALL, 1), started=302, reason=reason, out=[(B, departure)]),
        G(400, 3, A, BACK),
    ]


def untold(silence: float) -> list[Row]:
    """b stops committing at 300 and leaves later; a continues."""
    return [
        G(0, 1, A, B),
        *beats(5, 300, every=5, of="t1"),
        *beats(5, 300 + silence, every=5, of="t0"),
        G(300 + silence + 1, 2, ALL),
        G(300 + silence + 60, 3, A, BACK),
    ]


HISTORY = {
    "affected": untold(silence=60),
    "affected with events": told("consumer poll timeout has expired."),
    "affected, not rejoined": [*told("", departure="not-rejoined"), O(500, BACK, "not-rejoined")],
    "missed one rebalance": told("", departure="not-rejoined"),
    "closed": told("the consumer is being closed"),
    "closed without events": untold(silence=2),
}


def test_a_member_that_did_not_poll_is_found(found: Callable[[FindingRule], Findings]) -> None:
    evicted = found(POLL_INTERVAL)

    assert evicted.keys() == {"affected", "affected with events", "affected, not rejoined"}
    (inferred,), (exact,) = evicted["affected"], evicted["affected with events"]
    assert inferred["subject"] == exact["subject"] == "b at /b"
    assert "did not poll for 1 min" in exact["what"]
    assert "rejoined 1 time." in exact["what"]
    assert "Inferred from the time without commits" in inferred["what"]
    assert exact["setting"].startswith("max.poll.interval.ms=120000")
