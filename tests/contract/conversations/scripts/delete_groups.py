"""DeleteGroups, which requires empty groups."""

from kohort.types import GroupId
from kohort.wire.api.k15_describe_groups import DescribeGroupsRequest
from kohort.wire.api.k42_delete_groups import DeleteGroupsRequest
from tests.contract.conversations.conversation import conversation
from tests.contract.conversations.members import Member, assemble, gather, offset_of
from tests.contract.conversations.offsets import offset_fetch_all_request
from tests.contract.conversations.session import Session


def delete_request(*groups: GroupId) -> DeleteGroupsRequest:
    return DeleteGroupsRequest(groups_names=groups)


@conversation(vary=DeleteGroupsRequest)
def a_group_that_only_has_offsets_is_deleted_with_them(session: Session) -> None:
    t = session.topic()
    a = Member(session, "a")
    a.commit(offset_of(t, topic_id=session.find_topic_id(t)))

    a.client.ask(delete_request(a.group))
    a.client.ask(offset_fetch_all_request(session, a.group))
    a.client.ask(delete_request(a.group))


@conversation(vary=DeleteGroupsRequest)
def an_empty_group_is_deleted_and_restarts_at_generation_1(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b")
    gather([a])
    a.leave()

    a.client.ask(delete_request(a.group))
    a.client.ask(DescribeGroupsRequest(groups=(a.group,)))
    b.join()


@conversation(vary=DeleteGroupsRequest)
def a_group_with_members_cannot_be_deleted(session: Session) -> None:
    a = Member(session, "a")
    gather([a])

    a.client.ask(delete_request(a.group))
    a.beat()


@conversation(vary=DeleteGroupsRequest)
def a_rebalancing_group_cannot_be_deleted(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b")
    assemble([a])
    a.client.ask(delete_request(a.group))

    b.send_join()
    session.wait_for_group(a.group, state="PreparingRebalance", members=2)
    a.client.ask(delete_request(a.group))


@conversation(vary=DeleteGroupsRequest)
def a_group_with_pending_members_only_is_deleted(session: Session) -> None:
    a = Member(session, "a")
    a.ask_join()

    a.client.ask(delete_request(a.group))
    a.ask_join()


@conversation(vary=DeleteGroupsRequest)
def each_group_has_its_own_error_code(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b", group=session.group("left"))
    gather([a])
    gather([b])
    b.leave()

    a.client.ask(delete_request(session.group("unknown"), b.group, a.group, GroupId("")))
    a.client.ask(delete_request())


@conversation(vary=DeleteGroupsRequest)
def a_group_named_twice_is_deleted_once(session: Session) -> None:
    a = Member(session, "a")
    gather([a])
    a.leave()

    a.client.ask(delete_request(a.group, a.group))
