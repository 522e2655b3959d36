"""What a report says in words is true of its figures, for many groups, for one and for none."""

import pytest

from kohort.pipeline.forensics.report import sentences
from kohort.pipeline.forensics.report.material import Found, Starter, Summary
from tests.pipeline.forensics.report.samples import (
    HOUR_MS,
    NOTHING,
    finding,
    group,
    overview,
    party,
    restless,
)

WARNED = (Found(finding="eager-protocol-cost", severity="warning"),)


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([], "There are no groups in these tables."),
        ([group()], "The one group here is quiet."),
        ([restless()], "The one group here needs you now."),
        ([group(findings=WARNED)], "The one group here deserves a look."),
        ([group("a"), group("b")], "All 2 groups are quiet."),
        ([restless(), group("b")], "1 of 2 groups needs you now."),
        (
            [restless(), restless("b"), group("c", findings=WARNED)],
            "2 of 3 groups need you now, and 1 more deserves a look.",
        ),
        (
            [group("b"), group("c", findings=WARNED)],
            "Nothing is critical; 1 of 2 groups deserves a look.",
        ),
    ],
)
def test_the_headline_counts_who_is_in_need(groups: list[Summary], words: str) -> None:
    assert sentences.headline(groups, len(groups)) == words


def test_the_worst_group_is_told_with_who_started_it_and_the_cost() -> None:
    said = sentences.worst([restless()], 4 * HOUR_MS)

    assert said == (
        "Worst is billing: 37 rebalances in 4 h, 36 of them started by worker-7 at /10.0.0.1; "
        "1 h of partition-time without an owner."
    )


def test_nobody_is_called_the_worst_among_quiet_groups() -> None:
    assert sentences.worst([group()], HOUR_MS) == ""
    assert sentences.worst([], 0) == ""


def test_whoever_does_not_stand_out_is_not_blamed() -> None:
    starters = tuple(
        Starter(party=party(name), trigger="member-joined", rebalances=2, ownerless_ms=0)
        for name in ("a", "b", "c")
    )
    shared = restless(starters=starters, starters_total=19, rebalances=37)

    said = sentences.answers(shared, [], 4 * HOUR_MS)

    assert sentences.find_starter(shared) is None
    assert said.who == (
        "Nobody in particular: 19 programs began rebalances, none of them more than 2."
    )


def test_the_four_questions_are_answered_for_a_restless_group() -> None:
    said = sentences.answers(restless(), [finding()], 4 * HOUR_MS)

    assert said.why == (
        "37 rebalances in 4 h, 9.2 an hour. They began because a member was not heard of within "
        "its session timeout (36); a new member joined (1)."
    )
    assert said.who == (
        "worker-7 at /10.0.0.1 began 36 of 37, mostly by falling silent for longer than its "
        "session timeout. Next is worker-1 at /10.0.0.1, with 1."
    )
    assert said.cost == (
        "1 h of partition-time without an owner (2.1 % of it), 2.5 % of its time spent "
        "rebalancing, 96 partitions moved, 40 needlessly and 1,204 records read again."
    )
    assert said.change == (
        "session.timeout.ms=45000, against rebalance storm: up to 1 h of partition-time saved."
    )


def test_the_four_questions_are_answered_for_a_quiet_group() -> None:
    said = sentences.answers(group(), [], HOUR_MS)

    assert (said.why, said.who) == ("It did not rebalance in this time.", "Nobody.")
    assert (said.cost, said.change) == ("Nothing.", "Nothing, as far as rebalances go.")


def test_a_group_of_offsets_only_is_told_as_what_it_is() -> None:
    offsets = group(state=None, members=0, partitions=0, known_ms=0)

    assert "no members" in sentences.answers(offsets, [], HOUR_MS).why
    assert sentences.about(offsets) == "Offsets without members. 7 records behind at the end."


def test_a_notice_is_advice_only_where_nothing_graver_is_found() -> None:
    notice = finding(finding="deploy-in-a-row", severity="notice", setting="group.instance.id")

    both = sentences.answers(restless(), [finding(), notice], HOUR_MS).change
    alone = sentences.answers(restless(), [notice], HOUR_MS).change

    assert "group.instance.id" not in both
    assert alone.startswith("group.instance.id, against deploy in a row")


def test_an_advice_without_a_setting_is_given_in_its_own_words() -> None:
    advised = finding(setting=None, would_have_saved_ms=None, advice="See who it is. Stop it.")

    assert sentences.answers(restless(), [advised], HOUR_MS).change == (
        "See who it is, against rebalance storm."
    )


def test_many_rebalances_without_a_pattern_are_not_called_nothing() -> None:
    unexplained = restless(rebalances=60, findings=())

    assert sentences.answers(unexplained, [], HOUR_MS).change.startswith("No known pattern")


def test_the_report_says_what_only_events_can_know() -> None:
    inferred = restless(exact=0, confidence=0.84)

    without = sentences.knowledge(overview(inferred, events=0))
    mixed = sentences.knowledge(overview(inferred, restless("b")))
    exact = sentences.knowledge(overview(restless()))

    assert "no events of a Kohort node" in without
    assert "84 %" in without
    assert sentences.ONLY_EVENTS_KNOW in without
    assert "37 of 74 rebalances itself" in mixed
    assert "84 %" in mixed
    assert sentences.ONLY_EVENTS_KNOW not in exact
    assert "no rebalance at all" in sentences.knowledge(NOTHING)


def test_a_cost_that_is_estimated_is_told_as_an_estimate() -> None:
    inferred = restless(exact=0, confidence=0.84)

    assert sentences.answers(inferred, [], HOUR_MS).cost.startswith("About 1 h of partition-time")
    assert sentences.known(inferred) == (
        "Causes are inferred, with 84 % confidence; times of costs are estimates."
    )
