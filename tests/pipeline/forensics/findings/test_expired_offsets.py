"""Offsets that were gone when a group came back are found; if it never came back, nobody cares."""

from collections.abc import Callable

from kohort.pipeline.forensics.findings import Finding
from kohort.pipeline.forensics.findings.expired_offsets import EXPIRED_OFFSETS
from tests.pipeline.forensics.findings.conftest import Found
from tests.pipeline.forensics.stories import C, D, E, G, M, Row, X, beats

A = M("a", "t0")
HOUR = 3600
REST: list[Row] = [G(0, 1, A), *beats(10, 100, every=10, of="t0"), G(110, 2), X(9 * HOUR, "t0")]
BACK: list[Row] = [G(10 * HOUR, 3, A), C(10 * HOUR + 5, "t0", 200)]

HISTORY = {
    "guilty": [*REST, *BACK],
    "guilty with events": [*REST, E(9 * HOUR, "offsets-expired"), *BACK],
    "never back": [*REST, D(9 * HOUR)],
    "deleted by hand": [
        *REST,
        E(9 * HOUR, "group-deleted", {"body": '{"is_expired": false}'}),
        *BACK,
    ],
    "kept": [*(row for row in REST if not isinstance(row, X)), *BACK],
}


def test_offsets_gone_on_return_are_found(found: Callable[[Finding], Found]) -> None:
    expired = found(EXPIRED_OFFSETS)

    assert expired.keys() == {"guilty", "guilty with events"}
    (removed,), (told,) = expired["guilty"], expired["guilty with events"]
    assert (told["subject"], told["count"]) == ("t", 1)
    assert "1 offset of t expired, 8 h 58 min after the last commit" in told["what"]
    assert "800 records further back" in told["what"]
    assert "without events nobody knows" in removed["what"]
