"""OffsetDelete, which is refused for topics that the group is subscribed to."""

from kohort.types import GroupId, Partition, Topic, Uuid
from kohort.wire.api.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tests.contract.conversations.conversation import conversation
from tests.contract.conversations.members import (
    Member,
    assemble,
    gather,
    offset_of,
    protocols,
    subscription,
    together,
)
from tests.contract.conversations.offsets import offset_fetch_all_request
from tests.contract.conversations.session import Session


def delete_request(group: GroupId, *topics: tuple[Topic, tuple[int, ...]]) -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        group_id=group,
        topics=tuple(
            OffsetDeleteRequestTopic(
                name=name,
                partitions=tuple(
                    OffsetDeleteRequestPartition(partition_index=Partition(each))
                    for each in partitions
                ),
            )
            for name, partitions in topics
        ),
    )


def topics(session: Session) -> tuple[Topic, Uuid, Topic, Uuid]:
    t, u = session.topic("t", 2), session.topic("u")
    return t, session.find_topic_id(t), u, session.find_topic_id(u)


@conversation(vary=OffsetDeleteRequest)
def offsets_committed_from_outside_are_deleted(session: Session) -> None:
    t, t_id, u, u_id = topics(session)
    a = Member(session, "a")
    both = together(offset_of(t, 0, topic_id=t_id), offset_of(t, 1, topic_id=t_id))
    a.commit(both, offset_of(u, topic_id=u_id))

    a.client.ask(delete_request(a.group, (t, (0,)), (u, (0,))))
    a.client.ask(offset_fetch_all_request(session, a.group))


@conversation(vary=OffsetDeleteRequest)
def deleting_offsets_that_were_never_committed_succeeds(session: Session) -> None:
    t, t_id, u, _ = topics(session)
    a = Member(session, "a")
    a.commit(offset_of(t, topic_id=t_id))

    a.client.ask(delete_request(a.group, (t, (1,)), (u, (0,))))


@conversation(vary=OffsetDeleteRequest)
def unknown_resources_cannot_be_deleted(session: Session) -> None:
    t, t_id, *_ = topics(session)
    a = Member(session, "a")
    a.commit(offset_of(t, topic_id=t_id))

    a.client.ask(delete_request(a.group, (Topic(session.name("unknown")), (0,)), (t, (0, 99))))
    a.client.ask(delete_request(a.group, (Topic(session.name("unknown")), (0,))))


@conversation(vary=OffsetDeleteRequest)
def deleting_offsets_of_an_unknown_group_is_refused(session: Session) -> None:
    t, *_ = topics(session)
    a = session.client("a")

    a.ask(delete_request(session.group(), (t, (0,))))
    a.ask(delete_request(session.group(), (Topic(session.name("unknown")), (0,))))
    a.ask(delete_request(session.group()))


@conversation(vary=OffsetDeleteRequest)
def deleting_offsets_of_the_unnamed_group_is_refused(session: Session) -> None:
    t, *_ = topics(session)

    session.client("a").ask(delete_request(GroupId(""), (t, (0,))))


@conversation(vary=OffsetDeleteRequest)
def an_empty_delete_is_allowed(session: Session) -> None:
    t, t_id, *_ = topics(session)
    a = Member(session, "a")
    a.commit(offset_of(t, topic_id=t_id))

    a.client.ask(delete_request(a.group))
    a.client.ask(delete_request(a.group, (t, ())))


@conversation(vary=OffsetDeleteRequest)
def offsets_of_a_subscribed_topic_cannot_be_deleted(session: Session) -> None:
    t, t_id, u, u_id = topics(session)
    a = Member(session, "a", protocols=protocols(range=subscription(t)))
    gather([a])
    a.commit(offset_of(t, topic_id=t_id), offset_of(u, topic_id=u_id))

    a.client.ask(delete_request(a.group, (t, (0,)), (u, (0,))))
    a.client.ask(offset_fetch_all_request(session, a.group))


@conversation(vary=OffsetDeleteRequest)
def a_group_with_an_unreadable_subscription_is_subscribed_to_every_topic(session: Session) -> None:
    t, t_id, *_ = topics(session)
    a = Member(session, "a", protocols=protocols(range=b"?"))
    gather([a])
    a.commit(offset_of(t, topic_id=t_id))

    a.client.ask(delete_request(a.group, (t, (0,))))


@conversation(vary=OffsetDeleteRequest)
def offsets_of_subscribed_topics_cannot_be_deleted_during_a_rebalance(session: Session) -> None:
    t, t_id, u, u_id = topics(session)
    a = Member(session, "a", protocols=protocols(range=subscription(t)))
    b = Member(session, "b")
    gather([a])
    a.commit(offset_of(t, topic_id=t_id), offset_of(u, topic_id=u_id))
    b.send_join()
    session.wait_for_group(a.group, state="PreparingRebalance", members=2)

    a.client.ask(delete_request(a.group, (t, (0,)), (u, (0,))))


@conversation(vary=OffsetDeleteRequest)
def offsets_of_subscribed_topics_cannot_be_deleted_in_a_completing_group(session: Session) -> None:
    t, _, u, _ = topics(session)
    a = Member(session, "a", protocols=protocols(range=subscription(t)))
    assemble([a])

    a.client.ask(delete_request(a.group, (t, (0,)), (u, (0,))))


@conversation(vary=OffsetDeleteRequest)
def all_offsets_of_an_empty_group_can_be_deleted(session: Session) -> None:
    t, t_id, *_ = topics(session)
    a = Member(session, "a", protocols=protocols(range=subscription(t)))
    gather([a])
    a.commit(offset_of(t, topic_id=t_id))
    a.leave()

    a.client.ask(delete_request(a.group, (t, (0,))))
    a.client.ask(offset_fetch_all_request(session, a.group))


@conversation(vary=OffsetDeleteRequest)
def a_group_of_another_type_must_be_empty(session: Session) -> None:
    t, *_ = topics(session)
    a = Member(session, "a", protocol_type="connect", protocols=protocols(compatible=b"a"))
    a.join()

    a.client.ask(delete_request(a.group, (t, (0,))))
