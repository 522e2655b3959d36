"""The order of groups: by status, then by severity score."""

from kohort.pipeline.forensics.report.report_model import FindingKind, GroupStatus
from kohort.pipeline.forensics.report.severity import rank, severity_of, status_of
from tests.pipeline.forensics.report.samples import HOUR_MS, group, unstable_group


def test_the_severity_score_is_the_sum_of_its_parts() -> None:
    ailing = group(
        findings=(
            FindingKind(finding="crash-loop", severity="critical"),
            FindingKind(finding="crash-loop", severity="warning"),
            FindingKind(finding="eager-protocol-cost", severity="notice"),
        ),
        rebalances=8,
        ownerless_ms=HOUR_MS * 48 // 10,
        rebalancing_ms=HOUR_MS * 4 // 100,
        statuses=(("ok", 6), ("stopped", 3), ("warning", 3)),
    )

    parts = severity_of(ailing)

    assert (parts.findings, parts.ownerless, parts.rebalancing) == (32.0, 10.0, 1.0)
    assert (parts.rate, parts.lag) == (2.0, 7.5)
    assert parts.total == 52.5


def test_a_group_without_data_has_score_zero() -> None:
    offsets_only = group(state=None, partitions=0, known_ms=0, statuses=())

    parts = severity_of(offsets_only)

    assert parts.total == 0
    assert status_of(offsets_only) is GroupStatus.HEALTHY


def test_shares_never_exceed_100_percent() -> None:
    estimated = group(ownerless_ms=HOUR_MS * 1000, rebalancing_ms=HOUR_MS * 1000, rebalances=900)

    parts = severity_of(estimated)

    assert (parts.ownerless, parts.rebalancing, parts.rate) == (100.0, 100.0, 20.0)


def test_critical_groups_come_first_for_any_score() -> None:
    critical = group("a", findings=(FindingKind(finding="stuck-group", severity="critical"),))
    warned = group(
        "b", findings=tuple(FindingKind(finding=f"kind-{n}", severity="warning") for n in range(9))
    )
    behind = group("c", statuses=(("stopped", 12),))

    ranked = rank([behind, warned, critical, group("d")])

    assert [each.group_id for each in ranked] == ["a", "b", "c", "d"]
    assert severity_of(warned).total > severity_of(critical).total


def test_many_rebalances_are_a_warning_without_any_finding() -> None:
    unexplained = unstable_group(rebalances=60, findings=())
    calm = unstable_group(rebalances=30, findings=())

    needs = status_of(unexplained), status_of(calm)

    assert needs == (GroupStatus.WARNING, GroupStatus.HEALTHY)


def test_a_short_membership_is_not_a_high_rate() -> None:
    visit = group(rebalances=3, known_ms=60_000)

    assert status_of(visit) is GroupStatus.HEALTHY


def test_equal_groups_are_ordered_by_name() -> None:
    ranked = rank([group("b"), group("c"), group("a")])

    assert [each.group_id for each in ranked] == ["a", "b", "c"]
