"""Lasting differences between subscriptions are found; a rolling change is not."""

from collections.abc import Callable

from kohort.pipeline.forensics.findings import FindingRule
from kohort.pipeline.forensics.findings.subscription_mismatch import SUBSCRIPTION_MISMATCH
from tests.pipeline.forensics.findings.conftest import Findings
from tests.pipeline.forensics.row_histories import G, M

OLD, NEW = M("a", "t0"), M("a", "t0", topics="pay t")
OTHER = M("b", "pay0", topics="pay t")

HISTORY = {
    "affected": [G(0, 1, OLD, OTHER), G(1200, 2, OLD, OTHER)],
    "a deploy": [G(0, 1, OLD, M("b", "t1")), G(60, 2, OLD, OTHER), G(120, 3, NEW, OTHER)],
    "the same in another order": [G(0, 1, NEW, M("b", "pay0", topics="t pay"))],
}


def test_different_subscriptions_are_found(
    found: Callable[[FindingRule], Findings],
) -> None:
    mismatches = found(SUBSCRIPTION_MISMATCH)

    assert mismatches.keys() == {"affected"}
    (mismatch,) = mismatches["affected"]
    assert mismatch["subject"] == "pay"
    assert "For 20 min only some of the 2 members" in mismatch["what"]
    assert '"wanted_by":{"pay":["b"]}' in mismatch["evidence"]
