"""Topics: made, grown and deleted, and every reason not to."""

from dataclasses import replace
from typing import Any

from kohort.types import ZERO_UUID, BrokerId, Millis, Partition, Topic, Uuid
from kohort.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic
from kohort.wire.api.k19_create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kohort.wire.api.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from kohort.wire.api.k37_create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from tests.contract.conversations.conversation import conversation
from tests.contract.conversations.records import made
from tests.contract.conversations.talking import Speaker, Talk, narrowed

NOT_A_TOPIC = Uuid(b"not any topic id")
OFFSETS = Topic("__consumer_offsets")

_TOLD = ("cleanup.policy", "retention.ms", "max.message.bytes", "segment.bytes")
"""Settings of which the answer is looked at; brokers of other versions have others."""


def topic(name: str, partitions: int = 1, replication: int = 1, **words: Any) -> CreatableTopic:
    made_ = CreatableTopic(
        name=Topic(name), num_partitions=partitions, replication_factor=replication
    )
    return replace(made_, **words)


def config(**settings: str | None) -> tuple[CreatableTopicConfig, ...]:
    return tuple(
        CreatableTopicConfig(name=key.replace("_", "."), value=text)
        for key, text in settings.items()
    )


def some_settings(answer: CreateTopicsResponse) -> CreateTopicsResponse:
    topics = tuple(
        replace(each, configs=tuple(one for one in each.configs or () if one.name in _TOLD))
        for each in answer.topics
    )
    return narrowed(answer, topics=topics)


def create(speaker: Speaker, *topics: CreatableTopic, **words: Any) -> None:
    request = CreateTopicsRequest(topics=topics, timeout_ms=Millis(10_000), **words)
    speaker.ask(request, through=some_settings)


# Making


@conversation(vary=CreateTopicsRequest)
def a_topic_is_made_with_its_settings(talk: Talk) -> None:
    a = talk.speaker("a")

    create(a, topic(talk.name("t"), 2, configs=config(cleanup_policy="compact")))
    create(a, topic(talk.name("t")))


@conversation(vary=CreateTopicsRequest)
def a_topic_may_only_be_tried(talk: Talk) -> None:
    a = talk.speaker("a")

    create(a, topic(talk.name("t"), 2), validate_only=True)
    create(a, topic(talk.name("t"), 2), validate_only=True)
    create(a, topic(talk.name("un known")), validate_only=True)


@conversation(vary=CreateTopicsRequest)
def topics_are_made_each_for_itself(talk: Talk) -> None:
    create(talk.speaker("a"), topic(talk.name("t")), topic(talk.name("un known")))


@conversation(vary=CreateTopicsRequest)
def a_topic_that_is_named_twice_is_not_made(talk: Talk) -> None:
    a = talk.speaker("a")

    create(a, topic(talk.name("t")), topic(talk.name("t"), 2), topic(talk.name("u")))


@conversation(vary=CreateTopicsRequest)
def nothing_may_be_made(talk: Talk) -> None:
    create(talk.speaker("a"))


@conversation(vary=CreateTopicsRequest)
def a_name_must_be_possible(talk: Talk) -> None:
    a = talk.speaker("a")

    create(a, topic(""))
    create(a, topic("."))
    create(a, topic(".."))
    create(a, topic("x" * 250))
    create(a, topic(talk.name("\u00e9")))
    create(a, topic(talk.name("a/b")))


@conversation(vary=CreateTopicsRequest)
def names_that_differ_in_dots_and_dashes_collide(talk: Talk) -> None:
    a = talk.speaker("a")
    create(a, topic(talk.name("a.b")))

    create(a, topic(talk.name("a_b")))
    with talk.deviates("Kafka overlooks it where both are made in one request", "answer.topics.1*"):
        create(a, topic(talk.name("c.d")), topic(talk.name("c_d")))


@conversation(vary=CreateTopicsRequest)
def there_must_be_partitions(talk: Talk) -> None:
    a = talk.speaker("a")

    create(a, topic(talk.name("t"), 0))
    create(a, topic(talk.name("t"), -2))
    create(a, topic(talk.name("t"), 10_001))


