"""Describing groups: what a tool sees of them, in every state."""

from kohort.types import GroupId
from kohort.wire.api.k15_describe_groups import DescribeGroupsRequest
from tests.contract.conversations.conversation import conversation
from tests.contract.conversations.members import (
    Member,
    assemble,
    gather,
    offset_of,
    protocols,
    rejoin,
    subscription,
)
from tests.contract.conversations.talking import Talk


def describing(*groups: GroupId, with_operations: bool = False) -> DescribeGroupsRequest:
    return DescribeGroupsRequest(groups=groups, include_authorized_operations=with_operations)


@conversation(vary=DescribeGroupsRequest)
def a_group_that_does_not_exist_is_dead_or_not_found(talk: Talk) -> None:
    talk.speaker("a").ask(describing(talk.group()))


@conversation(vary=DescribeGroupsRequest)
def a_stable_group_shows_its_members_and_their_shares(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b", instance="i")
    gather([a, b])

    a.speaker.ask(describing(a.group))


@conversation(vary=DescribeGroupsRequest)
def a_group_that_prepares_shows_its_members_alone(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    gather([a])
    b.send_join()
    talk.wait_for_group(a.group, state="PreparingRebalance", members=2)

    a.speaker.ask(describing(a.group))


@conversation(vary=DescribeGroupsRequest)
def a_group_that_waits_for_its_assignment_shows_its_members_alone(talk: Talk) -> None:
    a = Member(talk, "a")
    assemble([a])

    a.speaker.ask(describing(a.group))


@conversation(vary=DescribeGroupsRequest)
def members_keep_their_shares_until_there_are_others(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    gather([a])
    rejoin(a, [b])
    a.speaker.ask(describing(a.group))

    a.send_join(protocols=protocols(range=subscription(note="changed")))
    talk.wait_for_group(a.group, state="PreparingRebalance")
    b.speaker.ask(describing(a.group))


@conversation(vary=DescribeGroupsRequest)
def a_promised_member_is_not_shown(talk: Talk) -> None:
    a = Member(talk, "a")
    a.ask_join()
    talk.wait_for_group(a.group, state="Empty")

    a.speaker.ask(describing(a.group))


@conversation(vary=DescribeGroupsRequest)
def a_group_that_was_left_is_empty(talk: Talk) -> None:
    a = Member(talk, "a")
    gather([a])
    a.leave()

    a.speaker.ask(describing(a.group))


@conversation(vary=DescribeGroupsRequest)
def a_group_that_only_has_offsets_is_empty(talk: Talk) -> None:
    t = talk.topic()
    a = Member(talk, "a")
    a.commit(offset_of(t, topic_id=talk.find_topic_id(t)))

    a.speaker.ask(describing(a.group))


@conversation(vary=DescribeGroupsRequest)
def a_group_of_another_type_says_so(talk: Talk) -> None:
    a = Member(talk, "a", protocol_type="connect", protocols=protocols(compatible=b"a"))
    a.join()
    a.sync({a.member_id: b"work"}, protocol_type="connect", protocol_name="compatible")

    a.speaker.ask(describing(a.group))


@conversation(vary=DescribeGroupsRequest)
def many_groups_are_described_in_the_order_they_are_named(talk: Talk) -> None:
    a = Member(talk, "a")
    gather([a])

    a.speaker.ask(describing(talk.group("x"), a.group, GroupId(""), talk.group("y")))
    a.speaker.ask(describing())


@conversation(vary=DescribeGroupsRequest)
def a_group_named_twice_is_described(talk: Talk) -> None:
    a = Member(talk, "a")
    gather([a])

    a.speaker.ask(describing(a.group, a.group))


@conversation(vary=DescribeGroupsRequest, since=3)
def operations_are_told_to_who_asks(talk: Talk) -> None:
    a = Member(talk, "a")
    gather([a])

    a.speaker.ask(describing(a.group, talk.group("unknown"), with_operations=True))


@conversation(vary=DescribeGroupsRequest)
def a_client_without_a_name_is_shown_without_one(talk: Talk) -> None:
    a = Member(talk, "a", client_id=None)
    gather([a])

    a.speaker.ask(describing(a.group))
