"""The leader's assignment: subscriptions, checks of assignors, errors."""

from collections.abc import Iterable, Mapping, Sequence

import pytest

from kohort.assignors import COOPERATIVE_STICKY, RANGE, RebalanceProtocol, Subscriber
from kohort.client.errors import InvalidAssignmentError
from kohort.client.member.effects import MemberEffect, MemberFailed, SendRequest
from kohort.client.member.leader_assignment import (
    compute_assignments,
    read_assignment,
    read_subscribers,
    topics_of,
)
from kohort.client.member.member import Member, MemberSettings, MemberState
from kohort.client.member.member_events import Polled, ResponseReceived, Subscribed, TopicsUpdated
from kohort.types import (
    Generation,
    GroupId,
    InstanceId,
    MemberId,
    Millis,
    Partition,
    Topic,
    TopicPartition,
)
from kohort.wire.api.k11_join_group import JoinGroupResponse, JoinGroupResponseMember
from tests.client.trace_line import TraceWords
from tests.client.trace_responses import response
from tests.client.trace_syntax import partitions, subscription

M1, M2 = MemberId("m1"), MemberId("m2")
T1, T2 = Topic("t1"), Topic("t2")
COUNTS = {T1: 2, T2: 1}
EAGER, COOPERATIVE = RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE
BOTH = [
    Subscriber(member_id=M1, topics=frozenset({T1}), owned=tuple(partitions("t1:0,1"))),
    Subscriber(member_id=M2, topics=frozenset({T1, T2})),
]


class FixedAssignor:
    """Returns or raises a given result."""

    name = "whimsical"
    protocols = frozenset(RebalanceProtocol)

    def __init__(
        self, assignments: object = None, user_data: bytes | Exception | None = None
    ) -> None:
        self._assignments = assignments
        self._user_data = user_data

    def user_data(
        self, _assigned: Iterable[TopicPartition], _generation: Generation, /
    ) -> bytes | None:
        if isinstance(self._user_data, Exception):
            raise self._user_data
        return self._user_data

    def assign(
        self,
        partitions: Mapping[Topic, int],  # noqa: ARG002  # the protocol's names
        subscribers: Sequence[Subscriber],  # noqa: ARG002
    ) -> dict[MemberId, list[TopicPartition]]:
        if isinstance(self._assignments, Exception):
            raise self._assignments
        return self._assignments  # type: ignore[return-value]  # what it returns may be anything


def given(**assignments: str) -> FixedAssignor:
    return FixedAssignor(
        {MemberId(who): sorted(partitions(what)) for who, what in assignments.items()}
    )


def test_every_member_gets_an_assignment_even_if_empty() -> None:
    assignments = compute_assignments(given(m1="t1:0"), EAGER, COUNTS, BOTH)

    assert read_assignment(assignments[M1]) == partitions("t1:0")
    assert read_assignment(assignments[M2]) == frozenset()


@pytest.mark.parametrize(
    ("assignor", "blame"),
    [
        (given(m1="t1:0", m3="t1:1"), "'m3', which is not a member of the group"),
        (given(m1="t2:0"), "t2-0 to 'm1', which has not subscribed to it"),
        (given(m2="t1:2"), "t1-2 to 'm2', but the partition does not exist"),
        (given(m1="t1:0", m2="t1:0"), "t1-0 to 'm2' and to 'm1'"),
        (FixedAssignor(ZeroDivisionError("no members")), "ZeroDivisionError"),
        (FixedAssignor(None), "failed"),
        (FixedAssignor({M1: [7]}), "failed"),
    ],
)
def test_an_invalid_result_of_an_assignor_is_rejected(assignor: FixedAssignor, blame: str) -> None:
    with pytest.raises(InvalidAssignmentError, match=blame):
        compute_assignments(assignor, EAGER, COUNTS, BOTH)


def test_a_cooperative_assignor_must_not_move_an_owned_partition() -> None:
    hasty = given(m1="t1:0", m2="t1:1")

    with pytest.raises(
        InvalidAssignmentError, match="assigned t1-1 while another member still owns it"
    ):
        compute_assignments(hasty, COOPERATIVE, COUNTS, BOTH)

    assert compute_assignments(hasty, EAGER, COUNTS, BOTH)
    assert compute_assignments(given(m1="t1:0", m2="t2:0"), COOPERATIVE, COUNTS, BOTH)


