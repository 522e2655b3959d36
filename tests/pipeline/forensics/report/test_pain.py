"""The order of groups: explainable, and nobody in need stands behind somebody who is not."""

from kohort.pipeline.forensics.report.material import Found
from kohort.pipeline.forensics.report.pain import Need, need, pain, rank
from tests.pipeline.forensics.report.samples import HOUR_MS, group, restless


def test_pain_is_the_sum_of_its_parts() -> None:
    sufferer = group(
        findings=(
            Found(finding="crash-loop", severity="critical"),
            Found(finding="crash-loop", severity="warning"),
            Found(finding="eager-protocol-cost", severity="notice"),
        ),
        rebalances=8,
        ownerless_ms=HOUR_MS * 48 // 10,
        rebalancing_ms=HOUR_MS * 4 // 100,
        statuses=(("ok", 6), ("stopped", 3), ("warning", 3)),
    )

    parts = pain(sufferer)

    assert (parts.findings, parts.ownerless, parts.rebalancing) == (32.0, 10.0, 1.0)
    assert (parts.rate, parts.lag) == (2.0, 7.5)
    assert parts.total == 52.5


def test_a_group_that_nothing_is_known_of_has_no_pain() -> None:
    offsets_only = group(state=None, partitions=0, known_ms=0, statuses=())

    parts = pain(offsets_only)

    assert parts.total == 0
    assert need(offsets_only) is Need.NONE


def test_shares_never_exceed_the_whole() -> None:
    estimated = group(ownerless_ms=HOUR_MS * 1000, rebalancing_ms=HOUR_MS * 1000, rebalances=900)

    parts = pain(estimated)

    assert (parts.ownerless, parts.rebalancing, parts.rate) == (100.0, 100.0, 20.0)


def test_critical_comes_first_whatever_the_sum() -> None:
    critical = group("a", findings=(Found(finding="stuck-group", severity="critical"),))
    warned = group(
        "b", findings=tuple(Found(finding=f"kind-{n}", severity="warning") for n in range(9))
    )
    behind = group("c", statuses=(("stopped", 12),))

    ranked = rank([behind, warned, critical, group("d")])

    assert [each.group_id for each in ranked] == ["a", "b", "c", "d"]
    assert pain(warned).total > pain(critical).total


def test_a_restless_group_deserves_a_look_without_any_finding() -> None:
    unexplained = restless(rebalances=60, findings=())
    calm = restless(rebalances=30, findings=())

    needs = need(unexplained), need(calm)

    assert needs == (Need.SOON, Need.NONE)


def test_a_short_visit_is_not_taken_for_a_storm() -> None:
    visit = group(rebalances=3, known_ms=60_000)

    assert need(visit) is Need.NONE


def test_groups_alike_are_in_the_order_of_their_names() -> None:
    ranked = rank([group("b"), group("c"), group("a")])

    assert [each.group_id for each in ranked] == ["a", "b", "c"]
