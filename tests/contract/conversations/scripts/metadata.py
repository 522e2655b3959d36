"""Metadata: brokers, topics by name and by id, and topics that come into being by being asked for.

Of an answer about all topics, only those of the conversation are looked at.
"""

from typing import Any

from kohort.types import ZERO_UUID, Partition, Topic, Uuid
from kohort.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kohort.wire.api.k60_describe_cluster import DescribeClusterRequest
from kohort.wire.api.k75_describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from tests.contract.conversations.conversation import conversation
from tests.contract.conversations.records import made
from tests.contract.conversations.talking import Talk, narrowed

NOT_A_TOPIC = Uuid(b"not any topic id")
OFFSETS = Topic("__consumer_offsets")


def asking(*names: str | None, **words: Any) -> MetadataRequest:
    """About topics by name, none of which is made for it unless that is said."""
    topics = tuple(MetadataRequestTopic(name=None if n is None else Topic(n)) for n in names)
    return MetadataRequest(topics=topics, **{"allow_auto_topic_creation": False, **words})


def asked_by_id(*topic_ids: Uuid, **words: Any) -> MetadataRequest:
    topics = tuple(MetadataRequestTopic(name=None, topic_id=each) for each in topic_ids)
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False, **words)


# Topics that are there


@conversation(vary=MetadataRequest, since=4)
def a_topic_is_described_with_its_partitions(talk: Talk) -> None:
    t, _ = made(talk, partitions=3)

    talk.speaker("a").ask(asking(t))


@conversation(vary=MetadataRequest, until=3)
def a_topic_is_described_to_old_clients_too(talk: Talk) -> None:
    t, _ = made(talk, partitions=3)

    talk.speaker("a").ask(asking(t, allow_auto_topic_creation=True))


@conversation(vary=MetadataRequest)
def all_topics_are_described_to_who_asks_for_all(talk: Talk) -> None:
    made(talk, "t", 2)
    made(talk, "u")
    mark = talk.name("")

    def ours(answer: MetadataResponse) -> MetadataResponse:
        topics = tuple(each for each in answer.topics if (each.name or "").endswith(mark))
        return narrowed(answer, topics=topics)

    topics = () if talk.version_of(MetadataRequest) == 0 else None
    talk.speaker("a").ask(MetadataRequest(topics=topics), through=ours)


@conversation(vary=MetadataRequest, since=1)
def no_topics_are_described_to_who_asks_for_none(talk: Talk) -> None:
    talk.speaker("a").ask(MetadataRequest(topics=()))


@conversation(vary=MetadataRequest, since=4)
def the_groups_own_topic_is_internal(talk: Talk) -> None:
    talk.speaker("a").ask(asking(OFFSETS))


@conversation(vary=MetadataRequest, since=4)
def a_topic_named_twice_is_described_once(talk: Talk) -> None:
    t, _ = made(talk)

    talk.speaker("a").ask(asking(t, t))


@conversation(vary=MetadataRequest, since=8)
def operations_are_told_to_who_asks(talk: Talk) -> None:
    t, _ = made(talk)
    a = talk.speaker("a")

    a.ask(asking(t, talk.name("unknown"), include_topic_authorized_operations=True))
    if talk.version_of(MetadataRequest) <= 10:
        a.ask(asking(t, include_cluster_authorized_operations=True))


# Topics that are not


@conversation(vary=MetadataRequest, since=4)
def a_topic_that_does_not_exist_is_unknown(talk: Talk) -> None:
    t, _ = made(talk)
    a = talk.speaker("a")

    a.ask(asking(talk.name("unknown"), t))
    a.ask(asking(talk.name("un known")))
    a.ask(asking(""))
    a.ask(asking("."))
    a.ask(asking("x" * 250))


@conversation(vary=MetadataRequest)
def a_topic_comes_into_being_by_being_asked_for(talk: Talk) -> None:
    t = Topic(talk.name("t"))
    a = talk.speaker("a")

    with talk.deviates("Kafka says that it does not exist while", "answer.topics.0*"):
        a.ask(asking(t, allow_auto_topic_creation=True))
    talk.wait_for_topic(t)
    a.ask(asking(t, allow_auto_topic_creation=True))


@conversation(vary=MetadataRequest, house="strict")
def a_topic_stays_unknown_where_topics_are_not_made_for_the_asking(talk: Talk) -> None:
    a = talk.speaker("a")

    a.ask(asking(talk.name("unknown"), allow_auto_topic_creation=True))
    a.ask(asking(talk.name("unknown"), allow_auto_topic_creation=True))


@conversation(vary=MetadataRequest)
def a_topic_with_an_impossible_name_does_not_come_into_being(talk: Talk) -> None:
    a = talk.speaker("a")

    a.ask(asking(talk.name("un known"), allow_auto_topic_creation=True))
    a.ask(asking("..", allow_auto_topic_creation=True))
    a.ask(asking("", allow_auto_topic_creation=True))


@conversation(vary=MetadataRequest)
def a_topic_that_collides_with_another_does_not_come_into_being(talk: Talk) -> None:
    made(talk, "a.b")
    a = talk.speaker("a")

    with talk.deviates("Kafka says that it does not exist while", "*.error_code"):
        a.ask(asking(talk.name("a_b"), allow_auto_topic_creation=True))


# Ids


@conversation(vary=MetadataRequest, since=12)
def a_topic_is_found_by_its_id(talk: Talk) -> None:
    _, topic_id = made(talk)
    a = talk.speaker("a")

    a.ask(asked_by_id(topic_id))
    a.ask(asked_by_id(topic_id, NOT_A_TOPIC))
    a.ask(asked_by_id(topic_id, topic_id))
    a.ask(asked_by_id(topic_id, include_topic_authorized_operations=True))


