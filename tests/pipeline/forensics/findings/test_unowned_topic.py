"""A topic that no member consumes is found, subscribed or not."""

from collections.abc import Callable

from kohort.pipeline.forensics.findings import FindingRule
from kohort.pipeline.forensics.findings.unowned_topic import UNOWNED_TOPIC
from tests.pipeline.forensics.findings.conftest import Findings
from tests.pipeline.forensics.row_histories import C, G, L, M, X

A = M("a", "t0 t1")

HISTORY = {
    "affected of a topic that is not there": [G(0, 1, M("a", "t0", topics="gone t"))],
    "affected of a topic left behind": [
        G(0, 1, M("a", "t0 old0", topics="old t")),
        C(10, "t0 old0", 100),
        G(60, 2, A),
        L(900, "old0", 500),
        L(900, "t0", 100),
    ],
    "affected of one whose offsets expired": [
        G(0, 1, M("a", "t0 past0", topics="past t")),
        C(10, "t0 past0", 100),
        G(60, 2, A),
        X(800, "past0"),
        L(900, "past0", 500),
    ],
    "all is read": [G(0, 1, A), C(10, "t0 t1", 100)],
    "read to the end before": [
        G(0, 1, M("a", "t0 done0", topics="done t")),
        C(10, "t0 done0", 100),
        G(60, 2, A),
        L(900, "done0", 100),
    ],
}


def test_a_topic_without_consumers_is_found(found: Callable[[FindingRule], Findings]) -> None:
    topics = found(UNOWNED_TOPIC)

    assert topics.keys() == {
        "affected of a topic that is not there",
        "affected of a topic left behind",
        "affected of one whose offsets expired",
    }
    (missing,), (left,), _ = topics.values()
    assert (missing["subject"], missing["severity"]) == ("gone", "notice")
    assert (left["subject"], left["severity"]) == ("old", "warning")
    assert "400 unread records" in left["what"]
