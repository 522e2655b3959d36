"""The sentences of a report, for many groups, for one and for none."""

import pytest

from kohort.pipeline.forensics.report import sentences
from kohort.pipeline.forensics.report.report_model import FindingKind, GroupSummary, Initiator
from tests.pipeline.forensics.report.samples import (
    HOUR_MS,
    NOTHING,
    finding,
    group,
    identity,
    overview,
    unstable_group,
)

WARNED = (FindingKind(finding="eager-protocol-cost", severity="warning"),)


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([], "No groups"),
        ([unstable_group(), group("b")], "2 groups: 1 critical"),
        ([group("b"), group("c", findings=WARNED)], "2 groups: 1 warning"),
        ([group("b"), group("c")], "2 groups: all healthy"),
    ],
)
def test_the_headline_counts_groups_by_status(groups: list[GroupSummary], words: str) -> None:
    assert sentences.headline(groups, len(groups)) == words


def test_the_worst_group_is_described_with_its_initiator_and_cost() -> None:
    parts = sentences.worst([unstable_group()], 4 * HOUR_MS)

    assert parts == (
        "Most severe: billing: 37 rebalances in 4 h, 36 of them started by worker-7 at /10.0.0.1; "
        "1 h of partition time without owner."
    )


def test_there_is_no_worst_group_if_all_are_healthy() -> None:
    assert sentences.worst([group()], HOUR_MS) == ""
    assert sentences.worst([], 0) == ""


def test_an_initiator_is_named_only_if_it_stands_out() -> None:
    initiators = tuple(
        Initiator(identity=identity(name), trigger="member-joined", rebalances=2, ownerless_ms=0)
        for name in ("a", "b", "c")
    )
    shared = unstable_group(initiators=initiators, initiators_total=19, rebalances=37)

    parts = sentences.answers(shared, [], 4 * HOUR_MS)

    assert sentences.main_initiator(shared) is None
    assert parts.who == (
        "No single client: 19 clients started rebalances, none of them more than 2."
    )


def test_the_four_questions_are_answered_for_an_unstable_group() -> None:
    parts = sentences.answers(unstable_group(), [finding()], 4 * HOUR_MS)

    assert parts.why == (
        "37 rebalances in 4 h, 9.2 per hour. Causes: a member sent no heartbeat within "
        "its session timeout (36); a new member joined (1)."
    )
    assert parts.who == (
        "worker-7 at /10.0.0.1 started 36 of 37, mostly because it sent no heartbeat within "
        "its session timeout. Next is worker-1 at /10.0.0.1, with 1."
    )
    assert parts.cost == (
        "1 h of partition time without owner (2.1 %), 2.5 % of the time spent rebalancing, "
        "96 partitions reassigned (40 needlessly) and 1,204 records reprocessed."
    )
    assert parts.change == (
        "For rebalance storm: Look at it first. Setting: session.timeout.ms=45000. "
        "It would have saved up to 1 h of partition time."
    )


def test_the_four_questions_are_answered_for_a_healthy_group() -> None:
    parts = sentences.answers(group(), [], HOUR_MS)

    assert (parts.why, parts.who) == (
        "It did not rebalance in this time range.",
        "No member started one.",
    )
    assert (parts.cost, parts.change) == ("No cost.", "Nothing.")


def test_a_group_with_offsets_only_is_described() -> None:
    offsets = group(state=None, members=0, partitions=0, known_ms=0)

    assert "no members" in sentences.answers(offsets, [], HOUR_MS).why
    assert sentences.about(offsets) == (
        "Committed offsets without members. Lag at the end: 7 records."
    )


def test_a_notice_is_advice_only_without_more_severe_findings() -> None:
    notice = finding(finding="rolling-restart", severity="notice", setting="group.instance.id")

    both = sentences.answers(unstable_group(), [finding(), notice], HOUR_MS).change
    alone = sentences.answers(unstable_group(), [notice], HOUR_MS).change

    assert "group.instance.id" not in both
    assert alone.startswith("For rolling restart: ")
    assert "Setting: group.instance.id." in alone


def test_advice_without_a_setting_uses_its_first_sentence() -> None:
    advised = finding(setting=None, would_have_saved_ms=None, advice="See who it is. Stop it.")

    assert sentences.answers(unstable_group(), [advised], HOUR_MS).change == (
        "For rebalance storm: See who it is."
    )


def test_many_rebalances_without_a_finding_have_advice() -> None:
    unexplained = unstable_group(rebalances=60, findings=())

    assert sentences.answers(unexplained, [], HOUR_MS).change.startswith("No known pattern")


def test_the_report_says_what_only_events_record() -> None:
    inferred = unstable_group(exact=0, confidence=0.84)

    without = sentences.knowledge(overview(inferred, events=0))
    mixed = sentences.knowledge(overview(inferred, unstable_group("b")))
    exact = sentences.knowledge(overview(unstable_group()))

    assert "no Kohort events" in without
    assert "84 %" in without
    assert sentences.ONLY_IN_EVENTS in without
    assert "37 of 74 rebalances" in mixed
    assert "84 %" in mixed
    assert sentences.ONLY_IN_EVENTS not in exact
    assert "no rebalances" in sentences.knowledge(NOTHING)


def test_an_estimated_cost_is_marked_as_an_estimate() -> None:
    inferred = unstable_group(exact=0, confidence=0.84)

    assert sentences.answers(inferred, [], HOUR_MS).cost.startswith("About 1 h of partition time")
    assert sentences.known(inferred) == (
        "Causes are inferred, with 84 % confidence; durations are estimates."
    )
