"""OffsetFetch, of one group or many."""

from dataclasses import replace
from typing import Any

from kohort.types import ZERO_UUID, GroupId, MemberId, Millis, Partition, Topic, Uuid
from kohort.wire.api.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kohort.wire.api.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.contract.conversations.conversation import conversation
from tests.contract.conversations.members import UNKNOWN_MEMBER, Member, gather, offset_of
from tests.contract.conversations.offsets import (
    delete_unnamed_group,
    offset_fetch_all_request,
    offset_fetch_none_request,
    offset_fetch_request,
)
from tests.contract.conversations.session import Session

NOT_A_TOPIC = Uuid(b"not any topic id")


def committed(session: Session, group: GroupId | None = None) -> tuple[Member, Topic, Uuid]:
    """A group with committed offsets of two of three partitions."""
    t = session.topic(partitions=3)
    topic_id = session.find_topic_id(t)
    a = Member(session, "a", group=group)
    a.commit(
        offset_of(t, 0, 10, topic_id=topic_id, metadata="first", leader_epoch=0),
        offset_of(t, 1, 11, topic_id=topic_id),
    )
    return a, t, topic_id


@conversation(vary=OffsetFetchRequest)
def committed_offsets_are_returned(session: Session) -> None:
    a, t, topic_id = committed(session)

    a.client.ask(offset_fetch_request(session, a.group, t, topic_id, 0, 1, 2, 99, -1))


@conversation(vary=OffsetFetchRequest)
def an_unknown_group_has_no_committed_offsets(session: Session) -> None:
    t = session.topic()

    session.client("a").ask(
        offset_fetch_request(session, session.group(), t, session.find_topic_id(t), 0)
    )


@conversation(vary=OffsetFetchRequest)
def a_group_without_commits_has_no_committed_offsets(session: Session) -> None:
    t = session.topic()
    a = Member(session, "a")
    gather([a])

    a.client.ask(offset_fetch_request(session, a.group, t, session.find_topic_id(t), 0))


@conversation(vary=OffsetFetchRequest)
def an_unknown_topic_has_no_committed_offsets(session: Session) -> None:
    a, *_ = committed(session)

    a.client.ask(
        offset_fetch_request(session, a.group, Topic(session.name("unknown")), NOT_A_TOPIC, 0, 1)
    )
    a.client.ask(offset_fetch_request(session, a.group, Topic(""), ZERO_UUID, 0))


@conversation(vary=OffsetFetchRequest, since=5)
def a_leader_epoch_of_minus_1_is_returned_as_is(session: Session) -> None:
    t = session.topic()
    topic_id = session.find_topic_id(t)
    a = Member(session, "a")
    a.commit(offset_of(t, topic_id=topic_id, leader_epoch=7))

    because = "Kafka returns any committed leader epoch"
    with session.deviates(because, "*.committed_leader_epoch"):
        a.client.ask(offset_fetch_request(session, a.group, t, topic_id, 0))


@conversation(vary=OffsetFetchRequest, since=2)
def all_committed_offsets_are_returned(session: Session) -> None:
    a, *_ = committed(session)

    a.client.ask(offset_fetch_all_request(session, a.group))
    a.client.ask(offset_fetch_all_request(session, session.group("unknown")))


@conversation(vary=OffsetFetchRequest)
def an_empty_list_of_topics_returns_no_offsets(session: Session) -> None:
    a, *_ = committed(session)

    a.client.ask(offset_fetch_none_request(session, a.group))


@conversation(vary=OffsetFetchRequest)
def a_topic_without_partitions_is_returned_without_partitions(session: Session) -> None:
    a, t, topic_id = committed(session)
    a.client.ask(offset_fetch_request(session, a.group, t, topic_id))


@conversation(vary=OffsetFetchRequest)
def the_offsets_of_the_unnamed_group_are_returned(session: Session) -> None:
    a, t, topic_id = committed(session, GroupId(""))

    a.client.ask(offset_fetch_request(session, GroupId(""), t, topic_id, 0))
    delete_unnamed_group(session)


@conversation(vary=OffsetFetchRequest, since=7)
def stable_offsets_can_be_required(session: Session) -> None:
    a, t, topic_id = committed(session)

    a.client.ask(
        replace(offset_fetch_request(session, a.group, t, topic_id, 0, 2), require_stable=True)
    )
    a.client.ask(replace(offset_fetch_all_request(session, a.group), require_stable=True))
    a.client.ask(
        replace(offset_fetch_all_request(session, session.group("unknown")), require_stable=True)
    )


@conversation(vary=OffsetFetchRequest, since=8)
def offsets_of_many_groups_are_returned_at_once(session: Session) -> None:
    a, t, topic_id = committed(session)
    some = offset_fetch_request(session, a.group, t, topic_id, 0, 2).groups
    all_ = offset_fetch_all_request(session, a.group).groups
    unknown = offset_fetch_all_request(session, session.group("unknown")).groups

    a.client.ask(OffsetFetchRequest(groups=(*some, *unknown)))
    a.client.ask(OffsetFetchRequest(groups=(*unknown, *all_)))
    a.client.ask(OffsetFetchRequest(groups=()))


@conversation(vary=OffsetFetchRequest, since=9)
def a_member_can_send_its_member_id_and_epoch(session: Session) -> None:
    t = session.topic()
    topic_id = session.find_topic_id(t)
    a = Member(session, "a")
    gather([a])
    a.commit(offset_of(t, topic_id=topic_id))
    (group,) = offset_fetch_request(session, a.group, t, topic_id, 0).groups

    def ask(member_id: MemberId | None, epoch: int) -> None:
        as_member = replace(group, member_id=member_id, member_epoch=epoch)
        a.client.ask(OffsetFetchRequest(groups=(as_member,)))

    ask(a.member_id, a.generation)
    ask(a.member_id, a.generation + 1)
    ask(UNKNOWN_MEMBER, a.generation)
    ask(None, a.generation)
    ask(MemberId(""), -1)


@conversation(vary=OffsetFetchRequest, since=9)
def a_member_of_an_unknown_group_gets_no_offsets(session: Session) -> None:
    t = session.topic()
    (group,) = offset_fetch_request(session, session.group(), t, session.find_topic_id(t), 0).groups
    asked = replace(group, member_id=UNKNOWN_MEMBER, member_epoch=3)

    session.client("a").ask(OffsetFetchRequest(groups=(asked,)))


@conversation(vary=OffsetFetchRequest, since=10)
def known_and_unknown_topic_ids_are_answered_together(session: Session) -> None:
    a, t, topic_id = committed(session)
    (group,) = offset_fetch_request(session, a.group, t, topic_id, 0).groups
    strange = OffsetFetchRequestTopics(topic_id=NOT_A_TOPIC, partition_indexes=(Partition(0),))
    asked = OffsetFetchRequestGroup(group_id=a.group, topics=(strange, *(group.topics or ())))

    a.client.ask(OffsetFetchRequest(groups=(asked,)))


@conversation(vary=OffsetFetchRequest, since=2)
def the_offsets_of_a_deleted_topic_are_deleted(session: Session) -> None:
    a, t, _ = committed(session)
    session.query(DeleteTopicsRequest(topics=(DeleteTopicState(name=t),), timeout_ms=Millis(5000)))

    a.client.ask_until(offset_fetch_all_request(session, a.group), is_empty)


def is_empty(answer: Any) -> bool:
    return not answer.topics and not any(group.topics for group in answer.groups)
