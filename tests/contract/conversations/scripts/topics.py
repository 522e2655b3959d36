"""CreateTopics, CreatePartitions and DeleteTopics."""

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
from tests.contract.conversations.records import create_topic
from tests.contract.conversations.session import Client, Session, narrowed

NOT_A_TOPIC = Uuid(b"not any topic id")
OFFSETS = Topic("__consumer_offsets")

_TOLD = ("cleanup.policy", "retention.ms", "max.message.bytes", "segment.bytes")
"""The settings that are compared; brokers of other versions have others."""


def topic(name: str, partitions: int = 1, replication: int = 1, **fields: Any) -> CreatableTopic:
    made_ = CreatableTopic(
        name=Topic(name), num_partitions=partitions, replication_factor=replication
    )
    return replace(made_, **fields)


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


def create(client: Client, *topics: CreatableTopic, **fields: Any) -> None:
    request = CreateTopicsRequest(topics=topics, timeout_ms=Millis(10_000), **fields)
    client.ask(request, transform=some_settings)


# Making


@conversation(vary=CreateTopicsRequest)
def a_topic_is_created_with_its_settings(session: Session) -> None:
    a = session.client("a")

    create(a, topic(session.name("t"), 2, configs=config(cleanup_policy="compact")))
    create(a, topic(session.name("t")))


@conversation(vary=CreateTopicsRequest)
def a_topic_creation_can_be_validated_only(session: Session) -> None:
    a = session.client("a")

    create(a, topic(session.name("t"), 2), validate_only=True)
    create(a, topic(session.name("t"), 2), validate_only=True)
    create(a, topic(session.name("un known")), validate_only=True)


@conversation(vary=CreateTopicsRequest)
def each_topic_has_its_own_error_code(session: Session) -> None:
    create(session.client("a"), topic(session.name("t")), topic(session.name("un known")))


@conversation(vary=CreateTopicsRequest)
def a_topic_that_is_named_twice_is_not_created(session: Session) -> None:
    a = session.client("a")

    create(a, topic(session.name("t")), topic(session.name("t"), 2), topic(session.name("u")))


@conversation(vary=CreateTopicsRequest)
def an_empty_create_is_allowed(session: Session) -> None:
    create(session.client("a"))


@conversation(vary=CreateTopicsRequest)
def invalid_topic_names_are_refused(session: Session) -> None:
    a = session.client("a")

    create(a, topic(""))
    create(a, topic("."))
    create(a, topic(".."))
    create(a, topic("x" * 250))
    create(a, topic(session.name("\u00e9")))
    create(a, topic(session.name("a/b")))


@conversation(vary=CreateTopicsRequest)
def names_that_differ_in_dots_and_dashes_collide(session: Session) -> None:
    a = session.client("a")
    create(a, topic(session.name("a.b")))

    create(a, topic(session.name("a_b")))
    with session.deviates(
        "Kafka misses the collision if one request creates both topics", "answer.topics.1*"
    ):
        create(a, topic(session.name("c.d")), topic(session.name("c_d")))


@conversation(vary=CreateTopicsRequest)
def the_number_of_partitions_must_be_positive(session: Session) -> None:
    a = session.client("a")

    create(a, topic(session.name("t"), 0))
    create(a, topic(session.name("t"), -2))
    create(a, topic(session.name("t"), 10_001))


@conversation(vary=CreateTopicsRequest)
def the_replication_factor_must_be_1(session: Session) -> None:
    a = session.client("a")

    create(a, topic(session.name("t"), 1, 0))
    create(a, topic(session.name("t"), 1, -2))
    create(a, topic(session.name("t"), 1, 2))


@conversation(vary=CreateTopicsRequest, since=4)
def defaults_of_the_broker_can_be_used(session: Session) -> None:
    create(session.client("a"), topic(session.name("t"), -1, -1))


@conversation(vary=CreateTopicsRequest)
def unknown_settings_and_invalid_values_are_refused(session: Session) -> None:
    a = session.client("a")

    create(a, topic(session.name("t"), configs=config(no_such_setting="1")))
    create(a, topic(session.name("t"), configs=config(retention_ms="soon")))
    create(a, topic(session.name("t"), configs=config(retention_ms="-2")))
    create(a, topic(session.name("t"), configs=config(cleanup_policy="burn")))
    create(a, topic(session.name("t"), configs=config(retention_ms=None)))
    create(a, topic(session.name("t"), configs=config(retention_ms="1") + config(retention_ms="2")))


@conversation(vary=CreateTopicsRequest)
def replicas_can_be_assigned_manually(session: Session) -> None:
    a = session.client("a")

    def place(name: str, partitions: dict[int, tuple[int, ...]], **fields: Any) -> None:
        assignments = tuple(
            CreatableReplicaAssignment(
                partition_index=Partition(index), broker_ids=tuple(map(BrokerId, brokers))
            )
            for index, brokers in partitions.items()
        )
        create(a, topic(session.name(name), -1, -1, assignments=assignments, **fields))

    place("t", {0: (1,), 1: (1,)})
    place("elsewhere", {0: (2,)})
    place("twice", {0: (1, 1)})
    place("nowhere", {0: ()})
    place("gap", {0: (1,), 2: (1,)})
    place("late", {1: (1,)})
    place("both", {0: (1,)}, num_partitions=1)
    place("copies", {0: (1,)}, replication_factor=1)


@conversation(vary=CreateTopicsRequest)
def the_offsets_topic_exists(session: Session) -> None:
    create(session.client("a"), topic(OFFSETS))


# Growing


