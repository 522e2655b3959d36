"""Members without partitions are found, unless it lasts only a short time."""

from collections.abc import Callable

from kohort.pipeline.forensics.findings import FindingRule
from kohort.pipeline.forensics.findings.too_many_members import TOO_MANY_MEMBERS
from tests.pipeline.forensics.findings.conftest import Findings
from tests.pipeline.forensics.row_histories import C, G, M

TWO = M("a", "t0"), M("b", "t1")
IDLE = M("c"), M("d"), M("e")

HISTORY = {
    "affected": [G(0, 1, *TWO, *IDLE), C(1200, "t0", 1)],
    "as many as partitions": [G(0, 1, *TWO), C(1200, "t0", 1)],
    "a moment": [G(0, 1, *TWO, *IDLE), G(20, 2, *TWO), C(1200, "t0", 1)],
    "nothing to share": [G(0, 1, *IDLE), C(1200, "t0", 1)],
}


def test_members_without_partitions_are_found(found: Callable[[FindingRule], Findings]) -> None:
    crowds = found(TOO_MANY_MEMBERS)

    assert crowds.keys() == {"affected"}
    (crowd,) = crowds["affected"]
    assert (crowd["count"], crowd["severity"]) == (3, "warning")
    assert "3 of 5 members had no partitions for 20 min" in crowd["what"]
    assert crowd["setting"] == "at most 2 members"
