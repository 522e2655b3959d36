"""A life for groups of an Apache Kafka: they form, commit, go, are deleted, expire, stay."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from kohort.node.broker import Address
from kohort.types import Generation, GroupId, MemberId, Millis, Offset, Partition, Topic
from kohort.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.contract.tools.cluster import Cluster
from tests.contract.tools.working import commit, is_there, write
from tests.node.calling import Caller
from tests.waiting import wait_until

TOPIC = "orders"
PARTITIONS = 4
RECORDS = 20
"""In each partition, before Kafka is started again."""

LATER = 5
"""After that, under another leader's epoch."""

SESSION_MS = 300_000
"""Longer than any test, so that nobody is missed while Kafka goes and Kohort comes."""


@contextmanager
def consuming(cluster: Cluster, group: str, **settings: object) -> Iterator[Consumer]:
    """librdkafka's consumer, once it has all partitions; at the end it leaves, if it is dynamic."""
    given: Mapping[str, object] = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        **{name.replace("_", "."): text for name, text in settings.items()},
    }
    consumer = Consumer(dict(given))
    consumer.subscribe([TOPIC])
    try:

        def has_all() -> bool:
            consumer.poll(0.1)
            return len(consumer.assignment()) == PARTITIONS

        wait_until(has_all, 30, f"{group} has its partitions")
        yield consumer
    finally:
        consumer.close()


def keep(consumer: Consumer, offsets: Mapping[int, int], metadata: str = "") -> None:
    places = [
        TopicPartition(TOPIC, partition, offset, metadata) for partition, offset in offsets.items()
    ]
    consumer.commit(offsets=places, asynchronous=False)


def live_before_restart(cluster: Cluster) -> None:
    """What is compacted, overwritten or forgotten later on is written here."""
    with consuming(cluster, "dynamic") as consumer:
        for offset in range(1, 6):
            keep(consumer, dict.fromkeys(range(PARTITIONS), offset))
    with consuming(cluster, "noted") as consumer:
        keep(consumer, {0: 3, 1: 4}, "why: ünïcode")
    commit(cluster, "deleted", {(TOPIC, 0): 5, (TOPIC, 1): 6})
    cluster.run("kafka-consumer-groups", "--delete", "--group", "deleted")
    commit(cluster, "thinned", {(TOPIC, 0): 5, (TOPIC, 1): 6, (TOPIC, 2): 7})
    words = ("--delete-offsets", "--group", "thinned", "--topic", f"{TOPIC}:1")
    cluster.run("kafka-consumer-groups", *words)
    commit_briefly(cluster, "expired")
    wait_until(lambda: not is_there(cluster, "expired"), 20, "it has expired")


def live_after_restart(cluster: Cluster) -> None:
    with consuming(cluster, "dynamic") as consumer:
        keep(consumer, {0: 11, 1: 12})
    for partition in range(PARTITIONS):
        write(cluster, TOPIC, LATER, partition=partition)
    with consuming(cluster, "reader") as consumer:
        read_into_later(consumer)
    commit(cluster, "reborn", {(TOPIC, 0): 1})
    cluster.run("kafka-consumer-groups", "--delete", "--group", "reborn")
    commit(cluster, "reborn", {(TOPIC, 1): 2})
    with consuming(cluster, "newer", group_protocol="consumer") as newer:
        keep(newer, {0: 13, 2: 14}, "of the newer kind")


def read_into_later(consumer: Consumer) -> None:
    """Far enough to know the later leader's epoch, and to leave something unread; then commit."""
    for partition in range(PARTITIONS):
        seek = partial(has_sought, consumer, TopicPartition(TOPIC, partition, RECORDS))
        wait_until(seek, 20, "it reads there")
    read: set[int | None] = set()

    def has_read_all() -> bool:
        message = consumer.poll(0.1)
        if message is not None and message.partition() not in read:
            assert not message.error(), message.error()
            consumer.commit(message=message, asynchronous=False)
            read.add(message.partition())
        return len(read) == PARTITIONS

    wait_until(has_read_all, 20, "one record of each partition is read")


def has_sought(consumer: Consumer, place: TopicPartition) -> bool:
    """librdkafka refuses to seek where it has a partition but does not fetch it yet."""
    try:
        consumer.seek(place)
    except KafkaException as error:
        if error.args[0].code() != KafkaError._STATE:  # noqa: SLF001  # it is its public name
            raise
        return False
    return True


def commit_briefly(cluster: Cluster, group: str) -> None:
    """With a retention of its own, as clients before Kafka 2.1 could ask for."""
    host, _, port = cluster.bootstrap_servers.rpartition(":")
    partition = OffsetCommitRequestPartition(
        partition_index=Partition(0), committed_offset=Offset(7), committed_metadata=""
    )
    request = OffsetCommitRequest(
        group_id=GroupId(group),
        generation_id_or_member_epoch=Generation(-1),
        member_id=MemberId(""),
        retention_time_ms=Millis(1),
        topics=(OffsetCommitRequestTopic(name=Topic(TOPIC), partitions=(partition,)),),
    )
    with Caller(Address(host=host, port=int(port))) as caller:
        (topic,) = caller.ask(request, 2).topics
    assert topic.partitions[0].error_code == 0
