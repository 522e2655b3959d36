"""The log directory of a running Apache Kafka."""

from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from kohort.pipeline.forensics import bronze
from kohort.pipeline.forensics.silver import (
    commits_table,
    generations_table,
    group_events_table,
    memberships_table,
    undecodable_table,
)
from kohort.pipeline.forensics.silver.record_kinds import split_by_kind
from tests.apache.cluster import Kafka
from tests.pipeline.forensics.apache_log import copy_log_after
from tests.pipeline.forensics.history_bytes import tuples


def live_through(kafka: Kafka) -> str:
    """A member commits without a transaction, in a committed and in an aborted one, and leaves."""
    servers = kafka.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers})
    for future in admin.create_topics([NewTopic("orders", 1, 1)]).values():
        future.result(30)
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "billing",
            "client.id": "clerk",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "writer"})
    producer.init_transactions(30)
    producer.begin_transaction()
    for _ in range(9):
        producer.produce("orders", b"an order")
    producer.commit_transaction(30)
    consumer.subscribe(["orders"])
    assert consumer.poll(60) is not None
    member_id = str(consumer.memberid())
    consumer.commit(offsets=[TopicPartition("orders", 0, 3)], asynchronous=False)
    for offset, is_kept in ((5, True), (7, False)):
        producer.begin_transaction()
        where = [TopicPartition("orders", 0, offset)]
        producer.send_offsets_to_transaction(where, consumer.consumer_group_metadata(), 30)
        if is_kept:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
    consumer.commit(offsets=[TopicPartition("orders", 0, 4)], asynchronous=False)
    consumer.close()
    return member_id


def test_the_history_of_a_group_is_read_from_a_running_kafka(
    spark: SparkSession, tmp_path: Path
) -> None:
    log, member_id = copy_log_after(live_through, tmp_path)

    records = bronze.read(spark, bronze.survey(spark, log)).cache()
    kept = generations_table.build(records).cache()

    assert tuples(
        commits_table.build(split_by_kind(records), kept), "committed", "step", "owner"
    ) == [
        (3, None, member_id),
        (4, -1, member_id),
        (5, 2, member_id),
    ]
    assert tuples(
        memberships_table.build(kept, group_events_table.build(records)), "client_id", "ending"
    ) == [("clerk", "gone")]
    assert undecodable_table.build(split_by_kind(records)).count() == 0
