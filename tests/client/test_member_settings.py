"""Settings of a member: protocol choice and rejected settings."""

from dataclasses import replace

import pytest

from kohort.assignors import (
    COOPERATIVE_STICKY,
    RANGE,
    STICKY,
    Assignor,
    CooperativeSticky,
    RebalanceProtocol,
)
from kohort.client.errors import ConfigurationError, IllegalStateError
from kohort.client.member.effects import MemberFailed
from kohort.client.member.member import Member, MemberSettings, MemberState
from kohort.client.member.member_events import Subscribed
from kohort.client.member.member_settings import choose_protocol
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
        # Migration: members stay eager while one of them supports only eager.
        ((RANGE, COOPERATIVE_STICKY), RebalanceProtocol.EAGER),
    ],
)
def test_the_most_advanced_common_protocol_is_chosen(
    assignors: tuple[Assignor, ...], protocol: RebalanceProtocol
) -> None:
    assert choose_protocol(assignors) is protocol


def test_assignors_without_a_common_protocol_are_rejected() -> None:
    with pytest.raises(ConfigurationError, match="no common rebalance protocol"):
        Member(replace(GOOD, assignors=(RANGE, OnlyCooperative())), lambda: 0.5)


def test_two_assignors_of_one_name_are_rejected() -> None:
    with pytest.raises(ConfigurationError, match="two assignors of one name"):
        Member(replace(GOOD, assignors=(RANGE, RANGE)), lambda: 0.5)


def test_a_heartbeat_interval_above_the_session_timeout_is_rejected() -> None:
    slow = replace(GOOD, heartbeat_interval_ms=Millis(6_000), session_timeout_ms=Millis(6_000))

    with pytest.raises(ConfigurationError, match=r"heartbeat\.interval\.ms"):
        Member(slow, lambda: 0.5)


def test_without_an_assignor_a_member_cannot_subscribe() -> None:
    member = Member(replace(GOOD, assignors=()), lambda: 0.5)

    (said,) = member.handle(Subscribed(topics=frozenset({Topic("t")})), Millis(0))

    assert isinstance(said, MemberFailed)
    assert isinstance(said.error, IllegalStateError)
    assert member.state is MemberState.UNJOINED
