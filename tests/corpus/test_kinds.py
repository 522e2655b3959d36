"""Every kind of history is there, shows what it is about, and nothing else does."""

import pytest

from kohort.coordinator.notes import Departure, Trigger
from kohort.corpus.kinds import KINDS, Sort
from tests.corpus.conftest import Corpus
from tests.corpus.marks import MARKS

PATHOLOGIES = [kind.name for kind in KINDS.values() if kind.sort is Sort.PATHOLOGY]
INNOCENT = [
    kind.name
    for kind in KINDS.values()
    if kind.sort in (Sort.ORDINARY, Sort.LOOK_ALIKE) and not kind.is_for_size
]

CANNOT_HAPPEN = {Trigger.JOIN_EXPIRED}
"""A member is new only until its first generation is formed, and till then the group prepares one:
when its patience ends it is out, but nothing begins with that."""


def test_there_is_one_group_of_every_kind(corpus: Corpus) -> None:
    kinds = sorted(history.kind for history in corpus.histories.values())

    assert kinds == sorted(name for name, kind in KINDS.items() if not kind.is_for_size)


def test_every_pathology_has_a_mark_of_its_own() -> None:
    assert sorted(MARKS) == sorted(PATHOLOGIES)


@pytest.mark.parametrize("kind", PATHOLOGIES)
def test_a_pathology_shows_and_is_in_the_truth(corpus: Corpus, kind: str) -> None:
    history = corpus.of_kind(kind)

    assert MARKS[kind](history)
    assert {each["kind"] for each in history.pathologies} == {kind}
    for each in history.pathologies:
        assert each["from_ms"] < each["to_ms"]
        assert each["how"]


@pytest.mark.parametrize("kind", INNOCENT)
def test_an_innocent_history_has_no_mark_and_no_pathology(corpus: Corpus, kind: str) -> None:
    history = corpus.of_kind(kind)

    shown = [name for name, mark in MARKS.items() if mark(history)]

    assert shown == []
    assert history.pathologies == []


def test_every_look_alike_says_what_it_resembles(corpus: Corpus) -> None:
    for kind in KINDS.values():
        if kind.sort is Sort.LOOK_ALIKE:
            (look_alike,) = corpus.of_kind(kind.name).look_alikes
            assert look_alike["resembles"] in PATHOLOGIES


def test_every_trigger_happens_but_the_one_that_cannot(corpus: Corpus) -> None:
    happened = {
        Trigger(each["trigger"])
        for history in corpus.histories.values()
        for each in history.rebalances
    }

    assert happened == set(Trigger) - CANNOT_HAPPEN


def test_memberships_end_in_every_way_there_is(corpus: Corpus) -> None:
    departures = {
        Departure(each["departure"])
        for history in corpus.histories.values()
        for each in history.named("member-gone")
    }

    assert departures == set(Departure)


def test_the_subject_of_a_pathology_is_a_client_or_a_topic_of_its_group(corpus: Corpus) -> None:
    for history in corpus.histories.values():
        names = {
            member.client_id for _, formed in history.generations for member in formed.members
        } | {commit.topic for _, commit in history.commits}
        subjects = {each["subject"] for each in history.pathologies + history.look_alikes}

        assert subjects - {None} <= names, history.kind


def test_two_groups_of_one_kind_differ_in_their_course(corpus: Corpus) -> None:
    courses = [
        tuple(
            (each["started_ms"], each["ended_ms"], each["trigger"]) for each in history.rebalances
        )
        for history in corpus.histories.values()
        if history.rebalances
    ]

    assert len(set(courses)) == len(courses)
