"""A rolling restart of dynamic members is found; of static members, or scaling, is not."""

from collections.abc import Callable

from kohort.pipeline.forensics.findings import FindingRule
from kohort.pipeline.forensics.findings.rolling_restart import ROLLING_RESTART
from tests.pipeline.forensics.findings.conftest import Findings
from tests.pipeline.forensics.row_histories import G, M, P, R, Row, S, beats

NAMES = "abcd"


def fleet(lives: dict[str, int], *, static: bool = False) -> list[M]:
    return [
        M(f"{n}{life}", f"t{i}", instance=f"rack-{n}" if static else None)
        for i, (n, life) in enumerate(lives.items())
    ]


def one_by_one(*, with_events: bool) -> list[Row]:
    """Each member leaves and rejoins in one rebalance of 3 s."""
    lives = dict.fromkeys(NAMES, 1)
    rows: list[Row] = [G(0, 1, *fleet(lives)), *beats(5, 295, every=5, of="t0 t1 t2 t3")]
    for index, name in enumerate(NAMES, start=1):
        at, old = 240 + index * 60, M(f"{name}1")
        before, lives[name] = fleet(lives), 2
        after = fleet(lives)
        rows += [*beats(at - 55, at, every=5, of="t0 t1 t2 t3"), G(at + 3, index + 1, *after)]
        if with_events:
            everyone = [P(m, 3) for m in after]
            rows += [S(at, index, "member-left", old)]
            rows += [
                R(at + 3, index + 1, "member-left", old, *everyone, started=at, out=[(old, "left")])
            ]
        assert len(before) == len(after)
    return rows


def static_deploy() -> list[Row]:
    lives = dict.fromkeys(NAMES, 1)
    rows: list[Row] = [G(0, 1, *fleet(lives, static=True))]
    for index, name in enumerate(NAMES, start=1):
        lives[name] = 2
        rows.append(G(index * 60, 1, *fleet(lives, static=True)))
    return rows


def growing() -> list[Row]:
    return [
        G(size * 60, size, *(M(f"{n}1", f"t{i}") for i, n in enumerate("abcdefgh"[:size])))
        for size in range(1, 9)
    ]


def up_and_down() -> list[Row]:
    """Four members join and leave later."""
    sizes = [4, 6, 8, 6, 4]
    return [
        G(n * 60, n + 1, *(M(f"{name}1", f"t{i}") for i, name in enumerate("abcdefgh"[:size])))
        for n, size in enumerate(sizes)
    ]


def all_at_once() -> list[Row]:
    """All members stop, then all start."""
    old, new = fleet(dict.fromkeys(NAMES, 1)), fleet(dict.fromkeys(NAMES, 2))
    return [G(0, 1, *old), G(300, 2, *old[:2]), G(310, 3), G(330, 4, *new[:2]), G(335, 5, *new)]


HISTORY = {
    "affected": one_by_one(with_events=False),
    "affected with events": one_by_one(with_events=True),
    "static": static_deploy(),
    "all at once": all_at_once(),
    "growing": growing(),
    "up and down": up_and_down(),
}


def test_a_rolling_restart_is_found(found: Callable[[FindingRule], Findings]) -> None:
    deploys = found(ROLLING_RESTART)

    assert deploys.keys() == {"affected", "affected with events"}
    (inferred,), (exact,) = deploys["affected"], deploys["affected with events"]
    assert exact["count"] == inferred["count"] == 4
    assert exact["what"].startswith(
        "4 of 4 members were replaced within 3 min 3 s, with 4 rebalances"
    )
    assert exact["would_have_saved_ms"] == 4 * 4 * 3000
    # What the one who is gone had is not known to have stood still.
    assert inferred["would_have_saved_ms"] == 4 * 3 * 3000
    assert "(estimate)" in inferred["what"]
