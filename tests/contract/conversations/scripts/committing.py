"""Committing offsets: by members, by outsiders, and what is wrong with an offset or its sender."""

from kohort.types import ZERO_UUID, Generation, GroupId, InstanceId, MemberId, Millis, Topic, Uuid
from kohort.wire.api.k08_offset_commit import OffsetCommitRequest
from kohort.wire.api.k15_describe_groups import DescribeGroupsRequest
from kohort.wire.api.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.contract.conversations.conversation import conversation
from tests.contract.conversations.members import (
    NOBODY,
    Member,
    assemble,
    gather,
    offset_of,
    together,
)
from tests.contract.conversations.offsets import fetching, fetching_all, forget_the_nameless
from tests.contract.conversations.talking import Talk

NOT_A_TOPIC = Uuid(b"not any topic id")


def topic(talk: Talk, name: str = "t", partitions: int = 1) -> tuple[Topic, Uuid]:
    made = talk.topic(name, partitions)
    return made, talk.find_topic_id(made)


# Outsiders


@conversation(vary=OffsetCommitRequest)
def an_outsider_commits_to_a_group_that_does_not_exist_yet(talk: Talk) -> None:
    t, topic_id = topic(talk)
    a = Member(talk, "a")

    a.commit(offset_of(t, 0, 42, topic_id=topic_id, metadata="note", leader_epoch=0))
    a.speaker.ask(fetching(talk, a.group, t, topic_id, 0))


@conversation(vary=OffsetCommitRequest)
def an_outsider_commits_to_a_group_that_is_empty(talk: Talk) -> None:
    t, topic_id = topic(talk)
    a, outsider = Member(talk, "a"), Member(talk, "outsider")
    gather([a])
    a.leave()

    outsider.commit(offset_of(t, topic_id=topic_id))
    outsider.commit(offset_of(t, topic_id=topic_id), member_id=NOBODY)
    outsider.commit(offset_of(t, topic_id=topic_id), generation_id_or_member_epoch=Generation(1))


@conversation(vary=OffsetCommitRequest)
def an_outsider_may_not_commit_to_a_group_with_members(talk: Talk) -> None:
    t, topic_id = topic(talk)
    a, outsider = Member(talk, "a"), Member(talk, "outsider")
    gather([a])

    outsider.commit(offset_of(t, topic_id=topic_id))
    outsider.commit(offset_of(t, topic_id=topic_id), member_id=NOBODY)
    outsider.commit(offset_of(t, topic_id=topic_id), member_id=a.member_id)


@conversation(vary=OffsetCommitRequest)
def an_outsider_may_not_commit_before_the_assignment_either(talk: Talk) -> None:
    t, topic_id = topic(talk)
    a, outsider = Member(talk, "a"), Member(talk, "outsider")
    assemble([a])

    outsider.commit(offset_of(t, topic_id=topic_id))


@conversation(vary=OffsetCommitRequest)
def a_generation_cannot_be_of_a_group_that_does_not_exist(talk: Talk) -> None:
    t, topic_id = topic(talk)
    a = Member(talk, "a")

    a.commit(offset_of(t, topic_id=topic_id), generation_id_or_member_epoch=Generation(0))
    a.commit(
        offset_of(t, topic_id=topic_id),
        generation_id_or_member_epoch=Generation(3),
        member_id=NOBODY,
    )


@conversation(vary=OffsetCommitRequest)
def a_group_without_a_name_may_keep_offsets(talk: Talk) -> None:
    t, topic_id = topic(talk)
    a = Member(talk, "a")

    a.commit(offset_of(t, topic_id=topic_id), group_id=GroupId(""))
    forget_the_nameless(talk)


# Members


@conversation(vary=OffsetCommitRequest)
def a_member_of_a_stable_group_commits(talk: Talk) -> None:
    t, topic_id = topic(talk)
    a = Member(talk, "a")
    gather([a])

    a.commit(offset_of(t, 0, 42, topic_id=topic_id, metadata="note"))
    a.speaker.ask(fetching(talk, a.group, t, topic_id, 0))


@conversation(vary=OffsetCommitRequest)
def a_member_commits_while_the_group_rebalances(talk: Talk) -> None:
    t, topic_id = topic(talk)
    a, b = Member(talk, "a"), Member(talk, "b")
    gather([a])
    b.send_join()
    talk.wait_for_group(a.group, state="PreparingRebalance", members=2)

    a.commit(offset_of(t, topic_id=topic_id))


@conversation(vary=OffsetCommitRequest)
def a_member_that_waits_for_its_assignment_may_not_commit(talk: Talk) -> None:
    t, topic_id = topic(talk)
    a = Member(talk, "a")
    assemble([a])

    a.commit(offset_of(t, topic_id=topic_id))
    a.commit(offset_of(t, topic_id=topic_id), generation_id_or_member_epoch=Generation(0))