def test_cooperative_sticky_ignores_outdated_ownership() -> None:
    stale = [
        Subscriber(
            member_id=M1,
            topics=frozenset({T1}),
            owned=tuple(partitions("t1:0,1")),
            generation=Generation(3),
        ),
        Subscriber(
            member_id=M2,
            topics=frozenset({T1}),
            owned=tuple(partitions("t1:0,1")),
            generation=Generation(2),
        ),
    ]

    assignments = compute_assignments(COOPERATIVE_STICKY, COOPERATIVE, {T1: 2}, stale)

    assert read_assignment(assignments[M1]) < partitions("t1:0,1")


def test_subscriptions_are_decoded_with_all_fields() -> None:
    told = JoinGroupResponseMember(
        member_id=M1, group_instance_id=InstanceId("i1"), metadata=subscription("t1,t2+t1:0@3")
    )

    (subscriber,) = read_subscribers([told])

    assert subscriber == Subscriber(
        member_id=M1,
        instance_id=InstanceId("i1"),
        topics=frozenset({T1, T2}),
        owned=(TopicPartition(T1, Partition(0)),),
        generation=Generation(3),
    )
    assert topics_of([subscriber]) == {T1, T2}


def test_a_subscription_decode_error_names_the_member() -> None:
    told = JoinGroupResponseMember(member_id=M2, group_instance_id=None, metadata=b"?")

    with pytest.raises(InvalidAssignmentError, match="subscription of member 'm2'"):
        read_subscribers([told])


@pytest.mark.parametrize("data", [b"", b"?", b"\x00\x00\x00\x00\x00\x05"])
def test_an_undecodable_assignment_is_rejected(data: bytes) -> None:
    with pytest.raises(InvalidAssignmentError, match="leader"):
        read_assignment(data)


# Through a member


def test_a_failing_assignor_fails_its_member_and_nothing_else() -> None:
    member = Member(settings_of(FixedAssignor(KeyError("weights"))), lambda: 0.5)
    lead(member)

    said = member.handle(TopicsUpdated(partitions={T1: 1}), Millis(0))

    (failed,) = [each for each in said if isinstance(each, MemberFailed)]
    assert "KeyError('weights')" in str(failed.error)
    assert isinstance(failed.error.__cause__, KeyError)
    assert member.state is MemberState.UNJOINED


def test_an_error_in_user_data_fails_the_member() -> None:
    member = Member(settings_of(FixedAssignor(user_data=ValueError("lost it"))), lambda: 0.5)

    said = lead(member)

    (failed,) = [each for each in said if isinstance(each, MemberFailed)]
    assert isinstance(failed.error, InvalidAssignmentError)
    assert member.state is MemberState.UNJOINED


def settings_of(assignor: FixedAssignor) -> MemberSettings:
    return MemberSettings(group_id=GroupId("g"), assignors=(RANGE, assignor))


def lead(member: Member) -> list[MemberEffect]:
    """A leader that waits for metadata."""
    said = member.handle(Subscribed(topics=frozenset({T1})), Millis(0))
    (find,) = member.handle(Polled(), Millis(0))
    assert isinstance(find, SendRequest)
    found = response(find.body, TraceWords.of("b1"))
    joins = member.handle(ResponseReceived(request_id=find.request_id, body=found), Millis(0))
    said += joins
    joined = JoinGroupResponse(
        error_code=0,
        generation_id=Generation(1),
        protocol_type="consumer",
        protocol_name="whimsical",
        leader=M1,
        member_id=M1,
        members=(
            JoinGroupResponseMember(
                member_id=M1, group_instance_id=None, metadata=subscription("t1")
            ),
        ),
    )
    for join in joins:
        if isinstance(join, SendRequest):
            said += member.handle(
                ResponseReceived(request_id=join.request_id, body=joined), Millis(0)
            )
    return said
