"""Deleting committed offsets, which a group may need more than its owner thinks."""

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
from tests.contract.conversations.offsets import fetching_all
from tests.contract.conversations.talking import Talk


def deleting(group: GroupId, *topics: tuple[Topic, tuple[int, ...]]) -> OffsetDeleteRequest:
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


def topics(talk: Talk) -> tuple[Topic, Uuid, Topic, Uuid]:
    t, u = talk.topic("t", 2), talk.topic("u")
    return t, talk.find_topic_id(t), u, talk.find_topic_id(u)


@conversation(vary=OffsetDeleteRequest)
def an_outsiders_offsets_are_deleted(talk: Talk) -> None:
    t, t_id, u, u_id = topics(talk)
    a = Member(talk, "a")
    both = together(offset_of(t, 0, topic_id=t_id), offset_of(t, 1, topic_id=t_id))
    a.commit(both, offset_of(u, topic_id=u_id))

    a.speaker.ask(deleting(a.group, (t, (0,)), (u, (0,))))
    a.speaker.ask(fetching_all(talk, a.group))


@conversation(vary=OffsetDeleteRequest)
def what_was_never_committed_is_deleted_as_well(talk: Talk) -> None:
    t, t_id, u, _ = topics(talk)
    a = Member(talk, "a")
    a.commit(offset_of(t, topic_id=t_id))

    a.speaker.ask(deleting(a.group, (t, (1,)), (u, (0,))))


@conversation(vary=OffsetDeleteRequest)
def what_does_not_exist_cannot_be_deleted(talk: Talk) -> None:
    t, t_id, *_ = topics(talk)
    a = Member(talk, "a")
    a.commit(offset_of(t, topic_id=t_id))

    a.speaker.ask(deleting(a.group, (Topic(talk.name("unknown")), (0,)), (t, (0, 99))))
    a.speaker.ask(deleting(a.group, (Topic(talk.name("unknown")), (0,))))


@conversation(vary=OffsetDeleteRequest)
def a_group_that_does_not_exist_has_nothing_to_delete(talk: Talk) -> None:
    t, *_ = topics(talk)
    a = talk.speaker("a")

    a.ask(deleting(talk.group(), (t, (0,))))
    a.ask(deleting(talk.group(), (Topic(talk.name("unknown")), (0,))))
    a.ask(deleting(talk.group()))


@conversation(vary=OffsetDeleteRequest)
def a_group_without_a_name_has_nothing_to_delete(talk: Talk) -> None:
    t, *_ = topics(talk)

    talk.speaker("a").ask(deleting(GroupId(""), (t, (0,))))


@conversation(vary=OffsetDeleteRequest)
def nothing_may_be_deleted(talk: Talk) -> None:
    t, t_id, *_ = topics(talk)
    a = Member(talk, "a")
    a.commit(offset_of(t, topic_id=t_id))

    a.speaker.ask(deleting(a.group))
    a.speaker.ask(deleting(a.group, (t, ())))


@conversation(vary=OffsetDeleteRequest)
def offsets_of_a_topic_that_is_read_stay(talk: Talk) -> None:
    t, t_id, u, u_id = topics(talk)
    a = Member(talk, "a", protocols=protocols(range=subscription(t)))
    gather([a])
    a.commit(offset_of(t, topic_id=t_id), offset_of(u, topic_id=u_id))

    a.speaker.ask(deleting(a.group, (t, (0,)), (u, (0,))))
    a.speaker.ask(fetching_all(talk, a.group))


@conversation(vary=OffsetDeleteRequest)
def any_topic_may_be_read_by_a_group_that_does_not_say(talk: Talk) -> None:
    t, t_id, *_ = topics(talk)
    a = Member(talk, "a", protocols=protocols(range=b"?"))
    gather([a])
    a.commit(offset_of(t, topic_id=t_id))

    a.speaker.ask(deleting(a.group, (t, (0,))))


@conversation(vary=OffsetDeleteRequest)
def a_group_that_rebalances_keeps_what_it_reads(talk: Talk) -> None:
    t, t_id, u, u_id = topics(talk)
    a = Member(talk, "a", protocols=protocols(range=subscription(t)))
    b = Member(talk, "b")
    gather([a])
    a.commit(offset_of(t, topic_id=t_id), offset_of(u, topic_id=u_id))
    b.send_join()
    talk.wait_for_group(a.group, state="PreparingRebalance", members=2)

    a.speaker.ask(deleting(a.group, (t, (0,)), (u, (0,))))


@conversation(vary=OffsetDeleteRequest)
def a_group_that_waits_for_its_assignment_keeps_what_it_reads(talk: Talk) -> None:
    t, _, u, _ = topics(talk)
    a = Member(talk, "a", protocols=protocols(range=subscription(t)))
    assemble([a])

    a.speaker.ask(deleting(a.group, (t, (0,)), (u, (0,))))


@conversation(vary=OffsetDeleteRequest)
def a_group_that_was_left_lets_go_of_everything(talk: Talk) -> None:
    t, t_id, *_ = topics(talk)
    a = Member(talk, "a", protocols=protocols(range=subscription(t)))
    gather([a])
    a.commit(offset_of(t, topic_id=t_id))
    a.leave()

    a.speaker.ask(deleting(a.group, (t, (0,))))
    a.speaker.ask(fetching_all(talk, a.group))


@conversation(vary=OffsetDeleteRequest)
def a_group_of_another_type_must_be_empty(talk: Talk) -> None:
    t, *_ = topics(talk)
    a = Member(talk, "a", protocol_type="connect", protocols=protocols(compatible=b"a"))
    a.join()

    a.speaker.ask(deleting(a.group, (t, (0,))))
