"""News in words, and what of the node's events is news."""

from typing import Any

import pytest

from kohort.coordinator.notes import Trigger
from kohort.demo.listening import read_event
from kohort.demo.news import (
    Acted,
    Died,
    Ending,
    Explained,
    Explaining,
    Ingested,
    LeftOut,
    Line,
    Rebalanced,
    Returned,
    SparkReady,
)
from kohort.demo.schedule import Scene, perform
from kohort.demo.tally import Tally
from kohort.demo.words import TRIGGERS, sentence_of, subject_of
from kohort.types import Generation, GroupId, Millis

PARTY = {
    "member_id": "checkout-3-a5b8",
    "instance_id": None,
    "client_id": "checkout-3",
    "client_host": "/127.0.0.1",
}

ENDED: dict[str, Any] = {
    "event": "rebalance-ended",
    "at": 12_500,
    "group_id": "checkout",
    "ending": "stable",
    "trigger": "member-left",
    "culprit": PARTY,
    "client_reason": "too slow",
    "generation": 7,
    "started_ms": 12_000,
    "participants": [{}, {}, {}],
    "removals": [{"party": PARTY, "departure": "left"}],
}

REBALANCED = Rebalanced(
    group_id=GroupId("checkout"),
    generation=Generation(7),
    ending="stable",
    trigger="member-left",
    culprit="checkout-3",
    reason="too slow",
    took_ms=Millis(500),
    members=3,
)


def rebalanced(**other: Any) -> Rebalanced:
    """The same with other fields."""
    news = read_event({**ENDED, **other})
    assert isinstance(news, Rebalanced)
    return news


def test_the_end_of_a_rebalance_is_news() -> None:
    assert read_event(ENDED) == REBALANCED


def test_a_rebalance_that_nobody_began_has_no_culprit() -> None:
    assert rebalanced(culprit=None).culprit is None


def test_only_a_quiet_return_is_news() -> None:
    event = {"event": "instance-replaced", "group_id": "billing", "party": PARTY}

    assert read_event({**event, "is_quiet": True}) == Returned(
        group_id=GroupId("billing"), name="checkout-3"
    )
    assert read_event({**event, "is_quiet": False}) is None
    assert read_event({"event": "member-joined", "group_id": "billing"}) is None


@pytest.mark.parametrize(
    ("news", "subject", "sentence"),
    [
        (
            REBALANCED,
            "checkout",
            'checkout-3 left ("too slow"); generation 7 of 3 members, after 0.5 s',
        ),
        (
            rebalanced(trigger="member-joined", client_reason="an id", participants=[{}]),
            "checkout",
            "checkout-3 joined; generation 7 of 1 member, after 0.5 s",
        ),
        (
            rebalanced(trigger="session-expired", client_reason=None, ending="empty"),
            "checkout",
            "checkout-3 was not heard of any more; nobody is left, after 0.5 s",
        ),
        (
            rebalanced(trigger="over-capacity", client_reason=None, ending="interrupted"),
            "checkout",
            "it has too many members; interrupted by the next rebalance, after 0.5 s",
        ),
        (
            Returned(group_id=GroupId("billing"), name="billing-1"),
            "billing",
            "billing-1 is back in its place, and nobody had to rebalance",
        ),
        (
            SparkReady(),
            "warehouse",
            "Spark has started, and joins to keep all orders as Parquet",
        ),
        (
            Ingested(rows=1_200, bad=2, lag=30),
            "warehouse",
            "1,200 orders in the table, 2 bad ones aside, lag 30",
        ),
        (Ingested(rows=1, bad=0, lag=None), "warehouse", "1 order in the table"),
        (Explaining(), "forensics", "begins to explain what has happened so far"),
        (
            Explained(path="report.html", rebalances=12, findings=(), seconds=9.6),
            "forensics",
            "12 rebalances explained in 10 s, 0 findings: report.html",
        ),
        (Died(part="shop front", why="no reason"), "shop front", "has died: no reason"),
        (LeftOut(what="the report", why="of this"), "demo", "the report is left out: of this"),
        (Ending(why="the time is over"), "demo", "ends, for the time is over"),
    ],
)
def test_news_are_told_in_one_sentence(news: Line, subject: str, sentence: str) -> None:
    assert subject_of(news) == subject
    assert sentence_of(news) == sentence


def test_every_trigger_has_words() -> None:
    assert set(TRIGGERS) == set(Trigger)


def test_everything_a_program_does_has_words() -> None:
    acts = list(perform(1, 5.0))

    sentences = {act.scene: sentence_of(Acted(act=act)) for act in acts}

    assert set(sentences) == set(Scene)
    assert all(sentences.values())
    assert all(subject_of(Acted(act=act)) == act.name for act in acts)


def test_rebalances_are_counted_by_trigger_and_group() -> None:
    tally = Tally()

    for news in (
        rebalanced(trigger="member-left"),
        rebalanced(trigger="member-joined", group_id="billing"),
        rebalanced(trigger="member-joined"),
        rebalanced(trigger="member-joined"),
        Returned(group_id=GroupId("billing"), name="billing-1"),
        Died(part="node", why="of age"),
    ):
        tally.note(news)

    assert list(tally.triggers.items()) == [
        ("member-joined", {"billing": 1, "checkout": 2}),
        ("member-left", {"checkout": 1}),
    ]
    assert tally.returned == 1
    assert [died.part for died in tally.died] == ["node"]
