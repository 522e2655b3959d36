"""What a leader makes of its group: who wants what, who gets what, and what an assignor may not."""

from collections.abc import Iterable, Mapping, Sequence

import pytest

from kohort.client.assignors import COOPERATIVE_STICKY, RANGE, RebalanceProtocol, Subscriber
from kohort.client.errors import BadAssignment
from kohort.client.member.effects import Effect, Failed, Send
from kohort.client.member.events import Answered, Polled, Subscribed, TopicsSeen
from kohort.client.member.leading import deal, read_assignment, read_subscribers, topics_of
from kohort.client.member.machine import Member, MemberSettings, MemberState
from kohort.client.topic_partition import TopicPartition
from kohort.types import Generation, GroupId, InstanceId, MemberId, Millis, Partition, Topic
from kohort.wire.api.k11_join_group import JoinGroupResponse, JoinGroupResponseMember
from tests.client.answering import answer
from tests.client.spelling import partitions, subscription
from tests.client.words import Words

M1, M2 = MemberId("m1"), MemberId("m2")
T1, T2 = Topic("t1"), Topic("t2")
COUNTS = {T1: 2, T2: 1}
EAGER, COOPERATIVE = RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE
BOTH = [
    Subscriber(member_id=M1, topics=frozenset({T1}), owned=tuple(partitions("t1:0,1"))),
    Subscriber(member_id=M2, topics=frozenset({T1, T2})),
]


class Whimsical:
    """Says what it was told to say."""

    name = "whimsical"
    protocols = frozenset(RebalanceProtocol)

    def __init__(self, dealt: object = None, user_data: bytes | Exception | None = None) -> None:
        self._dealt = dealt
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
        if isinstance(self._dealt, Exception):
            raise self._dealt
        return self._dealt  # type: ignore[return-value]  # what it returns may be anything


def given(**dealt: str) -> Whimsical:
    return Whimsical({MemberId(who): sorted(partitions(what)) for who, what in dealt.items()})


def test_everyone_is_handed_a_share_also_who_gets_nothing() -> None:
    dealt = deal(given(m1="t1:0"), EAGER, COUNTS, BOTH)

    assert read_assignment(dealt[M1]) == partitions("t1:0")
    assert read_assignment(dealt[M2]) == frozenset()


@pytest.mark.parametrize(
    ("assignor", "blame"),
    [
        (given(m1="t1:0", m3="t1:1"), "'m3', which is not in the group"),
        (given(m1="t2:0"), "t2-0 to 'm1', which has not subscribed to it"),
        (given(m2="t1:2"), "t1-2 to 'm2', but there is no such partition"),
        (given(m1="t1:0", m2="t1:0"), "t1-0 to 'm2' and to 'm1'"),
        (Whimsical(ZeroDivisionError("no members")), "ZeroDivisionError"),
        (Whimsical(None), "failed"),
        (Whimsical({M1: [7]}), "failed"),
    ],
)
def test_an_assignor_that_goes_too_far_is_stopped(assignor: Whimsical, blame: str) -> None:
    with pytest.raises(BadAssignment, match=blame):
        deal(assignor, EAGER, COUNTS, BOTH)


def test_what_a_member_owns_may_not_be_given_to_another_by_a_cooperative_assignor() -> None:
    hasty = given(m1="t1:0", m2="t1:1")

    with pytest.raises(BadAssignment, match="gave t1-1 to one member while another owns it"):
        deal(hasty, COOPERATIVE, COUNTS, BOTH)

    assert deal(hasty, EAGER, COUNTS, BOTH)
    assert deal(given(m1="t1:0", m2="t2:0"), COOPERATIVE, COUNTS, BOTH)


def test_our_own_cooperative_assignor_knows_claims_that_are_stale() -> None:
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

    dealt = deal(COOPERATIVE_STICKY, COOPERATIVE, {T1: 2}, stale)

    assert read_assignment(dealt[M1]) < partitions("t1:0,1")


def test_subscriptions_are_read_with_all_they_tell() -> None:
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


def test_a_subscription_that_cannot_be_read_names_its_member() -> None:
    told = JoinGroupResponseMember(member_id=M2, group_instance_id=None, metadata=b"?")

    with pytest.raises(BadAssignment, match="subscription of member 'm2'"):
        read_subscribers([told])


@pytest.mark.parametrize("data", [b"", b"?", b"\x00\x00\x00\x00\x00\x05"])
def test_an_assignment_that_cannot_be_read_is_refused(data: bytes) -> None:
    with pytest.raises(BadAssignment, match="leader"):
        read_assignment(data)


# Through a member


def test_a_failing_assignor_fails_its_member_and_nothing_else() -> None:
    member = Member(settings_of(Whimsical(KeyError("weights"))), lambda: 0.5)
    lead(member)

    said = member.handle(TopicsSeen(partitions={T1: 1}), Millis(0))

    (failed,) = [each for each in said if isinstance(each, Failed)]
    assert "KeyError('weights')" in str(failed.error)
    assert isinstance(failed.error.__cause__, KeyError)
    assert member.state is MemberState.UNJOINED


def test_an_assignor_that_cannot_say_what_it_had_fails_its_member() -> None:
    member = Member(settings_of(Whimsical(user_data=ValueError("lost it"))), lambda: 0.5)

    said = lead(member)

    (failed,) = [each for each in said if isinstance(each, Failed)]
    assert isinstance(failed.error, BadAssignment)
    assert member.state is MemberState.UNJOINED


def settings_of(assignor: Whimsical) -> MemberSettings:
    return MemberSettings(group_id=GroupId("g"), assignors=(RANGE, assignor))


def lead(member: Member) -> list[Effect]:
    """As far as it comes without knowing how many partitions there are."""
    said = member.handle(Subscribed(topics=frozenset({T1})), Millis(0))
    (find,) = member.handle(Polled(), Millis(0))
    assert isinstance(find, Send)
    found = answer(find.body, Words.of("b1"))
    joins = member.handle(Answered(number=find.number, body=found), Millis(0))
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
        if isinstance(join, Send):
            said += member.handle(Answered(number=join.number, body=joined), Millis(0))
    return said
