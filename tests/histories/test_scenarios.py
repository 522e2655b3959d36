"""Every scenario is generated, and only pathologies have the signature of a pathology."""

import pytest

from kohort.coordinator.events import Departure, Trigger
from tests.histories.conftest import GeneratedHistories
from tests.histories.signatures import SIGNATURES
from tools.histories.scenarios import SCENARIOS, Category

PATHOLOGIES = [
    scenario.name for scenario in SCENARIOS.values() if scenario.category is Category.PATHOLOGY
]
HARMLESS = [
    scenario.name
    for scenario in SCENARIOS.values()
    if scenario.category in (Category.ORDINARY, Category.LOOK_ALIKE) and not scenario.is_for_size
]

CANNOT_HAPPEN = {Trigger.JOIN_EXPIRED, Trigger.FORCED}
"""A member is new only until its first generation, and until then the group is already preparing
one: when its join expires it is removed, but no rebalance starts. Only tests force a rebalance."""


def test_one_group_plays_each_scenario(generated: GeneratedHistories) -> None:
    scenarios = sorted(history.scenario for history in generated.groups.values())

    assert scenarios == sorted(
        name for name, scenario in SCENARIOS.items() if not scenario.is_for_size
    )


def test_every_pathology_has_a_signature() -> None:
    assert sorted(SIGNATURES) == sorted(PATHOLOGIES)


@pytest.mark.parametrize("scenario", PATHOLOGIES)
def test_a_pathology_has_its_signature_and_a_label(
    generated: GeneratedHistories, scenario: str
) -> None:
    history = generated.of_scenario(scenario)

    assert SIGNATURES[scenario](history)
    assert {each["kind"] for each in history.pathologies} == {scenario}
    for each in history.pathologies:
        assert each["from_ms"] < each["to_ms"]
        assert each["how"]


@pytest.mark.parametrize("scenario", HARMLESS)
def test_a_harmless_scenario_has_no_signature_and_no_pathology_label(
    generated: GeneratedHistories, scenario: str
) -> None:
    history = generated.of_scenario(scenario)

    shown = [name for name, matches in SIGNATURES.items() if matches(history)]

    assert shown == []
    assert history.pathologies == []


def test_every_look_alike_names_the_pathology_that_it_resembles(
    generated: GeneratedHistories,
) -> None:
    for scenario in SCENARIOS.values():
        if scenario.category is Category.LOOK_ALIKE:
            (look_alike,) = generated.of_scenario(scenario.name).look_alikes
            assert look_alike["resembles"] in PATHOLOGIES


def test_every_possible_trigger_happens(generated: GeneratedHistories) -> None:
    happened = {
        Trigger(each["trigger"])
        for history in generated.groups.values()
        for each in history.rebalances
    }

    assert happened == set(Trigger) - CANNOT_HAPPEN


def test_every_kind_of_departure_happens(generated: GeneratedHistories) -> None:
    departures = {
        Departure(each["departure"])
        for history in generated.groups.values()
        for each in history.events_named("member-gone")
    }

    assert departures == set(Departure)


def test_the_subject_of_a_label_is_a_client_or_topic_of_its_group(
    generated: GeneratedHistories,
) -> None:
    for history in generated.groups.values():
        names = {
            member.client_id for _, formed in history.generations for member in formed.members
        } | {commit.topic for _, commit in history.commits}
        subjects = {each["subject"] for each in history.pathologies + history.look_alikes}

        assert subjects - {None} <= names, history.scenario


def test_no_two_groups_have_the_same_rebalances(generated: GeneratedHistories) -> None:
    rebalances = [
        tuple(
            (each["started_ms"], each["ended_ms"], each["trigger"]) for each in history.rebalances
        )
        for history in generated.groups.values()
        if history.rebalances
    ]

    assert len(set(rebalances)) == len(rebalances)