def create_partitions_request(
    name: Topic, count: int, *brokers: tuple[int, ...], **fields: Any
) -> Any:
    assignments = tuple(
        CreatePartitionsAssignment(broker_ids=tuple(map(BrokerId, each))) for each in brokers
    )
    resource = CreatePartitionsTopic(name=name, count=count, assignments=assignments or None)
    return CreatePartitionsRequest(topics=(resource,), timeout_ms=Millis(10_000), **fields)


@conversation(vary=CreatePartitionsRequest)
def partitions_are_added(session: Session) -> None:
    t, _ = create_topic(session, partitions=1)
    a = session.client("a")

    a.ask(create_partitions_request(t, 3, validate_only=True))
    a.ask(create_partitions_request(t, 3))
    session.wait_for_topic(t, 3)
    a.ask(create_partitions_request(t, 4, (1,)))
    session.wait_for_topic(t, 4)
    named = (MetadataRequestTopic(name=t),)
    a.ask(MetadataRequest(topics=named, allow_auto_topic_creation=False))


@conversation(vary=CreatePartitionsRequest)
def partitions_cannot_be_removed(session: Session) -> None:
    t, _ = create_topic(session, partitions=2)
    a = session.client("a")

    for count in (2, 1, 0, -1):
        a.ask(create_partitions_request(t, count))


@conversation(vary=CreatePartitionsRequest)
def partitions_cannot_be_added_to_an_unknown_topic(session: Session) -> None:
    a = session.client("a")

    a.ask(create_partitions_request(Topic(session.name("unknown")), 2))
    a.ask(create_partitions_request(Topic(""), 2))
    a.ask(CreatePartitionsRequest(timeout_ms=Millis(10_000)))


@conversation(vary=CreatePartitionsRequest)
def replicas_of_new_partitions_can_be_assigned_manually(session: Session) -> None:
    t, _ = create_topic(session, partitions=1)
    a = session.client("a")

    a.ask(create_partitions_request(t, 3, (1,)))
    a.ask(create_partitions_request(t, 2, (1,), (1,)))
    a.ask(create_partitions_request(t, 2, (2,)))
    a.ask(create_partitions_request(t, 2, (1, 1)))
    a.ask(create_partitions_request(t, 2, ()))


@conversation(vary=CreatePartitionsRequest)
def no_partitions_are_added_to_a_topic_that_is_named_twice(session: Session) -> None:
    t, _ = create_topic(session, partitions=1)
    twice = create_partitions_request(t, 2).topics + create_partitions_request(t, 3).topics
    request = CreatePartitionsRequest(topics=twice, timeout_ms=Millis(10_000))

    session.client("a").ask(request)


# Deleting


def delete_request(session: Session, *names: Topic) -> DeleteTopicsRequest:
    if session.version_of(DeleteTopicsRequest) < 6:
        return DeleteTopicsRequest(topic_names=names, timeout_ms=Millis(10_000))
    states = tuple(DeleteTopicState(name=each) for each in names)
    return DeleteTopicsRequest(topics=states, timeout_ms=Millis(10_000))


def delete_by_id_request(*topic_ids: Uuid) -> DeleteTopicsRequest:
    states = tuple(DeleteTopicState(topic_id=each) for each in topic_ids)
    return DeleteTopicsRequest(topics=states, timeout_ms=Millis(10_000))


@conversation(vary=DeleteTopicsRequest)
def a_topic_is_deleted(session: Session) -> None:
    t, _ = create_topic(session)
    a = session.client("a")

    a.ask(delete_request(session, t))
    a.ask(delete_request(session, t))


@conversation(vary=DeleteTopicsRequest)
def unknown_resources_cannot_be_deleted(session: Session) -> None:
    t, _ = create_topic(session)
    a = session.client("a")

    a.ask(delete_request(session, Topic(session.name("unknown")), t))
    a.ask(delete_request(session, Topic("")))
    a.ask(delete_request(session))


@conversation(vary=DeleteTopicsRequest)
def a_topic_that_is_named_twice_is_not_deleted(session: Session) -> None:
    t, _ = create_topic(session)
    u, _ = create_topic(session, "u")
    a = session.client("a")

    a.ask(delete_request(session, t, t, u))
    named = (MetadataRequestTopic(name=t),)
    a.ask(MetadataRequest(topics=named, allow_auto_topic_creation=False))


@conversation(vary=DeleteTopicsRequest, since=6)
def a_topic_is_deleted_by_its_id(session: Session) -> None:
    _, topic_id = create_topic(session)
    a = session.client("a")

    a.ask(delete_by_id_request(topic_id))
    a.ask(delete_by_id_request(topic_id))
    a.ask(delete_by_id_request(NOT_A_TOPIC, ZERO_UUID))


@conversation(vary=DeleteTopicsRequest, since=6)
def a_topic_is_named_by_its_name_or_its_id(session: Session) -> None:
    t, topic_id = create_topic(session)
    a = session.client("a")

    both = (DeleteTopicState(name=t, topic_id=topic_id),)
    a.ask(DeleteTopicsRequest(topics=both, timeout_ms=Millis(10_000)))
    twice = (DeleteTopicState(name=t), DeleteTopicState(topic_id=topic_id))
    a.ask(DeleteTopicsRequest(topics=twice, timeout_ms=Millis(10_000)))
    ids = (DeleteTopicState(topic_id=topic_id), DeleteTopicState(topic_id=topic_id))
    a.ask(DeleteTopicsRequest(topics=ids, timeout_ms=Millis(10_000)))


@conversation(vary=DeleteTopicsRequest, profile="strict")
def no_topic_is_deleted_if_that_is_disabled(session: Session) -> None:
    t, _ = create_topic(session)
    a = session.client("a")

    a.ask(delete_request(session, t))
    a.ask(delete_request(session, Topic(session.name("unknown"))))
