"""OffsetCommit: from members, from outside of the group, and every error."""

from kohort.types import ZERO_UUID, Generation, GroupId, InstanceId, MemberId, Millis, Topic, Uuid
from kohort.wire.api.k08_offset_commit import OffsetCommitRequest
from kohort.wire.api.k15_describe_groups import DescribeGroupsRequest
from kohort.wire.api.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.contract.conversations.conversation import conversation
from tests.contract.conversations.members import (
    UNKNOWN_MEMBER,
    Member,
    assemble,
    gather,
    offset_of,
    together,
)
from tests.contract.conversations.offsets import (
    delete_unnamed_group,
    offset_fetch_all_request,
    offset_fetch_request,
)
from tests.contract.conversations.session import Session

NOT_A_TOPIC = Uuid(b"not any topic id")


def topic(session: Session, name: str = "t", partitions: int = 1) -> tuple[Topic, Uuid]:
    create_topic = session.topic(name, partitions)
    return create_topic, session.find_topic_id(create_topic)


# Outsiders


@conversation(vary=OffsetCommitRequest)
def a_commit_from_outside_creates_the_group(session: Session) -> None:
    t, topic_id = topic(session)
    a = Member(session, "a")

    a.commit(offset_of(t, 0, 42, topic_id=topic_id, metadata="note", leader_epoch=0))
    a.client.ask(offset_fetch_request(session, a.group, t, topic_id, 0))


@conversation(vary=OffsetCommitRequest)
def a_commit_from_outside_an_empty_group_succeeds(session: Session) -> None:
    t, topic_id = topic(session)
    a, outsider = Member(session, "a"), Member(session, "outsider")
    gather([a])
    a.leave()

    outsider.commit(offset_of(t, topic_id=topic_id))
    outsider.commit(offset_of(t, topic_id=topic_id), member_id=UNKNOWN_MEMBER)
    outsider.commit(offset_of(t, topic_id=topic_id), generation_id_or_member_epoch=Generation(1))


@conversation(vary=OffsetCommitRequest)
def a_commit_from_outside_a_group_with_members_is_refused(session: Session) -> None:
    t, topic_id = topic(session)
    a, outsider = Member(session, "a"), Member(session, "outsider")
    gather([a])

    outsider.commit(offset_of(t, topic_id=topic_id))
    outsider.commit(offset_of(t, topic_id=topic_id), member_id=UNKNOWN_MEMBER)
    outsider.commit(offset_of(t, topic_id=topic_id), member_id=a.member_id)


@conversation(vary=OffsetCommitRequest)
def a_commit_from_outside_a_completing_group_is_refused(session: Session) -> None:
    t, topic_id = topic(session)
    a, outsider = Member(session, "a"), Member(session, "outsider")
    assemble([a])

    outsider.commit(offset_of(t, topic_id=topic_id))


@conversation(vary=OffsetCommitRequest)
def a_commit_with_a_generation_for_an_unknown_group_is_refused(session: Session) -> None:
    t, topic_id = topic(session)
    a = Member(session, "a")

    a.commit(offset_of(t, topic_id=topic_id), generation_id_or_member_epoch=Generation(0))
    a.commit(
        offset_of(t, topic_id=topic_id),
        generation_id_or_member_epoch=Generation(3),
        member_id=UNKNOWN_MEMBER,
    )


@conversation(vary=OffsetCommitRequest)
def the_unnamed_group_can_have_offsets(session: Session) -> None:
    t, topic_id = topic(session)
    a = Member(session, "a")

    a.commit(offset_of(t, topic_id=topic_id), group_id=GroupId(""))
    delete_unnamed_group(session)


# Members


@conversation(vary=OffsetCommitRequest)
def a_member_of_a_stable_group_commits(session: Session) -> None:
    t, topic_id = topic(session)
    a = Member(session, "a")
    gather([a])

    a.commit(offset_of(t, 0, 42, topic_id=topic_id, metadata="note"))
    a.client.ask(offset_fetch_request(session, a.group, t, topic_id, 0))


@conversation(vary=OffsetCommitRequest)
def a_member_commits_while_the_group_rebalances(session: Session) -> None:
    t, topic_id = topic(session)
    a, b = Member(session, "a"), Member(session, "b")
    gather([a])
    b.send_join()
    session.wait_for_group(a.group, state="PreparingRebalance", members=2)

    a.commit(offset_of(t, topic_id=topic_id))


@conversation(vary=OffsetCommitRequest)
def a_member_of_a_completing_group_cannot_commit(session: Session) -> None:
    t, topic_id = topic(session)
    a = Member(session, "a")
    assemble([a])

    a.commit(offset_of(t, topic_id=topic_id))
    a.commit(offset_of(t, topic_id=topic_id), generation_id_or_member_epoch=Generation(0))


