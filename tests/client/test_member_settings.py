"""What a member can be made of, and what is refused before it begins."""

from dataclasses import replace

import pytest

from kohort.client.assignors import (
    COOPERATIVE_STICKY,
    RANGE,
    STICKY,
    Assignor,
    CooperativeSticky,
    RebalanceProtocol,
)
from kohort.client.errors import BadOption, WrongUse
from kohort.client.member.effects import Failed
from kohort.client.member.events import Subscribed
from kohort.client.member.machine import Member, MemberSettings, MemberState
from kohort.client.member.settings import choose_protocol
from kohort.types import GroupId, Millis, Topic

GOOD = MemberSettings(group_id=GroupId("g"), assignors=(RANGE,))


class OnlyCooperative(CooperativeSticky):
    protocols = frozenset({RebalanceProtocol.COOPERATIVE})


@pytest.mark.parametrize(
    ("assignors", "protocol"),
    [
        ((RANGE,), RebalanceProtocol.EAGER),
        ((STICKY, RANGE), RebalanceProtocol.EAGER),
        ((COOPERATIVE_STICKY,), RebalanceProtocol.COOPERATIVE),
        # The way from one to the other: nobody cooperates while somebody cannot.
        ((RANGE, COOPERATIVE_STICKY), RebalanceProtocol.EAGER),
    ],
)
def test_the_most_advanced_protocol_that_all_assignors_share_is_chosen(
    assignors: tuple[Assignor, ...], protocol: RebalanceProtocol
) -> None:
    assert choose_protocol(assignors) is protocol


def test_assignors_without_a_common_protocol_are_refused() -> None:
    with pytest.raises(BadOption, match="no way to rebalance in common"):
        Member(replace(GOOD, assignors=(RANGE, OnlyCooperative())), lambda: 0.5)


def test_two_assignors_of_one_name_are_refused() -> None:
    with pytest.raises(BadOption, match="two assignors have one name"):
        Member(replace(GOOD, assignors=(RANGE, RANGE)), lambda: 0.5)


def test_a_heartbeat_that_cannot_keep_the_session_is_refused() -> None:
    slow = replace(GOOD, heartbeat_interval_ms=Millis(6_000), session_timeout_ms=Millis(6_000))

    with pytest.raises(BadOption, match=r"heartbeat\.interval\.ms"):
        Member(slow, lambda: 0.5)


def test_without_an_assignor_a_member_cannot_subscribe() -> None:
    member = Member(replace(GOOD, assignors=()), lambda: 0.5)

    (said,) = member.handle(Subscribed(topics=frozenset({Topic("t")})), Millis(0))

    assert isinstance(said, Failed)
    assert isinstance(said.error, WrongUse)
    assert member.state is MemberState.UNJOINED
