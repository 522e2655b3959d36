"""Groups on an Apache Kafka that form, commit, leave, expire, are deleted, or stay active."""

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
from tests.contract.tools.cluster_setup import commit, group_exists, write
from tests.node.raw_client import RawClient
from tests.wait import wait_until

TOPIC = "orders"
PARTITIONS = 4
RECORDS = 20
"""In each partition, before Kafka restarts."""

LATER = 5
"""In each partition after the restart, with the next leader epoch."""

SESSION_MS = 300_000
"""Longer than any test, so that no member times out between Kafka and Kohort."""


@contextmanager
def consuming(cluster: Cluster, group: str, **settings: object) -> Iterator[Consumer]:
    """A librdkafka consumer that has all partitions; a dynamic member leaves at the end."""
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


def commit_offsets(consumer: Consumer, offsets: Mapping[int, int], metadata: str = "") -> None:
    partitions = [
        TopicPartition(TOPIC, partition, offset, metadata) for partition, offset in offsets.items()
    ]
    consumer.commit(offsets=partitions, asynchronous=False)


def churn_before_restart(cluster: Cluster) -> None:
    """Writes records that are compacted, overwritten or expired later."""
    with consuming(cluster, "dynamic") as consumer:
        for offset in range(1, 6):
            commit_offsets(consumer, dict.fromkeys(range(PARTITIONS), offset))
    with consuming(cluster, "noted") as consumer:
        commit_offsets(consumer, {0: 3, 1: 4}, "why: ünïcode")
    commit(cluster, "deleted", {(TOPIC, 0): 5, (TOPIC, 1): 6})
    cluster.run("kafka-consumer-groups", "--delete", "--group", "deleted")
    commit(cluster, "thinned", {(TOPIC, 0): 5, (TOPIC, 1): 6, (TOPIC, 2): 7})
    arguments = ("--delete-offsets", "--group", "thinned", "--topic", f"{TOPIC}:1")
    cluster.run("kafka-consumer-groups", *arguments)
    commit_with_short_retention(cluster, "expired")
    wait_until(lambda: not group_exists(cluster, "expired"), 20, "the group to expire")


def churn_after_restart(cluster: Cluster) -> None:
    with consuming(cluster, "dynamic") as consumer:
        commit_offsets(consumer, {0: 11, 1: 12})
    for partition in range(PARTITIONS):
        write(cluster, TOPIC, LATER, partition=partition)
    with consuming(cluster, "reader") as consumer:
        read_into_later(consumer)
    commit(cluster, "reborn", {(TOPIC, 0): 1})
    cluster.run("kafka-consumer-groups", "--delete", "--group", "reborn")
    commit(cluster, "reborn", {(TOPIC, 1): 2})
    with consuming(cluster, "newer", group_protocol="consumer") as newer:
        commit_offsets(newer, {0: 13, 2: 14}, "consumer protocol")


def read_into_later(consumer: Consumer) -> None:
    """Read and commit one record of each partition that has the later leader epoch."""
    for partition in range(PARTITIONS):
        seek = partial(has_sought, consumer, TopicPartition(TOPIC, partition, RECORDS))
        wait_until(seek, 20, "the seek")
    read: set[int | None] = set()

    def has_read_all() -> bool:
        message = consumer.poll(0.1)
        if message is None:
            return False
        assert not message.error(), message.error()
        # Records fetched before the seek may still be delivered.
        if (message.offset() or 0) >= RECORDS and message.partition() not in read:
            consumer.commit(message=message, asynchronous=False)
            read.add(message.partition())
        return len(read) == PARTITIONS

    wait_until(has_read_all, 20, "one record of each partition")


def has_sought(consumer: Consumer, tp: TopicPartition) -> bool:
    """librdkafka refuses to seek a partition that it does not fetch yet."""
    try:
        consumer.seek(tp)
    except KafkaException as error:
        if error.args[0].code() != KafkaError._STATE:  # noqa: SLF001  # it is its public name
            raise
        return False
    return True


def commit_with_short_retention(cluster: Cluster, group: str) -> None:
    """Commit with a retention time, as clients before Kafka 2.1 could."""
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
    with RawClient(Address(host=host, port=int(port))) as caller:
        (topic,) = caller.ask(request, 2).topics
    assert topic.partitions[0].error_code == 0
