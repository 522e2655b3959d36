"""Creates topics, records and groups, the same on Kohort and on Apache Kafka."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from confluent_kafka import Producer

import kohort
from kohort.admin import groups, offsets, topics
from kohort.admin.cluster_connection import open_cluster
from kohort.client.consumer import Consumer
from kohort.types import GroupId, Offset, Partition, Topic, TopicPartition
from tests.wait import wait_until

SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 4,
    "auto.create.topics.enable": False,
}

RECORDS = {("orders", 0): 5, ("orders", 1): 3, ("refunds", 0): 4}


def partition_of(topic: str, partition: int) -> TopicPartition:
    return TopicPartition(Topic(topic), Partition(partition))


@contextmanager
def set_up(bootstrap_servers: str) -> Iterator[None]:
    """Create topics with records, a group of two members, one static, and two empty groups."""
    with open_cluster(bootstrap_servers) as cluster:
        for topic, partitions in (("orders", 3), ("refunds", 1)):
            topics.create_topic(cluster, Topic(topic), partitions=partitions)
        write(bootstrap_servers, RECORDS)
        shipping = {("orders", 0): 2, ("orders", 1): 3, ("refunds", 0): 1}
        commit(bootstrap_servers, "shipping", shipping)
        commit(bootstrap_servers, "archive", {("refunds", 0): 4})
        with ExitStack() as stack:
            first = stack.enter_context(join(bootstrap_servers, "billing-1"))
            settle(bootstrap_servers, first)
            second = stack.enter_context(join(bootstrap_servers, "billing-2", "rack-2"))
            settle(bootstrap_servers, first, second)
            for each in (first, second):
                assigned = [
                    one for one in each.assignment() if RECORDS.get((one.topic, one.partition))
                ]
                each.commit({one: Offset(1) for one in assigned})
            yield


def write(bootstrap_servers: str, records: dict[tuple[str, int], int]) -> None:
    """Produce one record per batch, so that sizes are always the same."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "acks": "all"})
    for (topic, partition), count in records.items():
        for number in range(count):
            producer.produce(topic, value=b"record %d" % number, partition=partition)
            assert producer.flush(30) == 0


def commit(bootstrap_servers: str, group: str, committed: dict[tuple[str, int], int]) -> None:
    with open_cluster(bootstrap_servers) as cluster:
        by_partition = {partition_of(*where): Offset(offset) for where, offset in committed.items()}
        offsets.alter_offsets(cluster, GroupId(group), by_partition)


@contextmanager
def join(
    bootstrap_servers: str,
    client_id: str,
    instance_id: str | None = None,
    *,
    group: str = "billing",
    topic: str = "orders",
) -> Iterator[Consumer]:
    with kohort.Consumer(
        bootstrap_servers=bootstrap_servers,
        group_id=group,
        client_id=client_id,
        group_instance_id=instance_id,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        heartbeat_interval_ms=100,
    ) as consumer:
        consumer.subscribe([topic])
        yield consumer


def settle(bootstrap_servers: str, *members: Consumer, group: str = "billing") -> None:
    """Wait until the group is stable with these members and all partitions are assigned."""
    with open_cluster(bootstrap_servers) as cluster:

        def is_settled() -> bool:
            for member in members:
                member.poll(timeout_ms=20)
            found = groups.describe_groups(cluster, [GroupId(group)]).get(GroupId(group))
            if found is None or found.state != "Stable" or len(found.members) != len(members):
                return False
            return sum(len(member.assignment()) for member in members) == 3

        wait_until(is_settled, 60, "the group to become stable")
