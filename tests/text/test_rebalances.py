"""Rebalances, members and groups as text."""

import pytest

from kohort.coordinator.events import Departure, RebalanceResult, Trigger
from kohort.events.schema import EventMember
from kohort.text.rebalances import (
    DEPARTURES,
    ENDINGS,
    TRIGGERS,
    cause,
    client_reason,
    headline,
    member_name,
)
from kohort.types import InstanceId, MemberId


def test_every_value_that_a_node_writes_has_a_text() -> None:
    assert set(TRIGGERS) == set(Trigger)
    assert set(ENDINGS) == set(RebalanceResult)
    assert set(DEPARTURES) >= set(Departure)


def test_a_cause_names_the_member_if_it_is_known() -> None:
    assert cause("member-left") == "a member left"
    assert cause("member-left", "checkout-3") == "checkout-3 left"
    assert cause("over-capacity", "checkout-3") == "the group had more members than allowed"
    assert cause("moon-rose") == "moon rose"


def test_a_reason_that_every_client_sends_is_left_out() -> None:
    assert client_reason("need to re-join with the given member-id: a-1") == ""
    assert client_reason(None) == ""
    assert client_reason("scaled up") == "scaled up"


def test_a_member_has_the_most_stable_of_its_names() -> None:
    party = EventMember(
        member_id=MemberId("a-1"),
        instance_id=InstanceId("rack-2"),
        client_id="a",
        client_host="/10.0.0.1",
    )

    assert member_name(party) == "rack-2"


@pytest.mark.parametrize(
    ("groups", "critical", "warnings", "text"),
    [
        (0, 0, 0, "No groups"),
        (1, 0, 0, "1 group: healthy"),
        (2, 0, 0, "2 groups: all healthy"),
        (2, 1, 0, "2 groups: 1 critical"),
        (3, 2, 1, "3 groups: 2 critical, 1 warning"),
        (1_000, 0, 2, "1,000 groups: 2 warnings"),
    ],
)
def test_the_headline_counts_the_groups_that_need_attention(
    groups: int, critical: int, warnings: int, text: str
) -> None:
    assert headline(groups=groups, critical=critical, warnings=warnings) == text
