"""Offsets that expired before the group started again are found; if it never started again, not."""

from collections.abc import Callable

from kohort.pipeline.forensics.findings import FindingRule
from kohort.pipeline.forensics.findings.expired_offsets import EXPIRED_OFFSETS
from tests.pipeline.forensics.findings.conftest import Findings
from tests.pipeline.forensics.row_histories import C, D, E, G, M, Row, X, beats

A = M("a", "t0")
HOUR = 3600
REST: list[Row] = [G(0, 1, A), *beats(10, 100, every=10, of="t0"), G(110, 2), X(9 * HOUR, "t0")]
BACK: list[Row] = [G(10 * HOUR, 3, A), C(10 * HOUR + 5, "t0", 200)]

HISTORY = {
    "affected": [*REST, *BACK],
    "affected with events": [*REST, E(9 * HOUR, "offsets-expired"), *BACK],
    "never back": [*REST, D(9 * HOUR)],
    "deleted by hand": [
        *REST,
        E(9 * HOUR, "group-deleted", {"body": '{"is_expired": false}'}),
        *BACK,
    ],
    "kept": [*(row for row in REST if not isinstance(row, X)), *BACK],
}


def test_offsets_that_expired_before_a_restart_are_found(
    found: Callable[[FindingRule], Findings],
) -> None:
    expired = found(EXPIRED_OFFSETS)

    assert expired.keys() == {"affected", "affected with events"}
    (removed,), (recorded,) = expired["affected"], expired["affected with events"]
    assert (recorded["subject"], recorded["count"]) == ("t", 1)
    assert "1 offset of t expired, 8 h 58 min after the last commit" in recorded["what"]
    assert "processed 800 records again" in recorded["what"]
    assert "were removed (expired, or deleted by an operator)" in removed["what"]