@conversation(vary=CreateTopicsRequest)
def there_are_as_many_copies_as_brokers(talk: Talk) -> None:
    a = talk.speaker("a")

    create(a, topic(talk.name("t"), 1, 0))
    create(a, topic(talk.name("t"), 1, -2))
    create(a, topic(talk.name("t"), 1, 2))


@conversation(vary=CreateTopicsRequest, since=4)
def the_brokers_defaults_may_be_taken(talk: Talk) -> None:
    create(talk.speaker("a"), topic(talk.name("t"), -1, -1))


@conversation(vary=CreateTopicsRequest)
def a_setting_must_exist_and_make_sense(talk: Talk) -> None:
    a = talk.speaker("a")

    create(a, topic(talk.name("t"), configs=config(no_such_setting="1")))
    create(a, topic(talk.name("t"), configs=config(retention_ms="soon")))
    create(a, topic(talk.name("t"), configs=config(retention_ms="-2")))
    create(a, topic(talk.name("t"), configs=config(cleanup_policy="burn")))
    create(a, topic(talk.name("t"), configs=config(retention_ms=None)))
    create(a, topic(talk.name("t"), configs=config(retention_ms="1") + config(retention_ms="2")))


@conversation(vary=CreateTopicsRequest)
def partitions_may_be_placed_by_hand(talk: Talk) -> None:
    a = talk.speaker("a")

    def place(name: str, partitions: dict[int, tuple[int, ...]], **words: Any) -> None:
        assignments = tuple(
            CreatableReplicaAssignment(
                partition_index=Partition(index), broker_ids=tuple(map(BrokerId, brokers))
            )
            for index, brokers in partitions.items()
        )
        create(a, topic(talk.name(name), -1, -1, assignments=assignments, **words))

    place("t", {0: (1,), 1: (1,)})
    place("elsewhere", {0: (2,)})
    place("twice", {0: (1, 1)})
    place("nowhere", {0: ()})
    place("gap", {0: (1,), 2: (1,)})
    place("late", {1: (1,)})
    place("both", {0: (1,)}, num_partitions=1)
    place("copies", {0: (1,)}, replication_factor=1)


@conversation(vary=CreateTopicsRequest)
def the_groups_own_topic_exists(talk: Talk) -> None:
    create(talk.speaker("a"), topic(OFFSETS))


# Growing


def growing(name: Topic, count: int, *brokers: tuple[int, ...], **words: Any) -> Any:
    assignments = tuple(
        CreatePartitionsAssignment(broker_ids=tuple(map(BrokerId, each))) for each in brokers
    )
    told = CreatePartitionsTopic(name=name, count=count, assignments=assignments or None)
    return CreatePartitionsRequest(topics=(told,), timeout_ms=Millis(10_000), **words)


@conversation(vary=CreatePartitionsRequest)
def a_topic_grows(talk: Talk) -> None:
    t, _ = made(talk, partitions=1)
    a = talk.speaker("a")

    a.ask(growing(t, 3, validate_only=True))
    a.ask(growing(t, 3))
    talk.wait_for_topic(t, 3)
    a.ask(growing(t, 4, (1,)))
    talk.wait_for_topic(t, 4)
    named = (MetadataRequestTopic(name=t),)
    a.ask(MetadataRequest(topics=named, allow_auto_topic_creation=False))


@conversation(vary=CreatePartitionsRequest)
def a_topic_does_not_shrink(talk: Talk) -> None:
    t, _ = made(talk, partitions=2)
    a = talk.speaker("a")

    for count in (2, 1, 0, -1):
        a.ask(growing(t, count))


@conversation(vary=CreatePartitionsRequest)
def what_does_not_exist_cannot_grow(talk: Talk) -> None:
    a = talk.speaker("a")

    a.ask(growing(Topic(talk.name("unknown")), 2))
    a.ask(growing(Topic(""), 2))
    a.ask(CreatePartitionsRequest(timeout_ms=Millis(10_000)))