@conversation(vary=OffsetCommitRequest)
def another_generation_is_refused(talk: Talk) -> None:
    t, topic_id = topic(talk)
    a = Member(talk, "a")
    gather([a])

    a.commit(offset_of(t, topic_id=topic_id), generation_id_or_member_epoch=Generation(0))
    a.commit(offset_of(t, topic_id=topic_id), generation_id_or_member_epoch=Generation(2))
    a.commit(offset_of(t, topic_id=topic_id), generation_id_or_member_epoch=Generation(-2))


@conversation(vary=OffsetCommitRequest)
def a_stranger_is_unknown_before_its_generation_is_looked_at(talk: Talk) -> None:
    t, topic_id = topic(talk)
    a = Member(talk, "a")
    gather([a])

    a.commit(offset_of(t, topic_id=topic_id), member_id=NOBODY)
    a.commit(offset_of(t, topic_id=topic_id), member_id=MemberId(""))


@conversation(vary=OffsetCommitRequest, since=7)
def a_static_member_commits_under_its_instance(talk: Talk) -> None:
    t, topic_id = topic(talk)
    a, b = Member(talk, "a", instance="i"), Member(talk, "b", instance="j")
    gather([a, b])

    a.commit(offset_of(t, topic_id=topic_id))
    a.commit(offset_of(t, topic_id=topic_id), group_instance_id=InstanceId("j"))
    a.commit(offset_of(t, topic_id=topic_id), group_instance_id=InstanceId("unheard of"))
    a.commit(offset_of(t, topic_id=topic_id), member_id=NOBODY)
    a.commit(
        offset_of(t, topic_id=topic_id),
        member_id=MemberId(""),
        generation_id_or_member_epoch=Generation(-1),
    )


@conversation(vary=OffsetCommitRequest)
def a_member_commits_again_and_again_whatever_happens_to_its_group(talk: Talk) -> None:
    t, topic_id = topic(talk)
    a, b = Member(talk, "a"), Member(talk, "b")
    gather([a])

    def commit(offset: int) -> None:
        a.commit(offset_of(t, 0, offset, topic_id=topic_id, metadata="note"))

    for offset in range(4):
        commit(offset)
    a.speaker.ask(fetching(talk, a.group, t, topic_id, 0))
    b.send_join()
    talk.wait_for_group(a.group, state="PreparingRebalance", members=2)
    commit(4)
    a.join()
    b.hear_join()
    commit(5)
    a.sync()
    for offset in range(6, 9):
        commit(offset)
    a.speaker.ask(fetching(talk, a.group, t, topic_id, 0))
    a.leave()
    commit(9)
    a.speaker.ask(fetching(talk, a.group, t, topic_id, 0))


@conversation(vary=OffsetCommitRequest)
def a_topic_that_disappears_between_two_commits_is_unknown(talk: Talk) -> None:
    t, topic_id = topic(talk)
    a = Member(talk, "a")
    for offset in range(3):
        a.commit(offset_of(t, 0, offset, topic_id=topic_id))
    talk.peek(DeleteTopicsRequest(topics=(DeleteTopicState(name=t),), timeout_ms=Millis(5000)))

    a.speaker.ask_until(
        a.committing(offset_of(t, 0, 3, topic_id=topic_id)),
        lambda answer: answer.topics[0].partitions[0].error_code != 0,
    )


# Offsets


@conversation(vary=OffsetCommitRequest)
def what_is_not_there_cannot_be_committed(talk: Talk) -> None:
    t, topic_id = topic(talk)
    a = Member(talk, "a")

    a.commit(
        together(*(offset_of(t, each, topic_id=topic_id) for each in (0, 1, -1))),
        offset_of(Topic(talk.name("unknown")), topic_id=NOT_A_TOPIC),
    )
    a.commit(offset_of(Topic(talk.name("unknown")), topic_id=NOT_A_TOPIC))


@conversation(vary=OffsetCommitRequest)
def strangers_are_told_about_unknown_topics_first(talk: Talk) -> None:
    a = Member(talk, "a")

    a.commit(
        offset_of(Topic(talk.name("unknown")), topic_id=NOT_A_TOPIC),
        member_id=NOBODY,
        generation_id_or_member_epoch=Generation(5),
    )
    a.commit(offset_of(Topic(""), topic_id=ZERO_UUID), group_id=GroupId(""))


@conversation(vary=OffsetCommitRequest)
def nothing_may_be_committed(talk: Talk) -> None:
    a = Member(talk, "a")

    a.commit()
    a.commit(member_id=NOBODY, generation_id_or_member_epoch=Generation(5))


