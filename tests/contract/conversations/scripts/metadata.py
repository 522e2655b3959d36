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
from tests.contract.conversations.records import create_topic
from tests.contract.conversations.session import Session, narrowed

NOT_A_TOPIC = Uuid(b"not any topic id")
OFFSETS = Topic("__consumer_offsets")


def metadata_request(*names: str | None, **fields: Any) -> MetadataRequest:
    """Metadata of topics by name, without auto-creation unless requested."""
    topics = tuple(MetadataRequestTopic(name=None if n is None else Topic(n)) for n in names)
    return MetadataRequest(topics=topics, **{"allow_auto_topic_creation": False, **fields})


def metadata_request_by_id(*topic_ids: Uuid, **fields: Any) -> MetadataRequest:
    topics = tuple(MetadataRequestTopic(name=None, topic_id=each) for each in topic_ids)
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False, **fields)


# Topics that are there


@conversation(vary=MetadataRequest, since=4)
def a_topic_is_described_with_its_partitions(session: Session) -> None:
    t, _ = create_topic(session, partitions=3)

    session.client("a").ask(metadata_request(t))


@conversation(vary=MetadataRequest, until=3)
def a_topic_is_described_to_old_clients_too(session: Session) -> None:
    t, _ = create_topic(session, partitions=3)

    session.client("a").ask(metadata_request(t, allow_auto_topic_creation=True))


@conversation(vary=MetadataRequest)
def all_topics_are_described_on_request(session: Session) -> None:
    create_topic(session, "t", 2)
    create_topic(session, "u")
    mark = session.name("")

    def ours(answer: MetadataResponse) -> MetadataResponse:
        topics = tuple(each for each in answer.topics if (each.name or "").endswith(mark))
        return narrowed(answer, topics=topics)

    topics = () if session.version_of(MetadataRequest) == 0 else None
    session.client("a").ask(MetadataRequest(topics=topics), transform=ours)


@conversation(vary=MetadataRequest, since=1)
def no_topics_are_described_for_an_empty_list(session: Session) -> None:
    session.client("a").ask(MetadataRequest(topics=()))


@conversation(vary=MetadataRequest, since=4)
def the_offsets_topic_is_internal(session: Session) -> None:
    session.client("a").ask(metadata_request(OFFSETS))


@conversation(vary=MetadataRequest, since=4)
def a_topic_named_twice_is_described_once(session: Session) -> None:
    t, _ = create_topic(session)

    session.client("a").ask(metadata_request(t, t))


@conversation(vary=MetadataRequest, since=8)
def authorized_operations_are_returned_on_request(session: Session) -> None:
    t, _ = create_topic(session)
    a = session.client("a")

    a.ask(metadata_request(t, session.name("unknown"), include_topic_authorized_operations=True))
    if session.version_of(MetadataRequest) <= 10:
        a.ask(metadata_request(t, include_cluster_authorized_operations=True))


# Topics that are not


@conversation(vary=MetadataRequest, since=4)
def a_topic_that_does_not_exist_is_unknown(session: Session) -> None:
    t, _ = create_topic(session)
    a = session.client("a")

    a.ask(metadata_request(session.name("unknown"), t))
    a.ask(metadata_request(session.name("un known")))
    a.ask(metadata_request(""))
    a.ask(metadata_request("."))
    a.ask(metadata_request("x" * 250))


@conversation(vary=MetadataRequest)
def a_metadata_request_creates_a_topic(session: Session) -> None:
    t = Topic(session.name("t"))
    a = session.client("a")

    with session.deviates(
        "Kafka returns UNKNOWN_TOPIC_OR_PARTITION while its controller", "answer.topics.0*"
    ):
        a.ask(metadata_request(t, allow_auto_topic_creation=True))
    session.wait_for_topic(t)
    a.ask(metadata_request(t, allow_auto_topic_creation=True))


@conversation(vary=MetadataRequest, profile="strict")
def a_metadata_request_creates_no_topic_if_that_is_disabled(session: Session) -> None:
    a = session.client("a")

    a.ask(metadata_request(session.name("unknown"), allow_auto_topic_creation=True))
    a.ask(metadata_request(session.name("unknown"), allow_auto_topic_creation=True))


@conversation(vary=MetadataRequest)
def a_topic_with_an_invalid_name_is_not_created(session: Session) -> None:
    a = session.client("a")

    a.ask(metadata_request(session.name("un known"), allow_auto_topic_creation=True))
    a.ask(metadata_request("..", allow_auto_topic_creation=True))
    a.ask(metadata_request("", allow_auto_topic_creation=True))


@conversation(vary=MetadataRequest)
def a_topic_with_a_colliding_name_is_not_created(session: Session) -> None:
    create_topic(session, "a.b")
    a = session.client("a")

    with session.deviates(
        "Kafka returns UNKNOWN_TOPIC_OR_PARTITION while its controller", "*.error_code"
    ):
        a.ask(metadata_request(session.name("a_b"), allow_auto_topic_creation=True))


# Ids


@conversation(vary=MetadataRequest, since=12)
def a_topic_is_found_by_its_id(session: Session) -> None:
    _, topic_id = create_topic(session)
    a = session.client("a")

    a.ask(metadata_request_by_id(topic_id))
    a.ask(metadata_request_by_id(topic_id, NOT_A_TOPIC))
    a.ask(metadata_request_by_id(topic_id, topic_id))
    a.ask(metadata_request_by_id(topic_id, include_topic_authorized_operations=True))