@conversation(vary=OffsetCommitRequest)
def another_generation_is_refused(session: Session) -> None:
    t, topic_id = topic(session)
    a = Member(session, "a")
    gather([a])

    a.commit(offset_of(t, topic_id=topic_id), generation_id_or_member_epoch=Generation(0))
    a.commit(offset_of(t, topic_id=topic_id), generation_id_or_member_epoch=Generation(2))
    a.commit(offset_of(t, topic_id=topic_id), generation_id_or_member_epoch=Generation(-2))


@conversation(vary=OffsetCommitRequest)
def the_member_id_is_checked_before_the_generation(session: Session) -> None:
    t, topic_id = topic(session)
    a = Member(session, "a")
    gather([a])

    a.commit(offset_of(t, topic_id=topic_id), member_id=UNKNOWN_MEMBER)
    a.commit(offset_of(t, topic_id=topic_id), member_id=MemberId(""))


@conversation(vary=OffsetCommitRequest, since=7)
def a_static_member_commits_with_its_instance_id(session: Session) -> None:
    t, topic_id = topic(session)
    a, b = Member(session, "a", instance="i"), Member(session, "b", instance="j")
    gather([a, b])

    a.commit(offset_of(t, topic_id=topic_id))
    a.commit(offset_of(t, topic_id=topic_id), group_instance_id=InstanceId("j"))
    a.commit(offset_of(t, topic_id=topic_id), group_instance_id=InstanceId("unheard of"))
    a.commit(offset_of(t, topic_id=topic_id), member_id=UNKNOWN_MEMBER)
    a.commit(
        offset_of(t, topic_id=topic_id),
        member_id=MemberId(""),
        generation_id_or_member_epoch=Generation(-1),
    )


@conversation(vary=OffsetCommitRequest)
def a_member_commits_repeatedly_during_rebalances(session: Session) -> None:
    t, topic_id = topic(session)
    a, b = Member(session, "a"), Member(session, "b")
    gather([a])

    def commit(offset: int) -> None:
        a.commit(offset_of(t, 0, offset, topic_id=topic_id, metadata="note"))

    for offset in range(4):
        commit(offset)
    a.client.ask(offset_fetch_request(session, a.group, t, topic_id, 0))
    b.send_join()
    session.wait_for_group(a.group, state="PreparingRebalance", members=2)
    commit(4)
    a.join()
    b.hear_join()
    commit(5)
    a.sync()
    for offset in range(6, 9):
        commit(offset)
    a.client.ask(offset_fetch_request(session, a.group, t, topic_id, 0))
    a.leave()
    commit(9)
    a.client.ask(offset_fetch_request(session, a.group, t, topic_id, 0))


@conversation(vary=OffsetCommitRequest)
def a_topic_deleted_between_two_commits_is_unknown(session: Session) -> None:
    t, topic_id = topic(session)
    a = Member(session, "a")
    for offset in range(3):
        a.commit(offset_of(t, 0, offset, topic_id=topic_id))
    session.query(DeleteTopicsRequest(topics=(DeleteTopicState(name=t),), timeout_ms=Millis(5000)))

    a.client.ask_until(
        a.committing(offset_of(t, 0, 3, topic_id=topic_id)),
        lambda answer: answer.topics[0].partitions[0].error_code != 0,
    )


# Offsets


@conversation(vary=OffsetCommitRequest)
def offsets_of_unknown_partitions_cannot_be_committed(session: Session) -> None:
    t, topic_id = topic(session)
    a = Member(session, "a")

    a.commit(
        together(*(offset_of(t, each, topic_id=topic_id) for each in (0, 1, -1))),
        offset_of(Topic(session.name("unknown")), topic_id=NOT_A_TOPIC),
    )
    a.commit(offset_of(Topic(session.name("unknown")), topic_id=NOT_A_TOPIC))


@conversation(vary=OffsetCommitRequest)
def unknown_topics_are_reported_before_unknown_members(session: Session) -> None:
    a = Member(session, "a")

    a.commit(
        offset_of(Topic(session.name("unknown")), topic_id=NOT_A_TOPIC),
        member_id=UNKNOWN_MEMBER,
        generation_id_or_member_epoch=Generation(5),
    )
    a.commit(offset_of(Topic(""), topic_id=ZERO_UUID), group_id=GroupId(""))


@conversation(vary=OffsetCommitRequest)
def an_empty_commit_is_allowed(session: Session) -> None:
    a = Member(session, "a")

    a.commit()
    a.commit(member_id=UNKNOWN_MEMBER, generation_id_or_member_epoch=Generation(5))


