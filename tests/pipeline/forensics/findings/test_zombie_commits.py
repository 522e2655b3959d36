"""Commits of non-owners are found: rejected ones by events, others by alternating offsets."""

from collections.abc import Callable

from kohort.pipeline.forensics.findings import FindingRule
from kohort.pipeline.forensics.findings.zombie_commits import ZOMBIE_COMMITS
from tests.pipeline.forensics.findings.conftest import Findings
from tests.pipeline.forensics.row_histories import C, G, M, Row, Z, beats

MOVED: list[Row] = [
    G(0, 1, M("a", "t0"), M("b", "t1")),
    *beats(5, 55, every=5, of="t0 t1"),
    G(60, 2, M("c", "t0"), M("b", "t1")),
]

HISTORY = {
    # The old owner goes on from 550, the new one began again at 500: two hands.
    "affected": [
        *MOVED,
        *(C(65 + at, "t0", 560 + 2 * at) for at in range(0, 15, 5)),
        *(C(66 + at, "t0", 510 + 2 * at) for at in range(0, 15, 5)),
    ],
    "affected with events": [*MOVED, Z(65, "a", 1), Z(70, "a", 1)],
    "one refused commit": [*MOVED, Z(65, "a", 1)],
    "one rewind": [*MOVED, C(65, "t0", 500), C(70, "t0", 510), C(75, "t0", 520)],
    "one seek, and fast again": [*MOVED, C(65, "t0", 10), C(70, "t0", 600)],
    "an orderly move": [*MOVED, *beats(65, 100, every=5, of="t0")],
    "an offset is refused for its size": [*MOVED, Z(65, "a", 2, "OFFSET_METADATA_TOO_LARGE")],
}


def test_commits_of_non_owners_are_found(found: Callable[[FindingRule], Findings]) -> None:
    zombies = found(ZOMBIE_COMMITS)

    assert zombies.keys() == {"affected", "affected with events"}
    (let_in,), (refused,) = zombies["affected"], zombies["affected with events"]
    assert (let_in["subject"], let_in["severity"]) == ("t-0", "critical")
    assert "history does not show which" in let_in["what"]
    assert (refused["subject"], refused["count"]) == ("a at /a", 2)
    assert "ILLEGAL_GENERATION" in refused["what"]