@conversation(vary=MetadataRequest, since=10)
def a_topic_needs_a_name_or_an_id(talk: Talk) -> None:
    a = talk.speaker("a")

    if talk.version_of(MetadataRequest) < 12:
        a.ask(asking(None))
        return
    with talk.deviates("Kafka fails over a topic with neither name nor id", "answer*"):
        a.ask(asking(None))


@conversation(vary=MetadataRequest, since=10, until=11)
def ids_are_not_for_these_versions(talk: Talk) -> None:
    t, topic_id = made(talk)
    a = talk.speaker("a")

    a.provoke(asked_by_id(topic_id))
    both = (MetadataRequestTopic(name=t, topic_id=topic_id), MetadataRequestTopic(name=t))
    a.provoke(MetadataRequest(topics=both, allow_auto_topic_creation=False))


@conversation(vary=MetadataRequest, since=12)
def where_one_topic_goes_by_its_id_all_do(talk: Talk) -> None:
    t, topic_id = made(talk)
    u, _ = made(talk, "u")
    a = talk.speaker("a")

    both = (MetadataRequestTopic(name=u), MetadataRequestTopic(name=None, topic_id=topic_id))
    a.provoke(MetadataRequest(topics=both, allow_auto_topic_creation=False))
    one = (MetadataRequestTopic(name=t, topic_id=topic_id),)
    a.provoke(MetadataRequest(topics=one, allow_auto_topic_creation=False))
    a.provoke(asked_by_id(ZERO_UUID, topic_id))


# The cluster


@conversation(vary=DescribeClusterRequest)
def the_cluster_is_one_broker(talk: Talk) -> None:
    a = talk.speaker("a")

    a.ask(DescribeClusterRequest())
    a.ask(DescribeClusterRequest(include_cluster_authorized_operations=True))


@conversation(vary=DescribeClusterRequest, since=1)
def brokers_describe_brokers_only(talk: Talk) -> None:
    a = talk.speaker("a")

    a.ask(DescribeClusterRequest(endpoint_type=2))
    a.ask(DescribeClusterRequest(endpoint_type=9))


@conversation(vary=DescribeClusterRequest, since=2)
def no_broker_is_fenced(talk: Talk) -> None:
    talk.speaker("a").ask(DescribeClusterRequest(include_fenced_brokers=True))


# Page by page


def page(*names: Topic, limit: int = 2000, cursor: Cursor | None = None) -> Any:
    return DescribeTopicPartitionsRequest(
        topics=tuple(TopicRequest(name=each) for each in names),
        response_partition_limit=limit,
        cursor=cursor,
    )


@conversation(vary=DescribeTopicPartitionsRequest)
def topics_are_described_page_by_page(talk: Talk) -> None:
    t, _ = made(talk, "t", 3)
    u, _ = made(talk, "u", 2)
    a = talk.speaker("a")

    cursor = None
    for _ in range(3):
        cursor = a.ask(page(u, t, limit=2, cursor=cursor)).next_cursor
    a.ask(page(t, u))
    a.ask(page(t, t))


@conversation(vary=DescribeTopicPartitionsRequest)
def all_topics_are_described_from_the_cursor_on(talk: Talk) -> None:
    t, _ = made(talk, "t")
    mark = talk.name("")

    def ours(answer: DescribeTopicPartitionsResponse) -> DescribeTopicPartitionsResponse:
        topics = tuple(each for each in answer.topics if (each.name or "").endswith(mark))
        return narrowed(answer, topics=topics, next_cursor=None)

    a = talk.speaker("a")
    a.ask(page(), through=ours)
    a.ask(page(cursor=Cursor(topic_name=t)), through=ours)


@conversation(vary=DescribeTopicPartitionsRequest)
def a_page_may_have_any_limit(talk: Talk) -> None:
    t, _ = made(talk, "t", 3)
    a = talk.speaker("a")

    for limit in (0, -1, 3, 2**31 - 1):
        a.ask(page(t, limit=limit))


@conversation(vary=DescribeTopicPartitionsRequest)
def topics_that_do_not_exist_are_on_the_page_too(talk: Talk) -> None:
    t, _ = made(talk)
    a = talk.speaker("a")

    a.ask(page(Topic(talk.name("s")), t, Topic(talk.name("u"))))
    a.ask(page(Topic(talk.name("un known"))))
    with talk.deviates("over an empty name Kafka fails", "answer.topics.0*"):
        a.ask(page(Topic("")))


@conversation(vary=DescribeTopicPartitionsRequest)
def a_cursor_must_be_within_what_is_asked_for(talk: Talk) -> None:
    t, _ = made(talk, partitions=2)
    a = talk.speaker("a")

    a.ask(page(t, cursor=Cursor(topic_name=Topic(talk.name("s")))))
    a.ask(page(t, cursor=Cursor(topic_name=Topic(talk.name("u")))))
    a.ask(page(t, cursor=Cursor(topic_name=t, partition_index=Partition(1))))
    a.ask(page(t, cursor=Cursor(topic_name=t, partition_index=Partition(9))))
    a.ask(page(t, cursor=Cursor(topic_name=t, partition_index=Partition(-2))))


@conversation(vary=DescribeTopicPartitionsRequest)
def the_groups_own_topic_is_internal_there_too(talk: Talk) -> None:
    talk.speaker("a").ask(page(OFFSETS))
