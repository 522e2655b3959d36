"""Responses and replies of the fast paths are those of the plain paths."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.coordinator.commands import Heartbeat, Ticket
from kohort.node.request import PreparedResponse
from kohort.types import Generation, GroupId, MemberId
from kohort.wire.api.k08_offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kohort.wire.api.k12_heartbeat import HeartbeatRequest, HeartbeatResponse
from tests.node.broker_harness import BrokerHarness, PendingResponse, ReplyCollector
from tests.node.group_setup import AT_ONCE, join_alone
from tests.wire.strategies import values


@st.composite
def responses(draw: st.DrawFn) -> tuple[object, int]:
    message, version = draw(
        st.tuples(st.just(HeartbeatResponse), st.integers(0, 4))
        | st.tuples(st.just(OffsetCommitResponse), st.integers(2, 10))
    )
    return draw(values(message, version)), version


@given(responses(), st.integers(-(2**31), 2**31 - 1))
def test_a_prepared_response_has_the_bytes_and_the_error_of_its_message(
    case: tuple[object, int], correlation_id: int
) -> None:
    response, version = case
    is_heartbeat = isinstance(response, HeartbeatResponse)
    body = HeartbeatRequest() if is_heartbeat else OffsetCommitRequest()
    plain, prepared = (PendingResponse(body, version, "c").request for _ in range(2))
    for request in (plain, prepared):
        request.header = replace(request.header, correlation_id=correlation_id)

    plain.answer(response)
    prepared.answer(PreparedResponse(response, version))

    assert (prepared.payload, prepared.error) == (plain.payload, plain.error)


@pytest.mark.parametrize("member_id", ["", "foreign"])
@pytest.mark.parametrize("generation", [-1, 0, 1, 2])
@pytest.mark.parametrize("group", ["g", "unknown"])
def test_a_heartbeat_that_is_answered_now_gets_the_reply_that_a_ticket_gets(
    tmp_path: Path, member_id: str, generation: int, group: str
) -> None:
    harness = BrokerHarness(tmp_path, AT_ONCE)
    member = join_alone(harness, "g")
    inbox, groups = ReplyCollector(), harness.broker.groups
    command = Heartbeat(
        ticket=Ticket(0),
        group_id=GroupId(group),
        member_id=MemberId(member_id) if member_id else member.member_id,
        generation=Generation(generation),
    )

    now = groups.answer_now(command, harness.now)
    groups.submit(replace(command, ticket=groups.open(inbox)), harness.now)

    (later,) = inbox.replies
    assert replace(later, ticket=now.ticket) == now
    harness.close()
