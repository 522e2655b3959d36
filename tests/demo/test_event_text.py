"""The text of demo events, and the translation of the node's events."""

import json
from typing import Any

import pytest

from kohort.demo.demo_events import (
    ActionTaken,
    DemoStopping,
    GroupRebalanced,
    LoggedEvent,
    OrdersIngested,
    PartFailed,
    PartSkipped,
    ReportStarted,
    ReportWritten,
    SparkStarted,
    StaticMemberReturned,
)
from kohort.demo.event_bus import EventCounts
from kohort.demo.event_reader import translate_event
from kohort.demo.event_text import sentence_of, subject_of
from kohort.demo.schedule import Incident, generate_schedule
from kohort.events.parser import parse_event
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
    "initiator": PARTY,
    "client_reason": "too slow",
    "state_before": "Stable",
    "generation_before": 6,
    "generation": 7,
    "started_ms": 12_000,
    "participants": [{"party": PARTY}] * 3,
    "removals": [{"party": PARTY, "departure": "left"}],
}

REBALANCED = GroupRebalanced(
    group_id=GroupId("checkout"),
    generation=Generation(7),
    result="stable",
    trigger="member-left",
    initiator="checkout-3",
    reason="too slow",
    took_ms=Millis(500),
    members=3,
)


def translate(event: dict[str, Any]) -> GroupRebalanced | StaticMemberReturned | None:
    return translate_event(parse_event([json.dumps(event).encode()]))


def rebalanced(**other: Any) -> GroupRebalanced:
    """Return the event with other fields."""
    event = translate({**ENDED, **other})
    assert isinstance(event, GroupRebalanced)
    return event


def test_end_of_a_rebalance_is_translated() -> None:
    assert translate(ENDED) == REBALANCED


def test_rebalance_without_initiator_is_translated() -> None:
    assert rebalanced(initiator=None).initiator is None


def test_static_member_is_reported_only_without_a_rebalance() -> None:
    common = {"at": 1, "group_id": "billing", "party": PARTY}
    event = {**common, "event": "instance-replaced", "old_member_id": "before"}

    assert translate({**event, "is_quiet": True}) == StaticMemberReturned(
        group_id=GroupId("billing"), name="checkout-3"
    )
    assert translate({**event, "is_quiet": False}) is None
    assert translate({**common, "event": "member-joined"}) is None


@pytest.mark.parametrize(
    ("event", "subject", "sentence"),
    [
        (
            REBALANCED,
            "checkout",
            'checkout-3 left ("too slow"); generation 7 of 3 members, after 500 ms',
        ),
        (
            rebalanced(
                trigger="member-joined",
                client_reason="need to re-join with the given member-id: a-1",
                participants=[{"party": PARTY}],
            ),
            "checkout",
            "checkout-3 joined; generation 7 of 1 member, after 500 ms",
        ),
        (
            rebalanced(trigger="session-expired", client_reason=None, ending="empty"),
            "checkout",
            (
                "checkout-3 sent no heartbeat within its session timeout; "
                "no member was left, after 500 ms"
            ),
        ),
        (
            rebalanced(trigger="over-capacity", client_reason=None, ending="interrupted"),
            "checkout",
            (
                "the group had more members than allowed; "
                "interrupted by another rebalance, after 500 ms"
            ),
        ),
        (
            StaticMemberReturned(group_id=GroupId("billing"), name="billing-1"),
            "billing",
            "billing-1 rejoined without a rebalance",
        ),
        (
            SparkStarted(),
            "warehouse",
            "Spark has started and joins the group to store all orders as Parquet",
        ),
        (
            OrdersIngested(rows=1_200, bad=2, lag=30),
            "warehouse",
            "1,200 orders in the table, 2 invalid, lag 30",
        ),
        (OrdersIngested(rows=1, bad=0, lag=None), "warehouse", "1 order in the table"),
        (ReportStarted(), "forensics", "analysing all rebalances so far"),
        (
            ReportWritten(path="report.html", rebalances=12, findings=(), seconds=9.6),
            "forensics",
            "12 rebalances analysed in 10 s, 0 findings: report.html",
        ),
        (PartFailed(part="producer", why="no broker"), "producer", "failed: no broker"),
        (PartSkipped(what="the report", why="no node"), "demo", "the report is skipped: no node"),
        (DemoStopping(why="the time is over"), "demo", "shutting down: the time is over"),
    ],
)
def test_every_event_has_a_subject_and_a_sentence(
    event: LoggedEvent, subject: str, sentence: str
) -> None:
    assert subject_of(event) == subject
    assert sentence_of(event) == sentence


def test_every_scheduled_action_has_a_sentence() -> None:
    actions = list(generate_schedule(1, 5.0))

    sentences = {each.incident: sentence_of(ActionTaken(action=each)) for each in actions}

    assert set(sentences) == set(Incident)
    assert all(sentences.values())
    assert all(subject_of(ActionTaken(action=each)) == each.consumer for each in actions)


def test_rebalances_are_counted_by_trigger_and_group() -> None:
    counts = EventCounts()

    for event in (
        rebalanced(trigger="member-left"),
        rebalanced(trigger="member-joined", group_id="billing"),
        rebalanced(trigger="member-joined"),
        rebalanced(trigger="member-joined"),
        StaticMemberReturned(group_id=GroupId("billing"), name="billing-1"),
        PartFailed(part="node", why="disk full"),
    ):
        counts.add(event)

    assert list(counts.triggers.items()) == [
        ("member-joined", {"billing": 1, "checkout": 2}),
        ("member-left", {"checkout": 1}),
    ]
    assert counts.returned == 1
    assert [failure.part for failure in counts.failures] == ["node"]
