"""Fetching committed offsets: what is there, what is not, of one group or of many."""

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
from tests.contract.conversations.members import NOBODY, Member, gather, offset_of
from tests.contract.conversations.offsets import (
    fetching,
    fetching_all,
    fetching_none,
    forget_the_nameless,
)
from tests.contract.conversations.talking import Talk

NOT_A_TOPIC = Uuid(b"not any topic id")


def committed(talk: Talk, group: GroupId | None = None) -> tuple[Member, Topic, Uuid]:
    """A group that has committed the first two of three partitions."""
    t = talk.topic(partitions=3)
    topic_id = talk.find_topic_id(t)
    a = Member(talk, "a", group=group)
    a.commit(
        offset_of(t, 0, 10, topic_id=topic_id, metadata="first", leader_epoch=0),
        offset_of(t, 1, 11, topic_id=topic_id),
    )
    return a, t, topic_id


@conversation(vary=OffsetFetchRequest)
def what_was_committed_is_found_and_nothing_else(talk: Talk) -> None:
    a, t, topic_id = committed(talk)

    a.speaker.ask(fetching(talk, a.group, t, topic_id, 0, 1, 2, 99, -1))


@conversation(vary=OffsetFetchRequest)
def a_group_that_does_not_exist_has_committed_nothing(talk: Talk) -> None:
    t = talk.topic()

    talk.speaker("a").ask(fetching(talk, talk.group(), t, talk.find_topic_id(t), 0))


@conversation(vary=OffsetFetchRequest)
def a_group_with_members_but_without_commits_has_committed_nothing(talk: Talk) -> None:
    t = talk.topic()
    a = Member(talk, "a")
    gather([a])

    a.speaker.ask(fetching(talk, a.group, t, talk.find_topic_id(t), 0))


@conversation(vary=OffsetFetchRequest)
def a_topic_that_does_not_exist_has_nothing_committed(talk: Talk) -> None:
    a, *_ = committed(talk)

    a.speaker.ask(fetching(talk, a.group, Topic(talk.name("unknown")), NOT_A_TOPIC, 0, 1))
    a.speaker.ask(fetching(talk, a.group, Topic(""), ZERO_UUID, 0))


@conversation(vary=OffsetFetchRequest, since=5)
def an_epoch_that_no_leader_has_had_is_not_told(talk: Talk) -> None:
    t = talk.topic()
    topic_id = talk.find_topic_id(t)
    a = Member(talk, "a")
    a.commit(offset_of(t, topic_id=topic_id, leader_epoch=7))

    because = "Kafka tells any epoch that was committed"
    with talk.deviates(because, "*.committed_leader_epoch"):
        a.speaker.ask(fetching(talk, a.group, t, topic_id, 0))


@conversation(vary=OffsetFetchRequest, since=2)
def all_that_was_committed_is_found(talk: Talk) -> None:
    a, *_ = committed(talk)

    a.speaker.ask(fetching_all(talk, a.group))
    a.speaker.ask(fetching_all(talk, talk.group("unknown")))


@conversation(vary=OffsetFetchRequest)
def nothing_is_asked_for_and_nothing_found(talk: Talk) -> None:
    a, *_ = committed(talk)

    a.speaker.ask(fetching_none(talk, a.group))


@conversation(vary=OffsetFetchRequest)
def a_topic_without_partitions_is_answered_without_partitions(talk: Talk) -> None:
    a, t, topic_id = committed(talk)
    a.speaker.ask(fetching(talk, a.group, t, topic_id))


@conversation(vary=OffsetFetchRequest)
def a_group_without_a_name_may_have_offsets(talk: Talk) -> None:
    a, t, topic_id = committed(talk, GroupId(""))

    a.speaker.ask(fetching(talk, GroupId(""), t, topic_id, 0))
    forget_the_nameless(talk)


@conversation(vary=OffsetFetchRequest, since=7)
def whoever_wants_stable_offsets_finds_them(talk: Talk) -> None:
    a, t, topic_id = committed(talk)

    a.speaker.ask(replace(fetching(talk, a.group, t, topic_id, 0, 2), require_stable=True))
    a.speaker.ask(replace(fetching_all(talk, a.group), require_stable=True))
    a.speaker.ask(replace(fetching_all(talk, talk.group("unknown")), require_stable=True))


@conversation(vary=OffsetFetchRequest, since=8)
def many_groups_are_asked_about_at_once(talk: Talk) -> None:
    a, t, topic_id = committed(talk)
    some = fetching(talk, a.group, t, topic_id, 0, 2).groups
    all_ = fetching_all(talk, a.group).groups
    unknown = fetching_all(talk, talk.group("unknown")).groups

    a.speaker.ask(OffsetFetchRequest(groups=(*some, *unknown)))
    a.speaker.ask(OffsetFetchRequest(groups=(*unknown, *all_)))
    a.speaker.ask(OffsetFetchRequest(groups=()))


@conversation(vary=OffsetFetchRequest, since=9)
def a_member_may_say_who_it_is(talk: Talk) -> None:
    t = talk.topic()
    topic_id = talk.find_topic_id(t)
    a = Member(talk, "a")
    gather([a])
    a.commit(offset_of(t, topic_id=topic_id))
    (group,) = fetching(talk, a.group, t, topic_id, 0).groups

    def ask(member_id: MemberId | None, epoch: int) -> None:
        as_member = replace(group, member_id=member_id, member_epoch=epoch)
        a.speaker.ask(OffsetFetchRequest(groups=(as_member,)))

    ask(a.member_id, a.generation)
    ask(a.member_id, a.generation + 1)
    ask(NOBODY, a.generation)
    ask(None, a.generation)
    ask(MemberId(""), -1)


@conversation(vary=OffsetFetchRequest, since=9)
def a_member_of_a_group_that_does_not_exist_finds_nothing(talk: Talk) -> None:
    t = talk.topic()
    (group,) = fetching(talk, talk.group(), t, talk.find_topic_id(t), 0).groups
    asked = replace(group, member_id=NOBODY, member_epoch=3)

    talk.speaker("a").ask(OffsetFetchRequest(groups=(asked,)))


@conversation(vary=OffsetFetchRequest, since=10)
def known_and_unknown_ids_are_answered_side_by_side(talk: Talk) -> None:
    a, t, topic_id = committed(talk)
    (group,) = fetching(talk, a.group, t, topic_id, 0).groups
    strange = OffsetFetchRequestTopics(topic_id=NOT_A_TOPIC, partition_indexes=(Partition(0),))
    asked = OffsetFetchRequestGroup(group_id=a.group, topics=(strange, *(group.topics or ())))

    a.speaker.ask(OffsetFetchRequest(groups=(asked,)))


@conversation(vary=OffsetFetchRequest, since=2)
def the_offsets_of_a_deleted_topic_are_forgotten(talk: Talk) -> None:
    a, t, _ = committed(talk)
    talk.peek(DeleteTopicsRequest(topics=(DeleteTopicState(name=t),), timeout_ms=Millis(5000)))

    a.speaker.ask_until(fetching_all(talk, a.group), is_empty)


def is_empty(answer: Any) -> bool:
    return not answer.topics and not any(group.topics for group in answer.groups)
