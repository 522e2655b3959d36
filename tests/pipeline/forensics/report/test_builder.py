"""From rows to a report: what is shown, in which order, and what is omitted."""

from kohort.pipeline.forensics.report.report_model import FindingKind
from tests.pipeline.forensics.report.samples import (
    HOUR_MS,
    START_MS,
    detail,
    group,
    membership,
    rebalance,
    report,
    unstable_group,
)


def test_groups_are_ranked_and_marked_if_they_have_details() -> None:
    shown = report(group("calm"), unstable_group(), details=(detail(),))

    assert [each.group_id for each in shown.groups] == ["billing", "calm"]
    assert [each.has_details for each in shown.groups] == [True, False]
    assert [each.group_id for each in shown.details] == ["billing"]


def test_a_finding_is_listed_once_by_its_highest_severity() -> None:
    found = (
        FindingKind(finding="crash-loop", severity="critical"),
        FindingKind(finding="crash-loop", severity="notice"),
        FindingKind(finding="a-notice", severity="notice"),
        FindingKind(finding="zombie-commits", severity="warning"),
    )

    (line,) = report(group(findings=found)).groups

    assert line.findings == ("crash-loop", "zombie-commits", "a-notice")


def test_the_lag_status_of_a_group_is_the_worst_of_its_partitions() -> None:
    (line,) = report(group(statuses=(("ok", 11), ("rewound", 1), ("warning", 3)))).groups

    assert line.lag_status == "rewound"


def test_an_unknown_lag_is_not_ok() -> None:
    shown = report(group(lag_records=None), group("offsets", statuses=(), lag_records=None))

    assert [each.lag_status for each in shown.groups] == [None, None]
    assert any("lag is unknown" in each for each in shown.omitted)
    assert not any("lag is unknown" in each for each in report(group()).omitted)


def test_rebalances_are_in_order() -> None:
    (details,) = report(unstable_group(rebalances=2), details=(detail(),)).details

    assert [each.generation for each in details.rebalances] == [2, 3]
    assert details.shown_from_ms == START_MS
    assert details.omitted == ()


def test_memberships_are_grouped_by_client_and_the_main_initiator_is_first() -> None:
    (details,) = report(unstable_group(), details=(detail(),)).details

    assert [(each.name, each.rebalances_started) for each in details.clients] == [
        ("worker-7 at /10.0.0.1", 2),
        ("worker-1 at /10.0.0.1", 0),
    ]
    assert [each.member_id for each in details.clients[0].memberships] == [
        "worker-7-1",
        "worker-7-2",
    ]


def test_lag_is_the_sum_of_its_changes_at_the_end_of_each_step() -> None:
    (details,) = report(unstable_group(), details=(detail(),)).details

    points = [((each.at_ms - START_MS) // 1000, each.records, each.seconds) for each in details.lag]
    assert points == [(60, 10, 1.5), (300, 100, None), (360, 40, 0.5)]


def test_omitted_rows_are_counted_and_the_time_range_starts_where_lists_are_complete() -> None:
    cut = detail(
        rebalances=(rebalance(7200), rebalance(3600)),
        memberships=(membership("worker-7", 0),),
        memberships_total=900,
        partitions_total=400,
        findings_total=41,
    )

    (details,) = report(unstable_group(rebalances=5000), details=(cut,)).details

    assert details.shown_from_ms == START_MS + HOUR_MS
    assert details.omitted == (
        "2 of 5,000 rebalances, the latest, are shown.",
        "1 of 900 memberships, the latest, are shown.",
        "1 of 41 findings, the most severe, are shown.",
        "3 of 400 partitions, those without an owner for longest, are shown.",
    )


def test_groups_that_are_not_listed_are_counted() -> None:
    shown = report(unstable_group(), group("b"), details=(detail(),), groups=12_000, undecodable=3)

    first, second, third = shown.omitted
    assert first.startswith("11,998 groups")
    assert second.startswith("Details are shown for the 1 most severe group.")
    assert third.startswith("3 records could not be decoded")