@conversation(vary=OffsetCommitRequest)
def metadata_may_be_null(talk: Talk) -> None:
    t, topic_id = topic(talk)
    a = Member(talk, "a")

    a.commit(offset_of(t, topic_id=topic_id, metadata=None))
    a.speaker.ask(fetching(talk, a.group, t, topic_id, 0))


@conversation(vary=OffsetCommitRequest)
def metadata_may_be_as_long_as_the_limit(talk: Talk) -> None:
    t, topic_id = topic(talk, partitions=3)
    a = Member(talk, "a")

    a.commit(
        together(
            offset_of(t, 0, topic_id=topic_id, metadata="m" * 4096),
            offset_of(t, 1, topic_id=topic_id, metadata="m" * 4097),
            offset_of(t, 2, topic_id=topic_id, metadata="m"),
        )
    )
    a.speaker.ask(fetching(talk, a.group, t, topic_id, 1, 2))


@conversation(vary=OffsetCommitRequest, house="strict")
def metadata_is_measured_in_characters_as_java_counts_them(talk: Talk) -> None:
    t, topic_id = topic(talk, partitions=4)
    a = Member(talk, "a")

    words = "\u00e9" * 16, "\u00e9" * 17, "\U0001f600" * 8, "\U0001f600" * 9
    offsets = (offset_of(t, n, topic_id=topic_id, metadata=each) for n, each in enumerate(words))
    a.commit(together(*offsets))


@conversation(vary=OffsetCommitRequest)
def any_number_is_an_offset(talk: Talk) -> None:
    t, topic_id = topic(talk, partitions=3)
    a = Member(talk, "a")

    a.commit(
        together(
            offset_of(t, 0, 0, topic_id=topic_id),
            offset_of(t, 1, -1, topic_id=topic_id),
            offset_of(t, 2, 2**63 - 1, topic_id=topic_id, leader_epoch=-5),
        )
    )
    a.speaker.ask(fetching(talk, a.group, t, topic_id, 0, 1, 2))


@conversation(vary=OffsetCommitRequest)
def the_last_commit_of_a_partition_holds(talk: Talk) -> None:
    t, topic_id = topic(talk)
    a = Member(talk, "a")

    a.commit(offset_of(t, 0, 9, topic_id=topic_id))
    a.commit(together(offset_of(t, 0, 3, topic_id=topic_id), offset_of(t, 0, 5, topic_id=topic_id)))
    a.speaker.ask(fetching(talk, a.group, t, topic_id, 0))


@conversation(vary=OffsetCommitRequest)
def a_topic_that_is_named_twice_is_answered_for_twice(talk: Talk) -> None:
    t, topic_id = topic(talk, partitions=2)
    a = Member(talk, "a")

    a.commit(offset_of(t, 0, topic_id=topic_id), offset_of(t, 1, topic_id=topic_id))
    with talk.deviates("Kafka answers once for a topic that is named twice", "answer.topics"):
        a.commit(offset_of(t, 0, topic_id=topic_id), offset_of(t, 9, topic_id=topic_id))


@conversation(vary=OffsetCommitRequest, until=4)
def an_offset_may_have_a_retention_of_its_own(talk: Talk) -> None:
    t, topic_id = topic(talk)
    a = Member(talk, "a")

    a.commit(offset_of(t, topic_id=topic_id), retention_time_ms=Millis(60_000))
    a.speaker.ask(fetching(talk, a.group, t, topic_id, 0))


@conversation(vary=OffsetCommitRequest, until=4, house="forgetful")
def an_offset_is_forgotten_when_its_retention_is_over(talk: Talk) -> None:
    t, topic_id = topic(talk)
    a = Member(talk, "a")

    a.commit(offset_of(t, topic_id=topic_id), retention_time_ms=Millis(1))
    a.speaker.ask_until(fetching_all(talk, a.group), lambda answer: not answer.groups[0].topics)
    a.speaker.ask(DescribeGroupsRequest(groups=(a.group,)))


@conversation(vary=OffsetCommitRequest, since=10)
def a_topic_that_has_no_id_is_unknown(talk: Talk) -> None:
    t, topic_id = topic(talk)
    a = Member(talk, "a")

    a.commit(offset_of(t, topic_id=ZERO_UUID), offset_of(t, topic_id=topic_id))
    a.commit(offset_of(t, topic_id=ZERO_UUID))


@conversation(vary=OffsetCommitRequest)
def the_groups_own_topic_can_be_committed_too(talk: Talk) -> None:
    t = Topic("__consumer_offsets")

    Member(talk, "a").commit(offset_of(t, topic_id=talk.find_topic_id(t)))
