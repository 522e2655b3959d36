"""From rows to a report: what is shown, in which order, and what is said of the rest."""

from kohort.pipeline.forensics.report.material import Found
from tests.pipeline.forensics.report.samples import (
    DAWN_MS,
    HOUR_MS,
    detail,
    group,
    life,
    rebalance,
    report,
    restless,
)


def test_groups_are_ranked_and_those_with_details_are_in_full() -> None:
    told = report(group("calm"), restless(), details=(detail(),))

    assert [each.group_id for each in told.groups] == ["billing", "calm"]
    assert [each.is_in_full for each in told.groups] == [True, False]
    assert [each.group_id for each in told.stories] == ["billing"]


def test_a_kind_of_finding_is_listed_once_by_its_gravest() -> None:
    found = (
        Found(finding="crash-loop", severity="critical"),
        Found(finding="crash-loop", severity="notice"),
        Found(finding="a-notice", severity="notice"),
        Found(finding="zombie-commits", severity="warning"),
    )

    (line,) = report(group(findings=found)).groups

    assert line.findings == ("crash-loop", "zombie-commits", "a-notice")


def test_the_worst_status_of_any_partition_is_the_groups() -> None:
    (line,) = report(group(statuses=(("ok", 11), ("rewound", 1), ("warning", 3)))).groups

    assert line.lag_status == "rewound"


def test_lag_that_nobody_knows_is_not_called_ok() -> None:
    told = report(group(lag_records=None), group("offsets", statuses=(), lag_records=None))

    assert [each.lag_status for each in told.groups] == [None, None]
    assert any("nothing is known of lag" in each for each in told.left_out)
    assert not any("nothing is known of lag" in each for each in report(group()).left_out)


def test_rebalances_are_told_in_their_order() -> None:
    (story,) = report(restless(rebalances=2), details=(detail(),)).stories

    assert [each.generation for each in story.rebalances] == [2, 3]
    assert story.shown_from_ms == DAWN_MS
    assert story.left_out == ()


def test_lives_of_one_program_are_together_and_the_culprit_is_first() -> None:
    (story,) = report(restless(), details=(detail(),)).stories

    assert [(each.name, each.began) for each in story.programs] == [
        ("worker-7 at /10.0.0.1", 2),
        ("worker-1 at /10.0.0.1", 0),
    ]
    assert [each.member_id for each in story.programs[0].lives] == ["worker-7-1", "worker-7-2"]


def test_lag_is_the_sum_of_its_changes_at_the_end_of_each_step() -> None:
    (story,) = report(restless(), details=(detail(),)).stories

    points = [((each.at_ms - DAWN_MS) // 1000, each.records, each.seconds) for each in story.lag]
    assert points == [(60, 10, 1.5), (300, 100, None), (360, 40, 0.5)]


def test_what_was_cut_is_told_and_the_time_begins_where_lists_are_whole() -> None:
    cut = detail(
        rebalances=(rebalance(7200), rebalance(3600)),
        lives=(life("worker-7", 0),),
        lives_total=900,
        places_total=400,
        findings_total=41,
    )

    (story,) = report(restless(rebalances=5000), details=(cut,)).stories

    assert story.shown_from_ms == DAWN_MS + HOUR_MS
    assert story.left_out == (
        "2 of 5,000 rebalances, the latest, are shown.",
        "1 of 900 memberships, the latest, are shown.",
        "1 of 41 findings, the gravest, are shown.",
        "3 of 400 partitions, those without an owner for longest, are shown.",
    )


def test_groups_that_are_not_here_are_counted() -> None:
    told = report(restless(), group("b"), details=(detail(),), groups=12_000, undecodable=3)

    first, second, third = told.left_out
    assert first.startswith("11,998 groups")
    assert second.startswith("The 1 group with the most pain is shown in full")
    assert third.startswith("3 records could not be decoded")