@conversation(vary=MetadataRequest, since=10)
def a_topic_needs_a_name_or_an_id(session: Session) -> None:
    a = session.client("a")

    if session.version_of(MetadataRequest) < 12:
        a.ask(metadata_request(None))
        return
    with session.deviates("Kafka fails on a topic with neither name nor id", "answer*"):
        a.ask(metadata_request(None))


@conversation(vary=MetadataRequest, since=10, until=11)
def topic_ids_are_refused_in_these_versions(session: Session) -> None:
    t, topic_id = create_topic(session)
    a = session.client("a")

    a.ask_or_disconnect(metadata_request_by_id(topic_id))
    both = (MetadataRequestTopic(name=t, topic_id=topic_id), MetadataRequestTopic(name=t))
    a.ask_or_disconnect(MetadataRequest(topics=both, allow_auto_topic_creation=False))


@conversation(vary=MetadataRequest, since=12)
def names_are_ignored_if_one_topic_has_an_id(session: Session) -> None:
    t, topic_id = create_topic(session)
    u, _ = create_topic(session, "u")
    a = session.client("a")

    both = (MetadataRequestTopic(name=u), MetadataRequestTopic(name=None, topic_id=topic_id))
    a.ask_or_disconnect(MetadataRequest(topics=both, allow_auto_topic_creation=False))
    one = (MetadataRequestTopic(name=t, topic_id=topic_id),)
    a.ask_or_disconnect(MetadataRequest(topics=one, allow_auto_topic_creation=False))
    a.ask_or_disconnect(metadata_request_by_id(ZERO_UUID, topic_id))


# The cluster


@conversation(vary=DescribeClusterRequest)
def the_cluster_is_one_broker(session: Session) -> None:
    a = session.client("a")

    a.ask(DescribeClusterRequest())
    a.ask(DescribeClusterRequest(include_cluster_authorized_operations=True))


@conversation(vary=DescribeClusterRequest, since=1)
def brokers_describe_only_brokers(session: Session) -> None:
    a = session.client("a")

    a.ask(DescribeClusterRequest(endpoint_type=2))
    a.ask(DescribeClusterRequest(endpoint_type=9))


@conversation(vary=DescribeClusterRequest, since=2)
def no_broker_is_fenced(session: Session) -> None:
    session.client("a").ask(DescribeClusterRequest(include_fenced_brokers=True))


# Page by page


def page(*names: Topic, limit: int = 2000, cursor: Cursor | None = None) -> Any:
    return DescribeTopicPartitionsRequest(
        topics=tuple(TopicRequest(name=each) for each in names),
        response_partition_limit=limit,
        cursor=cursor,
    )


@conversation(vary=DescribeTopicPartitionsRequest)
def topics_are_described_page_by_page(session: Session) -> None:
    t, _ = create_topic(session, "t", 3)
    u, _ = create_topic(session, "u", 2)
    a = session.client("a")

    cursor = None
    for _ in range(3):
        cursor = a.ask(page(u, t, limit=2, cursor=cursor)).next_cursor
    a.ask(page(t, u))
    a.ask(page(t, t))


@conversation(vary=DescribeTopicPartitionsRequest)
def all_topics_are_described_from_the_cursor_on(session: Session) -> None:
    t, _ = create_topic(session, "t")
    mark = session.name("")

    def ours(answer: DescribeTopicPartitionsResponse) -> DescribeTopicPartitionsResponse:
        topics = tuple(each for each in answer.topics if (each.name or "").endswith(mark))
        return narrowed(answer, topics=topics, next_cursor=None)

    a = session.client("a")
    a.ask(page(), transform=ours)
    a.ask(page(cursor=Cursor(topic_name=t)), transform=ours)


@conversation(vary=DescribeTopicPartitionsRequest)
def a_page_can_have_any_limit(session: Session) -> None:
    t, _ = create_topic(session, "t", 3)
    a = session.client("a")

    for limit in (0, -1, 3, 2**31 - 1):
        a.ask(page(t, limit=limit))


@conversation(vary=DescribeTopicPartitionsRequest)
def unknown_topics_are_on_the_page(session: Session) -> None:
    t, _ = create_topic(session)
    a = session.client("a")

    a.ask(page(Topic(session.name("s")), t, Topic(session.name("u"))))
    a.ask(page(Topic(session.name("un known"))))
    with session.deviates(
        "Kafka returns UNKNOWN_SERVER_ERROR for an empty name", "answer.topics.0*"
    ):
        a.ask(page(Topic("")))


@conversation(vary=DescribeTopicPartitionsRequest)
def a_cursor_must_be_within_the_requested_topics(session: Session) -> None:
    t, _ = create_topic(session, partitions=2)
    a = session.client("a")

    a.ask(page(t, cursor=Cursor(topic_name=Topic(session.name("s")))))
    a.ask(page(t, cursor=Cursor(topic_name=Topic(session.name("u")))))
    a.ask(page(t, cursor=Cursor(topic_name=t, partition_index=Partition(1))))
    a.ask(page(t, cursor=Cursor(topic_name=t, partition_index=Partition(9))))
    a.ask(page(t, cursor=Cursor(topic_name=t, partition_index=Partition(-2))))


@conversation(vary=DescribeTopicPartitionsRequest)
def the_offsets_topic_is_internal_on_a_page(session: Session) -> None:
    session.client("a").ask(page(OFFSETS))