@conversation(vary=OffsetCommitRequest)
def metadata_can_be_null(session: Session) -> None:
    t, topic_id = topic(session)
    a = Member(session, "a")

    a.commit(offset_of(t, topic_id=topic_id, metadata=None))
    a.client.ask(offset_fetch_request(session, a.group, t, topic_id, 0))


@conversation(vary=OffsetCommitRequest)
def metadata_can_be_as_long_as_the_limit(session: Session) -> None:
    t, topic_id = topic(session, partitions=3)
    a = Member(session, "a")

    a.commit(
        together(
            offset_of(t, 0, topic_id=topic_id, metadata="m" * 4096),
            offset_of(t, 1, topic_id=topic_id, metadata="m" * 4097),
            offset_of(t, 2, topic_id=topic_id, metadata="m"),
        )
    )
    a.client.ask(offset_fetch_request(session, a.group, t, topic_id, 1, 2))


@conversation(vary=OffsetCommitRequest, profile="strict")
def metadata_length_is_counted_in_utf_16_code_units(session: Session) -> None:
    t, topic_id = topic(session, partitions=4)
    a = Member(session, "a")

    fields = "\u00e9" * 16, "\u00e9" * 17, "\U0001f600" * 8, "\U0001f600" * 9
    offsets = (offset_of(t, n, topic_id=topic_id, metadata=each) for n, each in enumerate(fields))
    a.commit(together(*offsets))


@conversation(vary=OffsetCommitRequest)
def any_number_is_an_offset(session: Session) -> None:
    t, topic_id = topic(session, partitions=3)
    a = Member(session, "a")

    a.commit(
        together(
            offset_of(t, 0, 0, topic_id=topic_id),
            offset_of(t, 1, -1, topic_id=topic_id),
            offset_of(t, 2, 2**63 - 1, topic_id=topic_id, leader_epoch=-5),
        )
    )
    a.client.ask(offset_fetch_request(session, a.group, t, topic_id, 0, 1, 2))


@conversation(vary=OffsetCommitRequest)
def the_last_commit_of_a_partition_wins(session: Session) -> None:
    t, topic_id = topic(session)
    a = Member(session, "a")

    a.commit(offset_of(t, 0, 9, topic_id=topic_id))
    a.commit(together(offset_of(t, 0, 3, topic_id=topic_id), offset_of(t, 0, 5, topic_id=topic_id)))
    a.client.ask(offset_fetch_request(session, a.group, t, topic_id, 0))


@conversation(vary=OffsetCommitRequest)
def a_topic_that_is_named_twice_is_returned_twice(session: Session) -> None:
    t, topic_id = topic(session, partitions=2)
    a = Member(session, "a")

    a.commit(offset_of(t, 0, topic_id=topic_id), offset_of(t, 1, topic_id=topic_id))
    with session.deviates("Kafka merges a topic that appears twice", "answer.topics"):
        a.commit(offset_of(t, 0, topic_id=topic_id), offset_of(t, 9, topic_id=topic_id))


@conversation(vary=OffsetCommitRequest, until=4)
def a_commit_can_have_a_retention_time(session: Session) -> None:
    t, topic_id = topic(session)
    a = Member(session, "a")

    a.commit(offset_of(t, topic_id=topic_id), retention_time_ms=Millis(60_000))
    a.client.ask(offset_fetch_request(session, a.group, t, topic_id, 0))


@conversation(vary=OffsetCommitRequest, until=4, profile="short_retention_check")
def an_offset_expires_after_its_retention_time(session: Session) -> None:
    t, topic_id = topic(session)
    a = Member(session, "a")

    a.commit(offset_of(t, topic_id=topic_id), retention_time_ms=Millis(1))
    a.client.ask_until(
        offset_fetch_all_request(session, a.group), lambda answer: not answer.groups[0].topics
    )
    a.client.ask(DescribeGroupsRequest(groups=(a.group,)))


@conversation(vary=OffsetCommitRequest, since=10)
def a_topic_that_has_no_id_is_unknown(session: Session) -> None:
    t, topic_id = topic(session)
    a = Member(session, "a")

    a.commit(offset_of(t, topic_id=ZERO_UUID), offset_of(t, topic_id=topic_id))
    a.commit(offset_of(t, topic_id=ZERO_UUID))


@conversation(vary=OffsetCommitRequest)
def offsets_of_the_offsets_topic_can_be_committed(session: Session) -> None:
    t = Topic("__consumer_offsets")

    Member(session, "a").commit(offset_of(t, topic_id=session.find_topic_id(t)))
