"""Members that want different topics for long are found; a deploy that adds one is not."""

from collections.abc import Callable

from kohort.pipeline.forensics.findings import Finding
from kohort.pipeline.forensics.findings.subscription_mismatch import SUBSCRIPTION_MISMATCH
from tests.pipeline.forensics.findings.conftest import Found
from tests.pipeline.forensics.stories import G, M

OLD, NEW = M("a", "t0"), M("a", "t0", topics="pay t")
OTHER = M("b", "pay0", topics="pay t")

HISTORY = {
    "guilty": [G(0, 1, OLD, OTHER), G(1200, 2, OLD, OTHER)],
    "a deploy": [G(0, 1, OLD, M("b", "t1")), G(60, 2, OLD, OTHER), G(120, 3, NEW, OTHER)],
    "the same in another order": [G(0, 1, NEW, M("b", "pay0", topics="t pay"))],
}


def test_members_that_want_different_topics_are_found(found: Callable[[Finding], Found]) -> None:
    mismatches = found(SUBSCRIPTION_MISMATCH)

    assert mismatches.keys() == {"guilty"}
    (mismatch,) = mismatches["guilty"]
    assert mismatch["subject"] == "pay"
    assert "For 20 min the 2 members" in mismatch["what"]
    assert '"wanted_by":{"pay":["b"]}' in mismatch["evidence"]
