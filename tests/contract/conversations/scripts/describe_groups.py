"""DescribeGroups, in every group state."""

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
from tests.contract.conversations.session import Session


def describe_request(*groups: GroupId, with_operations: bool = False) -> DescribeGroupsRequest:
    return DescribeGroupsRequest(groups=groups, include_authorized_operations=with_operations)


@conversation(vary=DescribeGroupsRequest)
def a_group_that_does_not_exist_is_dead_or_not_found(session: Session) -> None:
    session.client("a").ask(describe_request(session.group()))


@conversation(vary=DescribeGroupsRequest)
def a_stable_group_shows_its_members_and_their_assignments(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b", instance="i")
    gather([a, b])

    a.client.ask(describe_request(a.group))


@conversation(vary=DescribeGroupsRequest)
def a_preparing_group_shows_its_members_without_assignments(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b")
    gather([a])
    b.send_join()
    session.wait_for_group(a.group, state="PreparingRebalance", members=2)

    a.client.ask(describe_request(a.group))


@conversation(vary=DescribeGroupsRequest)
def a_completing_group_shows_its_members_without_assignments(session: Session) -> None:
    a = Member(session, "a")
    assemble([a])

    a.client.ask(describe_request(a.group))


@conversation(vary=DescribeGroupsRequest)
def members_keep_their_assignments_until_new_ones_exist(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b")
    gather([a])
    rejoin(a, [b])
    a.client.ask(describe_request(a.group))

    a.send_join(protocols=protocols(range=subscription(note="changed")))
    session.wait_for_group(a.group, state="PreparingRebalance")
    b.client.ask(describe_request(a.group))


@conversation(vary=DescribeGroupsRequest)
def a_pending_member_is_not_shown(session: Session) -> None:
    a = Member(session, "a")
    a.ask_join()
    session.wait_for_group(a.group, state="Empty")

    a.client.ask(describe_request(a.group))


@conversation(vary=DescribeGroupsRequest)
def a_group_without_members_is_empty(session: Session) -> None:
    a = Member(session, "a")
    gather([a])
    a.leave()

    a.client.ask(describe_request(a.group))


@conversation(vary=DescribeGroupsRequest)
def a_group_that_only_has_offsets_is_empty(session: Session) -> None:
    t = session.topic()
    a = Member(session, "a")
    a.commit(offset_of(t, topic_id=session.find_topic_id(t)))

    a.client.ask(describe_request(a.group))


@conversation(vary=DescribeGroupsRequest)
def the_protocol_type_of_a_group_is_shown(session: Session) -> None:
    a = Member(session, "a", protocol_type="connect", protocols=protocols(compatible=b"a"))
    a.join()
    a.sync({a.member_id: b"work"}, protocol_type="connect", protocol_name="compatible")

    a.client.ask(describe_request(a.group))


@conversation(vary=DescribeGroupsRequest)
def many_groups_are_described_in_the_order_they_are_named(session: Session) -> None:
    a = Member(session, "a")
    gather([a])

    a.client.ask(describe_request(session.group("x"), a.group, GroupId(""), session.group("y")))
    a.client.ask(describe_request())


@conversation(vary=DescribeGroupsRequest)
def a_group_named_twice_is_described(session: Session) -> None:
    a = Member(session, "a")
    gather([a])

    a.client.ask(describe_request(a.group, a.group))


@conversation(vary=DescribeGroupsRequest, since=3)
def authorized_operations_are_returned_on_request(session: Session) -> None:
    a = Member(session, "a")
    gather([a])

    a.client.ask(describe_request(a.group, session.group("unknown"), with_operations=True))


@conversation(vary=DescribeGroupsRequest)
def a_client_without_a_client_id_is_shown_without_one(session: Session) -> None:
    a = Member(session, "a", client_id=None)
    gather([a])

    a.client.ask(describe_request(a.group))