@conversation(vary=CreatePartitionsRequest)
def new_partitions_may_be_placed_by_hand(talk: Talk) -> None:
    t, _ = made(talk, partitions=1)
    a = talk.speaker("a")

    a.ask(growing(t, 3, (1,)))
    a.ask(growing(t, 2, (1,), (1,)))
    a.ask(growing(t, 2, (2,)))
    a.ask(growing(t, 2, (1, 1)))
    a.ask(growing(t, 2, ()))


@conversation(vary=CreatePartitionsRequest)
def a_topic_that_is_named_twice_does_not_grow(talk: Talk) -> None:
    t, _ = made(talk, partitions=1)
    twice = growing(t, 2).topics + growing(t, 3).topics
    request = CreatePartitionsRequest(topics=twice, timeout_ms=Millis(10_000))

    talk.speaker("a").ask(request)


# Deleting


def deleting(talk: Talk, *names: Topic) -> DeleteTopicsRequest:
    if talk.version_of(DeleteTopicsRequest) < 6:
        return DeleteTopicsRequest(topic_names=names, timeout_ms=Millis(10_000))
    states = tuple(DeleteTopicState(name=each) for each in names)
    return DeleteTopicsRequest(topics=states, timeout_ms=Millis(10_000))


def deleting_by_id(*topic_ids: Uuid) -> DeleteTopicsRequest:
    states = tuple(DeleteTopicState(topic_id=each) for each in topic_ids)
    return DeleteTopicsRequest(topics=states, timeout_ms=Millis(10_000))


@conversation(vary=DeleteTopicsRequest)
def a_topic_is_deleted(talk: Talk) -> None:
    t, _ = made(talk)
    a = talk.speaker("a")

    a.ask(deleting(talk, t))
    a.ask(deleting(talk, t))


@conversation(vary=DeleteTopicsRequest)
def what_does_not_exist_cannot_be_deleted(talk: Talk) -> None:
    t, _ = made(talk)
    a = talk.speaker("a")

    a.ask(deleting(talk, Topic(talk.name("unknown")), t))
    a.ask(deleting(talk, Topic("")))
    a.ask(deleting(talk))


@conversation(vary=DeleteTopicsRequest)
def a_topic_that_is_named_twice_is_not_deleted(talk: Talk) -> None:
    t, _ = made(talk)
    u, _ = made(talk, "u")
    a = talk.speaker("a")

    a.ask(deleting(talk, t, t, u))
    named = (MetadataRequestTopic(name=t),)
    a.ask(MetadataRequest(topics=named, allow_auto_topic_creation=False))


@conversation(vary=DeleteTopicsRequest, since=6)
def a_topic_is_deleted_by_its_id(talk: Talk) -> None:
    _, topic_id = made(talk)
    a = talk.speaker("a")

    a.ask(deleting_by_id(topic_id))
    a.ask(deleting_by_id(topic_id))
    a.ask(deleting_by_id(NOT_A_TOPIC, ZERO_UUID))


@conversation(vary=DeleteTopicsRequest, since=6)
def a_topic_goes_by_its_name_or_its_id(talk: Talk) -> None:
    t, topic_id = made(talk)
    a = talk.speaker("a")

    both = (DeleteTopicState(name=t, topic_id=topic_id),)
    a.ask(DeleteTopicsRequest(topics=both, timeout_ms=Millis(10_000)))
    twice = (DeleteTopicState(name=t), DeleteTopicState(topic_id=topic_id))
    a.ask(DeleteTopicsRequest(topics=twice, timeout_ms=Millis(10_000)))
    ids = (DeleteTopicState(topic_id=topic_id), DeleteTopicState(topic_id=topic_id))
    a.ask(DeleteTopicsRequest(topics=ids, timeout_ms=Millis(10_000)))


@conversation(vary=DeleteTopicsRequest, house="strict")
def no_topic_is_deleted_where_that_is_forbidden(talk: Talk) -> None:
    t, _ = made(talk)
    a = talk.speaker("a")

    a.ask(deleting(talk, t))
    a.ask(deleting(talk, Topic(talk.name("unknown"))))
