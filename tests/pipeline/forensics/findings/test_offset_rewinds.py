"""Rewinds by members are found; rewinds of an empty group are not."""

from collections.abc import Callable

from kohort.pipeline.forensics.findings import FindingRule
from kohort.pipeline.forensics.findings.offset_rewinds import OFFSET_REWINDS
from tests.pipeline.forensics.findings.conftest import Findings
from tests.pipeline.forensics.row_histories import C, G, M, X, beats

A = M("a", "t0 t1")
RUN = [G(0, 1, A), *beats(5, 50, every=5, of="t0 t1")]

HISTORY = {
    "affected": [*RUN, C(55, "t0", 0), C(60, "t1", 450)],
    "an operator": [*RUN, G(55, 2), C(60, "t0 t1", 0), G(70, 3, A), C(75, "t0 t1", 50)],
    "onwards": [*RUN, *beats(55, 100, every=5, of="t0 t1")],
    "removed before": [*RUN, X(55, "t0"), C(60, "t0", 10)],
}


def test_rewinds_by_members_are_found(found: Callable[[FindingRule], Findings]) -> None:
    rewinds = found(OFFSET_REWINDS)

    assert rewinds.keys() == {"affected"}
    (rewind,) = rewinds["affected"]
    assert (rewind["subject"], rewind["count"], rewind["severity"]) == ("t", 2, "warning")
    assert "by 550 records in total and at most 500 at once" in rewind["what"]
    assert "1 of them to offset 0" in rewind["what"]
