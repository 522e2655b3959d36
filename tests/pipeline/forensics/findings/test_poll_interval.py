"""Whoever is out for not polling is found by its reason, or by the length of its silence."""

from collections.abc import Callable

from kohort.pipeline.forensics.findings import Finding
from kohort.pipeline.forensics.findings.poll_interval import POLL_INTERVAL
from tests.pipeline.forensics.findings.conftest import Found
from tests.pipeline.forensics.stories import G, M, O, P, R, Row, S, beats

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
    """b stops to commit at 300, and is out after a while; a goes on."""
    return [
        G(0, 1, A, B),
        *beats(5, 300, every=5, of="t1"),
        *beats(5, 300 + silence, every=5, of="t0"),
        G(300 + silence + 1, 2, ALL),
        G(300 + silence + 60, 3, A, BACK),
    ]


HISTORY = {
    "guilty": untold(silence=60),
    "guilty with events": told("consumer poll timeout has expired."),
    "guilty of not rejoining": [*told("", departure="not-rejoined"), O(500, BACK, "not-rejoined")],
    "missed one rebalance": told("", departure="not-rejoined"),
    "closed": told("the consumer is being closed"),
    "closed without events": untold(silence=2),
}


def test_a_member_that_did_not_poll_is_found(found: Callable[[Finding], Found]) -> None:
    evicted = found(POLL_INTERVAL)

    assert evicted.keys() == {"guilty", "guilty with events", "guilty of not rejoining"}
    (inferred,), (exact,) = evicted["guilty"], evicted["guilty with events"]
    assert inferred["subject"] == exact["subject"] == "b at /b"
    assert "did not poll for 1 min" in exact["what"]
    assert "came back 1 time." in exact["what"]
    assert "its silence tells" in inferred["what"]
    assert exact["setting"].startswith("max.poll.interval.ms=120000")
