"""Deleting groups, which must be empty for it."""

from kohort.types import GroupId
from kohort.wire.api.k15_describe_groups import DescribeGroupsRequest
from kohort.wire.api.k42_delete_groups import DeleteGroupsRequest
from tests.contract.conversations.conversation import conversation
from tests.contract.conversations.members import Member, assemble, gather, offset_of
from tests.contract.conversations.offsets import fetching_all
from tests.contract.conversations.talking import Talk


def deleting(*groups: GroupId) -> DeleteGroupsRequest:
    return DeleteGroupsRequest(groups_names=groups)


@conversation(vary=DeleteGroupsRequest)
def a_group_that_only_has_offsets_is_deleted_with_them(talk: Talk) -> None:
    t = talk.topic()
    a = Member(talk, "a")
    a.commit(offset_of(t, topic_id=talk.find_topic_id(t)))

    a.speaker.ask(deleting(a.group))
    a.speaker.ask(fetching_all(talk, a.group))
    a.speaker.ask(deleting(a.group))


@conversation(vary=DeleteGroupsRequest)
def a_group_that_was_left_is_deleted_and_starts_anew(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    gather([a])
    a.leave()

    a.speaker.ask(deleting(a.group))
    a.speaker.ask(DescribeGroupsRequest(groups=(a.group,)))
    b.join()


@conversation(vary=DeleteGroupsRequest)
def a_group_with_members_stays(talk: Talk) -> None:
    a = Member(talk, "a")
    gather([a])

    a.speaker.ask(deleting(a.group))
    a.beat()


@conversation(vary=DeleteGroupsRequest)
def a_group_that_rebalances_stays(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    assemble([a])
    a.speaker.ask(deleting(a.group))

    b.send_join()
    talk.wait_for_group(a.group, state="PreparingRebalance", members=2)
    a.speaker.ask(deleting(a.group))


@conversation(vary=DeleteGroupsRequest)
def a_group_with_promised_members_only_is_deleted(talk: Talk) -> None:
    a = Member(talk, "a")
    a.ask_join()

    a.speaker.ask(deleting(a.group))
    a.ask_join()


@conversation(vary=DeleteGroupsRequest)
def many_groups_are_answered_each_for_itself(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b", group=talk.group("left"))
    gather([a])
    gather([b])
    b.leave()

    a.speaker.ask(deleting(talk.group("unknown"), b.group, a.group, GroupId("")))
    a.speaker.ask(deleting())


@conversation(vary=DeleteGroupsRequest)
def a_group_named_twice_is_deleted_once(talk: Talk) -> None:
    a = Member(talk, "a")
    gather([a])
    a.leave()

    a.speaker.ask(deleting(a.group, a.group))
