"""A topic that nobody reads is found, be it wanted or left behind."""

from collections.abc import Callable

from kohort.pipeline.forensics.findings import Finding
from kohort.pipeline.forensics.findings.unowned_topic import UNOWNED_TOPIC
from tests.pipeline.forensics.findings.conftest import Found
from tests.pipeline.forensics.stories import C, G, L, M, X

A = M("a", "t0 t1")

HISTORY = {
    "guilty of a topic that is not there": [G(0, 1, M("a", "t0", topics="gone t"))],
    "guilty of a topic left behind": [
        G(0, 1, M("a", "t0 old0", topics="old t")),
        C(10, "t0 old0", 100),
        G(60, 2, A),
        L(900, "old0", 500),
        L(900, "t0", 100),
    ],
    "guilty of one whose offsets expired": [
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


def test_a_topic_without_an_owner_is_found(found: Callable[[Finding], Found]) -> None:
    topics = found(UNOWNED_TOPIC)

    assert topics.keys() == {
        "guilty of a topic that is not there",
        "guilty of a topic left behind",
        "guilty of one whose offsets expired",
    }
    (missing,), (left,), _ = topics.values()
    assert (missing["subject"], missing["severity"]) == ("gone", "notice")
    assert (left["subject"], left["severity"]) == ("old", "warning")
    assert "400 records of it to read" in left["what"]
